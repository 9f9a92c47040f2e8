package table_test

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// routes parses routes as a user writes them.
func routes(t testing.TB, text string) []slipwayv1alpha1.Route {
	t.Helper()
	var parsed []slipwayv1alpha1.Route
	if err := yaml.UnmarshalStrict([]byte(text), &parsed); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return parsed
}

// answering adds an action to routes that have none.
func answering(in []slipwayv1alpha1.Route) []slipwayv1alpha1.Route {
	for i := range in {
		r := &in[i]
		if r.BackendService == nil && r.Backends == nil && r.Redirect == nil && r.DirectResponse == nil {
			r.DirectResponse = &slipwayv1alpha1.DirectResponse{StatusCode: 200}
		}
	}
	return in
}

// compile compiles routes that must have no problem.
func compile(t testing.TB, in apiroutes.Input) *table.Table {
	t.Helper()
	compiled, problems := apiroutes.Compile(in)
	if len(problems) > 0 {
		t.Fatalf("problems: %+v", problems)
	}
	return compiled
}

// request parses a request such as "GET http://a.example.com/x?y=z", and headers such as
// "X-Canary: yes".
func request(t testing.TB, line string, headers ...string) *table.Request {
	t.Helper()
	method, address, _ := strings.Cut(line, " ")
	parsed, err := http.NewRequest(method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		parsed.Header.Add(name, value)
	}
	path, err := table.ParsePath(parsed.URL.EscapedPath())
	if err != nil {
		t.Fatal(err)
	}
	host, err := table.ParseHost(parsed.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &table.Request{
		Method: parsed.Method, Host: host.Name, Path: path.Match, RawQuery: parsed.URL.RawQuery, Header: parsed.Header,
	}
}

// picks reports whether the route has a backend for a request.
func picks(route *table.Route) bool {
	backend, _ := route.Pick(7)
	return backend != nil
}

// nameOf returns the name of a route, or "" for nil.
func nameOf(route *table.Route) string {
	if route == nil {
		return ""
	}
	return route.Name
}
