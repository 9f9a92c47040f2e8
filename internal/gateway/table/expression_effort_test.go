package table

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// costly are expressions that are short, and would take long to read. Each is of the longest text that a field takes.
func costly(number int) map[string]string {
	fill := func(item string) string { return strings.Repeat(item, 1000/len(item)) + fmt.Sprint(number) }
	return map[string]string{
		"classes":                                fill(`\pL`),
		"classes, without case":                  "(?i)" + fill(`\pL`),
		"a set of classes, without case":         "(?i)[" + fill(`\pL`) + "]",
		"sets, without case":                     "(?i)" + fill(`[\pL\pN]`),
		"classes by name, without case":          "(?i)" + fill(`\p{Any}`),
		"negated, without case":                  "(?i)" + fill(`[^\PL]`),
		"alternatives, without case":             "(?i)" + fill(`\pL|`),
		"a flag in a group":                      "(?s-i:(?mi:" + fill(`\pL`) + "))",
		"a wide range, without case":             "(?i)" + fill(`[A-\x{1e942}]`),
		"a wide range of characters":             "(?i)" + fill("[A-\U0001E942]"),
		"ranges, and an error at the end":        "(?i)" + fill(`[A-\x{1e942}]`) + "(",
		"classes, and an error at the end":       fill(`\pL`) + "(",
		"not in a set":                           fill(`[^/]`),
		"not in a set, written anew":             "(?m)" + fill(`[^/]`),
		"not in a set, quoted":                   `\Qa\E` + fill(`[^/]`),
		"words, written anew":                    "(?-s)" + fill(`\W\S\D`),
		"plain":                                  fill("a"),
		"plain, without case":                    "(?i)" + fill("a"),
		"plain sets, without case":               "(?i)" + fill("[a-z]"),
		"repeated groups":                        strings.Repeat("(a{2}", 120) + strings.Repeat(")", 120) + fmt.Sprint(number),
		"words, without case":                    "(?i)" + fill(`\W\S\D`),
		"not in a set, without case":             "(?i)" + fill(`[^/]`),
		"not in a plain set, without case":       "(?i)" + fill(`[^a-z]`),
		"not in a wide range, without case":      "(?i)" + fill(`[^A-\x{1e942}]`),
		"not in a class by name, without case":   "(?i)" + fill(`[^[:^alpha:]\W]`),
		"classes of ASCII by name, without case": "(?i)" + fill(`[[:^alpha:]]`),
	}
}

// No text of a spec costs much time by what it says: 1,000 expressions of an owner are judged with less than 10 s of a processor,
// those that are refused too, with the race detector, which makes it ten times as slow. Without a bound before they are read, some
// of these take minutes.
func TestExpressionsThatTakeLongAreNotRead(t *testing.T) {
	for name := range costly(0) {
		t.Run(name, func(t *testing.T) {
			checker, start, refused := NewChecker(), processorTime(t), 0
			for i := range 1000 {
				text := costly(i)[name]
				rule := Rule{Name: "r", Owner: "team", Direct: &model.DirectResponse{StatusCode: 200}, Headers: []ValueMatch{{Name: "X-A", Type: MatchRegularExpression, Value: &text}}}
				if f, _ := checker.Check(&rule); f != nil {
					refused++
				}
			}
			took := processorTime(t) - start
			t.Logf("%v, %d refused", took, refused)
			if took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// processorTime is how long this process has had a processor. What else runs on the machine does not count.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// As many routes as an owner may have are read, if they are usual ones.
func TestManyUsualExpressionsOfAnOwnerAreRead(t *testing.T) {
	for _, pattern := range []string{`(?i)/shop%d/[^/]+/[^/]+`, `/shop%d/[^/]+/\S+`, `(?i)/v%d/\W?[a-z0-9-]+(/.*)?`} {
		checker := NewChecker()
		for i := range 1000 {
			rule := Rule{Name: "r", Owner: "team", Path: fmt.Sprintf(pattern, i), PathType: PathRegularExpression, Direct: &model.DirectResponse{StatusCode: 200}}
			if f, _ := checker.Check(&rule); f != nil {
				t.Fatalf("the %dth: %s", i, f.Message)
			}
		}
	}
}

// What people write is read.
func TestUsualExpressionsAreNotTooMuchEffort(t *testing.T) {
	for _, text := range []string{
		`/v[0-9]+/users/[^/]+`, `(?i)/[a-z0-9-]+/[A-Z]{2}-[a-z]{2}(/.*)?`, `\p{L}[\p{L}\p{N}_-]*`, `(?i)^\p{Lu}\p{Ll}+$`,
		`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`, `[à-ÿ]+-[à-ÿ]+`, `(?i)[à-ÿ]+`,
		`(?m)^/[^/]+/[^/]+/[^/]+$`, strings.Repeat(`/[^/]+`, 50), `\Qa.b\E[^/]+`, `(?i)\W+\S*\D?[^/]+`,
		"(?i)(" + strings.Repeat("googlebot|bingbot|", 40) + "x)", "(?i)" + strings.Repeat(`/[^/]+`, 50),
	} {
		if e := parseExpression(text); e.wrong != "" {
			t.Errorf("%q: %s", text, e.wrong)
		}
	}
}
