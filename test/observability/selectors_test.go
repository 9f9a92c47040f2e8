package observability

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// selector is a metric in an expression, with the names of the labels that it is chosen by.
type selector struct {
	metric string
	labels []string
}

// words are identifiers that are no metrics, though no parenthesis follows them.
var words = strings.Fields("and or unless bool offset atan2 inf nan start end by without on ignoring group_left group_right " +
	"sum min max avg count group stddev stdvar topk bottomk quantile count_values limitk limit_ratio")

// listsLabels are those after which names in parentheses are labels.
var listsLabels = strings.Fields("by without on ignoring group_left group_right")

// selectorsOf returns the metrics of an expression of PromQL, without a parser of Prometheus, which the project does not
// depend on. The end-to-end test compares it with what Prometheus itself says.
func selectorsOf(expr string) ([]selector, error) {
	s := &scanner{rest: expr}
	for {
		s.skipSpace()
		switch c := s.peek(); {
		case c == 0:
			return s.found, nil
		case c == '"' || c == '\'' || c == '`':
			if err := s.text(); err != nil {
				return nil, err
			}
		case c == '[':
			if _, err := s.until("]"); err != nil {
				return nil, err
			}
		case c == '{':
			return nil, fmt.Errorf("a selector without the name of a metric in %q", expr)
		case unicode.IsLetter(c) || c == '_' || c == ':':
			if err := s.identifier(); err != nil {
				return nil, err
			}
		case unicode.IsDigit(c):
			s.take(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '.' })
		default:
			s.rest = s.rest[1:]
		}
	}
}

type scanner struct {
	rest  string
	found []selector
}

func (s *scanner) peek() rune {
	for _, c := range s.rest {
		return c
	}
	return 0
}

func (s *scanner) take(while func(rune) bool) string {
	end := strings.IndexFunc(s.rest, func(c rune) bool { return !while(c) })
	if end < 0 {
		end = len(s.rest)
	}
	taken := s.rest[:end]
	s.rest = s.rest[end:]
	return taken
}

// skipSpace skips comments too.
func (s *scanner) skipSpace() {
	for {
		s.take(unicode.IsSpace)
		if s.peek() != '#' {
			return
		}
		s.take(func(c rune) bool { return c != '\n' })
	}
}

// until takes everything up to and with an end.
func (s *scanner) until(end string) (string, error) {
	taken, rest, ok := strings.Cut(s.rest, end)
	if !ok {
		return "", fmt.Errorf("no %s after %q", end, s.rest)
	}
	s.rest = rest
	return taken, nil
}

// text takes a string.
func (s *scanner) text() error {
	quote := s.rest[:1]
	for i := 1; i < len(s.rest); i++ {
		switch {
		case s.rest[i] == '\\' && quote != "`":
			i++
		case s.rest[i:i+1] == quote:
			s.rest = s.rest[i+1:]
			return nil
		}
	}
	return fmt.Errorf("no end of %q", s.rest)
}

func isName(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == ':' }

func (s *scanner) identifier() error {
	name := s.take(isName)
	s.skipSpace()
	switch {
	case slices.Contains(listsLabels, name):
		if s.peek() != '(' {
			return nil // group_left and group_right may stand alone
		}
		_, err := s.until(")")
		return err
	case s.peek() == '(' || slices.Contains(words, name):
		return nil
	}
	found := selector{metric: name}
	if s.peek() == '{' {
		s.rest = s.rest[1:]
		if err := s.matchers(&found); err != nil {
			return err
		}
	}
	s.found = append(s.found, found)
	return nil
}

func (s *scanner) matchers(into *selector) error {
	for {
		s.skipSpace()
		switch {
		case s.peek() == '}':
			s.rest = s.rest[1:]
			return nil
		case s.peek() == ',':
			s.rest = s.rest[1:]
			continue
		}
		label := s.take(isName)
		s.skipSpace()
		if operator := s.take(func(c rune) bool { return c == '=' || c == '!' || c == '~' }); label == "" || operator == "" {
			return fmt.Errorf("no label at %q", s.rest)
		}
		s.skipSpace()
		if err := s.text(); err != nil {
			return err
		}
		into.labels = append(into.labels, label)
	}
}

func TestSelectors(t *testing.T) {
	for expr, want := range map[string][]selector{
		"up":                          {{metric: "up"}},
		`sum(up{a="b", c=~"}\""})`:    {{"up", []string{"a", "c"}}},
		"sum by (x, y) (rate(a[5m]))": {{metric: "a"}},
		"max(a) without (b)":          {{metric: "a"}},
		"a - on (x) group_right b":    {{metric: "a"}, {metric: "b"}},
		"a / on (x) group_left (y) b{z!~'q'} offset 5m":             {{metric: "a"}, {"b", []string{"z"}}},
		"a > 0.9 * 1e3 and # not c\nb unless bool_total":            {{metric: "a"}, {metric: "b"}, {metric: "bool_total"}},
		`histogram_quantile(0.9, sum by (le) (rate(a_bucket[1h])))`: {{metric: "a_bucket"}},
		"level:metric:rate5m{job='x'}[15m:1m]":                      {{"level:metric:rate5m", []string{"job"}}},
		`label_replace(a, "b", "$1", "c", "(.*)")`:                  {{metric: "a"}},
		"min by(secret)(a-time())":                                  {{metric: "a"}},
	} {
		got, err := selectorsOf(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(selector{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", expr, diff)
		}
	}
	for _, expr := range []string{`{a="b"}`, `a{b="c}`, "a[5m", `a{"b"}`, "sum by (a"} {
		if got, err := selectorsOf(expr); err == nil {
			t.Errorf("%s: no error but %v", expr, got)
		}
	}
}
