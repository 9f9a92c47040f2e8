package table

import (
	"fmt"
	"regexp"

	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// texts are expressions and paths that were compiled before. A rule may come once for each match and hostname of its route, and
// whoever writes routes must not make the same work many times, nor have the result kept many times.
type texts struct {
	// checks tells that expressions are checked only.
	checks bool

	expressions map[string]*expression
	used        map[usedExpression]bool
	room        map[string]int // that owners have used for the memory of expressions
	effort      map[string]int // that reading their expressions has cost
	paths       map[string]specPath
	prefixes    map[string][]string // the readings of each prefix
	made        map[string]any      // by features, for rules that ask for the same
}

type usedExpression struct{ owner, text string }

// expression is a regular expression. alone is its text with line ends as ordinary characters, and whole matches the whole value, if
// it is compiled. literal is the prefix of every matching value, and wrong tells why there is none. program is how many instructions
// it has, and memory how many would take as much memory.
type expression struct {
	alone           string
	whole           *regexp.Regexp
	literal         string
	program, memory int
	wrong           string
}

type specPath struct {
	path Path
	err  error
}

func newTexts() *texts {
	return &texts{
		expressions: map[string]*expression{}, used: map[usedExpression]bool{}, room: map[string]int{}, effort: map[string]int{},
		paths: map[string]specPath{}, prefixes: map[string][]string{}, made: map[string]any{},
	}
}

// path parses a path of the spec.
func (t *texts) path(text string) (Path, error) {
	known, found := t.paths[text]
	if !found {
		known.path, known.err = parseSpecPath(text)
		t.paths[text] = known
	}
	return known.path, known.err
}

// Path implements feature.Checks.
func (t *texts) Path(field, path string) *model.Fault {
	if path == "" {
		return nil
	}
	if _, err := t.path(path); err != nil {
		return model.Invalid("%s: %q cannot be a path: %v", field, path, err)
	}
	return nil
}

// readingsOf returns the readings of a prefix. It is nil if there are too many.
func (t *texts) readingsOf(prefix string) []string {
	known, found := t.prefixes[prefix]
	if found {
		return known
	}
	if !everyReading(func(reading string) bool {
		known = append(known, reading)
		return true
	}, prefix) {
		known = nil
	}
	t.prefixes[prefix] = known
	return known
}

// OwnPath implements feature.Checks: the path must have one reading, which is itself.
func (t *texts) OwnPath(field, text string) *model.Fault {
	path, err := ParsePath(text)
	if err != nil || !path.ReadsOneWay() || path.Match != text || text == "/" {
		return model.Invalid("%s: %q is not a plain path such as /oauth2/callback", field, text)
	}
	return nil
}

// HealthCheck implements feature.Checks.
func (t *texts) HealthCheck(h *model.HealthCheck) string {
	if _, err := t.path(h.Path); err != nil {
		return fmt.Sprintf("path: %q cannot be a path: %v", h.Path, err)
	}
	if h.Host != "" && !isHostName(h.Host) {
		return fmt.Sprintf("host: %q is not a lower case DNS name", h.Host)
	}
	if h.Period <= 0 || h.Timeout <= 0 || h.Healthy < 1 || h.Unhealthy < 1 {
		return "periodSeconds, timeoutSeconds, healthyThreshold and unhealthyThreshold must be at least 1"
	}
	return ""
}

// Once implements feature.Checks.
func (t *texts) Once(key string, make func() any) any {
	made, found := t.made[key]
	if !found {
		made = make()
		t.made[key] = made
	}
	return made
}

// Checks are what the table knows of paths, for who reads a spec.
func Checks() feature.Checks { return newTexts() }
