package table_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// costOf returns how long something takes, and how many bytes its result keeps.
func costOf(make func() any) (time.Duration, int64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	kept := make()
	took := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return took, int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// manyExpressions returns rules of an owner with 16 expressions each.
func manyExpressions(count int, owner string, expression func(number int) string) []table.Rule {
	rules := make([]table.Rule, count)
	for i := range rules {
		rules[i] = table.Rule{Name: "many", Index: i, Owner: owner, Host: fmt.Sprintf("h%d.test", i), Direct: &model.DirectResponse{StatusCode: 200}}
		for n := range 16 {
			rules[i].Headers = append(rules[i].Headers, table.ValueMatch{
				Name: fmt.Sprintf("X-%d", n), Type: table.MatchRegularExpression, Value: new(expression(i*16 + n)),
			})
		}
	}
	return rules
}

// A short expression may be a large program. Neither one object nor many must take the memory of all others.
func TestExpressionsTakeLittleMemoryAndTime(t *testing.T) {
	for name, test := range map[string]struct {
		expression func(number int) string
		problems   func(int) bool
	}{
		"equal ones": {func(int) string { return "(?:aaaaaaaaaa){99}" }, func(n int) bool { return n == 0 }},
		"different ones, each of the largest size": {
			func(number int) string { return fmt.Sprintf("(?:aaaaaaaaaa){99}x%d", number) }, func(n int) bool { return n > 150 && n < 200 },
		},
		"ones that are too large":     {func(number int) string { return fmt.Sprintf("(?:aaaaaaaaaa){999}%d", number) }, func(n int) bool { return n == 200 }},
		"gigantic ones":               {func(number int) string { return fmt.Sprintf("(?:(?:%s){10}){99}%d", strings.Repeat(".", 3000), number) }, func(n int) bool { return n == 200 }},
		"ones that cannot be parsed":  {func(number int) string { return fmt.Sprintf("(?:(?:a{1000}){1000}){1000}%d", number) }, func(n int) bool { return n == 200 }},
		"ones with many characters":   {func(number int) string { return fmt.Sprintf(`(?:\pL\pN){100}%d`, number) }, func(n int) bool { return n > 150 }},
		"ones with few instructions":  {func(number int) string { return fmt.Sprintf("^v[0-9]+%d$", number) }, func(n int) bool { return n == 0 }},
		"ones that repeat what is no": {func(number int) string { return fmt.Sprintf("(?:(?:){1000}){1000}%d", number) }, func(int) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			in := table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: manyExpressions(200, "team", test.expression)}
			var problems []model.Problem
			took, kept := costOf(func() any {
				compiled, found := table.Compile(in)
				problems = found
				return compiled
			})
			t.Logf("%v, %d KiB, %d problems", took, kept>>10, len(problems))
			if took > 5*time.Second || kept > 32<<20 {
				t.Errorf("%v and %d MiB", took, kept>>20)
			}
			if !test.problems(len(problems)) {
				t.Errorf("%d problems", len(problems))
			}
		})
	}
}

// Nobody has room that somebody else uses up.
func TestEachOwnerHasRoomForExpressions(t *testing.T) {
	large := func(number int) string { return fmt.Sprintf("(?:aaaaaaaaaa){99}x%d", number) }
	rules := manyExpressions(20, "greedy", large)
	own := manyExpressions(1, "team", func(int) string { return "(?:aaaaaaaaaa){98}" })[0]
	own.Host, own.Index = "team.test", len(rules)
	in := table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: append(rules, own)}
	compiled, problems := table.Compile(in)
	if len(problems) == 0 {
		t.Error("the greedy one has room for everything")
	}
	header := http.Header{}
	for n := range 16 {
		header.Set(fmt.Sprintf("X-%d", n), strings.Repeat("a", 980))
	}
	if to := compiled.Match(&table.Request{Method: "GET", Host: "team.test", Path: "/", Header: header}); to == nil || to.Index != own.Index {
		t.Errorf("the other one is not served: %+v", to)
	}
}

// What is checked alone comes to the same result as what is compiled.
func TestACheckerAndCompileRefuseTheSameExpressions(t *testing.T) {
	rules := manyExpressions(30, "team", func(number int) string { return fmt.Sprintf("(?:aaaaaaaaaa){99}x%d", number/2) })
	checker, checked := table.NewChecker(), []string(nil)
	for i := range rules {
		if f, _ := checker.Check(&rules[i]); f != nil {
			checked = append(checked, fmt.Sprintf("%d %s", i, f.Message))
		}
	}
	_, problems := table.Compile(table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: rules})
	var found []string
	for _, p := range problems {
		found = append(found, fmt.Sprintf("%d %s", p.Index, p.Message))
	}
	if diff := cmp.Diff(checked, found); diff != "" || len(found) == 0 {
		t.Errorf("%d problems: %s", len(found), diff)
	}
}

