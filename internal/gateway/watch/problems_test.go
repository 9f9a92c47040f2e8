package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// problemsOf are so many problems of an object.
func problemsOf(route int, object, reason, message string, n int) []document.Problem {
	var list []document.Problem
	for i := range n {
		list = append(list, document.Problem{Route: route, Name: object, Field: fmt.Sprintf("HTTPRoute %s: rules[%d]", object, i), Reason: reason, Message: message})
	}
	return list
}

func TestProblemsOfADocumentAreBounded(t *testing.T) {
	short := func(list []document.Problem) []string {
		var lines []string
		for _, p := range list {
			lines = append(lines, fmt.Sprintf("%d %s %s %s %s", p.Route, p.Name, p.Field, p.Reason, p.Message))
		}
		return lines
	}
	of := problemsOf
	for name, tc := range map[string]struct{ in, want []document.Problem }{
		"none": {},
		"few":  {in: of(-1, "a/x", "A", "m", 16), want: of(-1, "a/x", "A", "m", 16)},
		"too many of one object": {
			in: slices.Concat(of(-1, "a/x", "A", "m", 18), of(-1, "a/y", "A", "m", 1)),
			want: slices.Concat(of(-1, "a/x", "A", "m", 16),
				[]document.Problem{{Route: -1, Name: "a/x", Field: "HTTPRoute a/x", Reason: "A", Message: "there are 2 more problems of it"}}, of(-1, "a/y", "A", "m", 1)),
		},
		"another reason behind too many of one object": {
			in: slices.Concat(of(-1, "a/x", "A", "m", 17), of(-1, "a/x", "B", "m", 2)),
			want: slices.Concat(of(-1, "a/x", "A", "m", 16), of(-1, "a/x", "B", "m", 1),
				[]document.Problem{{Route: -1, Name: "a/x", Field: "HTTPRoute a/x", Reason: "A", Message: "there are 2 more problems of it"}}),
		},
		"too long": {
			in:   []document.Problem{{Route: 1, Reason: "A", Message: strings.Repeat("x", maxMessage+1)}},
			want: []document.Problem{{Route: 1, Reason: "A", Message: strings.Repeat("x", maxMessage-3) + "..."}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(short(tc.want), short(boundProblems(tc.in))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// What is left out must not make a condition better than it is.
func TestWhatConditionsAreMadeFromIsAlwaysTold(t *testing.T) {
	var in []document.Problem
	for object := range 2000 {
		in = append(in, problemsOf(-1, fmt.Sprintf("a/x%d", object), "A", "m", 20)...)
	}
	long := strings.Repeat("<", maxMessage) // each takes six bytes in JSON
	for route := range 1000 {
		in = append(in, problemsOf(route, "route", fmt.Sprintf("R%d", route), long, 20)...)
	}
	in = append(in, problemsOf(-1, "edge", slipwayv1alpha1.ReasonLimitNotShared, long, 1)...)
	got := boundProblems(in)
	if diff := cmp.Diff(got, boundProblems(in)); diff != "" {
		t.Errorf("it differs from time to time:\n%s", diff)
	}
	written, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	// Each of the 1,000 routes is told, one problem with each of two reasons, and how many there are.
	if len(written) > maxProblemBytes || len(got) > 1003 {
		t.Errorf("%d problems in %d bytes", len(got), len(written))
	}
	routes, reasons := map[int]string{}, map[string]bool{}
	for _, p := range got {
		if _, told := routes[p.Route]; !told && p.Route >= 0 {
			routes[p.Route] = p.Reason
		}
		if p.Route < 0 {
			reasons[p.Reason] = true
		}
	}
	for route := range 1000 {
		if want := fmt.Sprintf("R%d", route); routes[route] != want {
			t.Fatalf("the reason of route %d is %q, want %q", route, routes[route], want)
		}
	}
	if diff := cmp.Diff(map[string]bool{"A": true, slipwayv1alpha1.ReasonLimitNotShared: true}, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if last := got[len(got)-1]; last.Message != fmt.Sprintf("there are %d more problems", len(in)-1002) {
		t.Errorf("the last one is %+v", last)
	}
}

// There is a word of each object before there is more of any, as long as there is room.
func TestLongProblemsTakeTheRoomOfFewerOthers(t *testing.T) {
	long := strings.Repeat("<", maxMessage)
	in := slices.Concat(problemsOf(-1, "a/first", "A", long, 16), problemsOf(-1, "b/second", "A", "m", 1))
	for object := range 100 {
		in = append(in, problemsOf(-1, fmt.Sprintf("c/x%d", object), "A", long, 1)...)
	}
	got := boundProblems(in)
	written, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(written); n > maxProblemBytes || n < maxProblemBytes-10*maxMessage {
		t.Errorf("%d problems in %d bytes", len(got), n)
	}
	var names []string
	for _, p := range got[:3] {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"a/first", "b/second", "c/x0"}, names); diff != "" {
		t.Errorf("the first ones (-want +got):\n%s", diff)
	}
	if want := fmt.Sprintf("there are %d more problems", len(in)-len(got)+1); got[len(got)-1].Message != want {
		t.Errorf("the last one says %q, want %q", got[len(got)-1].Message, want)
	}
}

// Whoever may write routes in one namespace must not decide what is known of those of others.
func TestATenantWithManyProblemsLeavesRoomForOthers(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	var rules strings.Builder
	for rule := range 16 {
		fmt.Fprintf(&rules, "{matches: [{path: {value: /%d}}], backendRefs: [", rule)
		for backend := range 16 {
			fmt.Fprintf(&rules, "{name: missing-%s-%d-%d, port: 80}, ", strings.Repeat("x", 40), rule, backend)
		}
		rules.WriteString("]}, ")
	}
	routes := []any{routeTo(t, "b", "good", 1), gatewayAPIObject(t, "b", "bad", 1, `{parentRefs: [{name: edge, namespace: infra}], rules: [{backendRefs: [{name: gone, port: 80}]}]}`)}
	for i := range 20 {
		routes = append(routes, gatewayAPIObject(t, "a", fmt.Sprintf("route-%02d", i), 1, `{parentRefs: [{name: edge, namespace: infra}], hostnames: [h`+fmt.Sprint(i)+`.example.com], rules: [`+rules.String()+`]}`))
	}
	f.synced(routes...)
	f.look(t.Context())
	f.backend("a")
	f.backend("b")
	f.look(t.Context())
	got := f.board.Current()
	written, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Problems); n != 20*(maxOfObject+1)+1 || len(written) > maxProblemBytes {
		t.Errorf("%d problems, %d bytes", n, len(written))
	}
	if !slices.ContainsFunc(got.Problems, func(p document.Problem) bool { return p.Name == "b/bad" }) {
		t.Error("the problem of the other tenant is not told")
	}
	if !slices.Contains(got.Routes, document.RouteDigest("b/good", 1)) {
		t.Errorf("the route of the other tenant is not told: %q", got.Routes)
	}
}

// A route with more problems than are told has one all the same.
func TestRoutesOfAnAPIGatewayWithManyProblems(t *testing.T) {
	f := newFixture(t)
	var routes []string
	for i := range 1000 {
		routes = append(routes, fmt.Sprintf("{name: r%d, host: h%d.example.com, backendService: {name: gone-%s-%d, port: 80}}", i, i, strings.Repeat("x", 40), i))
	}
	f.spec("u", 1, `{tls: [{secretRef: {name: tls}}], routes: [`+strings.Join(routes, ", ")+`]}`)
	f.synced()
	f.look(t.Context())
	f.must(f.stores["tls"].Replace(nil, ""))
	f.look(t.Context())
	got := f.options.Board.Current()
	written, err := json.Marshal(got.Problems)
	if err != nil {
		t.Fatal(err)
	}
	failing, general := map[int]bool{}, 0
	for _, p := range got.Problems {
		if p.Route < 0 {
			general++
			continue
		}
		failing[p.Route] = true
	}
	if len(failing) != 1000 || general != 1 || len(written) > maxProblemBytes {
		t.Errorf("%d routes and %d others are told, in %d bytes", len(failing), general, len(written))
	}
}

func TestOnlyNewProblemsAreLogged(t *testing.T) {
	var out bytes.Buffer
	f := newFixture(t)
	f.log = slog.New(slog.NewTextHandler(&out, nil))
	says := func(wantLines int, wantMore string, problems ...document.Problem) {
		t.Helper()
		out.Reset()
		f.tell(document.Document{Problems: problems})
		if got := strings.Count(out.String(), "not served as it is written"); got != wantLines || !strings.Contains(out.String(), wantMore) {
			t.Errorf("%d lines, want %d:\n%.2000s", got, wantLines, out.String())
		}
	}
	first, many := problemsOf(0, "r", "A", "m", 3), problemsOf(1, "s", "A", "m", maxLogged+5)
	says(3, "", first...)
	says(1, "", append(problemsOf(2, "t", "A", "m", 1), first...)...)
	says(maxLogged+1, "problems=5", append(first, many...)...)
	says(0, "", many...)
}