// Each match of a route comes once for each hostname, with the same rewrites.
func TestPathsThatComeManyTimesAreReadOnce(t *testing.T) {
	path := "/" + strings.Repeat("%25%2541;/", 60)
	rules := make([]table.Rule, 2048)
	for i := range rules {
		rules[i] = table.Rule{Name: "many", Index: i, Host: fmt.Sprintf("h%d.test", i), StrictShares: true, Backends: make([]model.BackendRef, 16)}
		for n := range rules[i].Backends {
			rules[i].Backends[n] = model.BackendRef{Service: "app", Port: 80, Weight: 1, Rewrite: &model.Rewrite{PathPrefix: path}, Field: "backendRefs"}
		}
	}
	took, _ := costOf(func() any {
		compiled, _ := table.Compile(table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: rules})
		return compiled
	})
	if took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Expressions are matched before it is known who asks, so a request must not cost much, whatever they are.
func TestTheWorkOfExpressionsForARequestIsBounded(t *testing.T) {
	slow := "[ab]*a[ab]{900}c"
	rules := manyExpressions(100, "team", func(int) string { return slow })
	for i := range rules {
		rules[i].Host = ""
	}
	compiled, problems := table.Compile(table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: append(rules, table.Rule{Name: "other", Index: 100, Direct: answer})})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for name, test := range map[string]struct {
		length int
		over   bool
	}{"a long value": {60_000, true}, "a short one": {100, false}} {
		header := http.Header{}
		header.Set("X-0", strings.Repeat("ab", test.length/2))
		r := &table.Request{Method: "GET", Path: "/", Header: header}
		took, _ := costOf(func() any { return compiled.Match(r) })
		if r.TookTooMuch() != test.over || took > 10*time.Second {
			t.Errorf("%s: %v, too much: %v", name, took, r.TookTooMuch())
		}
		if to := compiled.Match(r); !test.over && (to == nil || to.Index != 100) {
			t.Errorf("%s: got %+v", name, to)
		}
	}
}

// A reading for which no work is left could lead to a route that asks for more.
func TestAReadingThatIsTooMuchWorkIsNotReadAlike(t *testing.T) {
	guard := table.Rule{Name: "guard", PathType: table.PathRegularExpression, Path: "/(?:[ab]*a[ab]{900}|p)/private", Settings: list.Settings{Auth: &auth.Policy{APIKey: &auth.APIKey{Header: "X-Key"}}}, Direct: answer}
	open := table.Rule{Name: "open", Index: 1, Path: "/", Direct: answer}
	compiled, _ := table.Compile(table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: []table.Rule{guard, open}})
	for name, test := range map[string]struct {
		path string
		want bool
	}{
		"one reading":                    {"/open", true},
		"a reading with less work":       {"/open;x", true},
		"many readings with much work":   {"/" + strings.Repeat("ab", 3000) + `;/x\y/%2561`, false},
		"a reading that leads elsewhere": {"/p;/private", false},
	} {
		path, err := table.ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		r := &table.Request{Method: "GET", Path: path.Match, Header: http.Header{}}
		found := compiled.Match(r)
		if got := found != nil && !r.TookTooMuch() && compiled.ReadAlike(r, path, found); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// An expression may be parsed alone, and nest too deeply with what makes it match the whole value.
func TestAnExpressionThatNestsDeeplyIsRefusedOrServed(t *testing.T) {
	for name, part := range map[string][3]string{
		"optional": {"(?:a", "b", ")?"}, "alternative": {"(?:a|", "b", "c)"}, "captured": {"(", "a", ")"}, "repeated": {"(?:", "ab", ")*b"},
	} {
		for _, depth := range []int{1, 100, 498, 499, 500, 501, 998, 999, 1000, 1001} {
			text := strings.Repeat(part[0], depth) + part[1] + strings.Repeat(part[2], depth)
			rule := table.Rule{Name: "deep", Host: "deep.test", Direct: answer, Headers: []table.ValueMatch{{Name: "X-A", Type: table.MatchRegularExpression, Value: &text}}}
			_, problems := table.Compile(table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: []table.Rule{rule}})
			checked, _ := table.Check(&rule)
			if (len(problems) > 0) != (checked != nil) {
				t.Errorf("%s, %d deep: compiled with %d problems, and checked with %v", name, depth, len(problems), checked)
			}
			if depth <= 100 && len(problems) > 0 || depth > 1000 && len(problems) == 0 {
				t.Errorf("%s, %d deep: %d problems", name, depth, len(problems))
			}
		}
	}
}
