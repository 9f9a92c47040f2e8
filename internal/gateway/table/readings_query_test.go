package table_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// queryModel tells how a server reads path and query, if it decodes the path before it
// looks for the question mark.
type queryModel struct {
	name string
	read func(path, query string) (string, string, bool)
}

var queryModels = []queryModel{
	{"a proxy that sends on what it decoded", func(path, query string) (string, string, bool) { return splitAgain(path, query, "?", 1) }},
	{"a proxy that sends it on decoded twice", func(path, query string) (string, string, bool) { return splitAgain(path, query, "?", 2) }},
	{"a rewrite that appends the query", func(path, query string) (string, string, bool) { return splitAgain(path, query, "&", 1) }},
	{"a rewrite that appends it, decoded twice", func(path, query string) (string, string, bool) { return splitAgain(path, query, "&", 2) }},
	{"a rewrite that drops the query", func(path, query string) (string, string, bool) { return splitAgain(path, query, "", 1) }},
	{"a path that ends there", func(path, query string) (string, string, bool) {
		path, _, ok := splitAgain(path, "", "", 1)
		return path, query, ok
	}},
	{"two that send on what they decoded", func(path, query string) (string, string, bool) {
		path, query, ok := splitAgain(path, query, "?", 1)
		if !ok {
			return "", "", false
		}
		return splitAgain(path, query, "?", 1)
	}},
	{"text of C", func(path, query string) (string, string, bool) {
		path, ok := percent(path, nil)
		if ok {
			path, ok = percent(path, nil)
		}
		if query != "" {
			path += "?" + query
		}
		path, query, _ = strings.Cut(path, "?")
		path, _, _ = strings.Cut(path, "\x00")
		query, _, _ = strings.Cut(query, "\x00")
		return path, query, ok
	}},
}

// splitAgain decodes a path, joins it with the query, and splits the result. If join is
// empty, the query is dropped when the path has one already.
func splitAgain(path, query, join string, times int) (string, string, bool) {
	for range times {
		decoded, ok := percent(path, nil)
		if !ok {
			return "", "", false
		}
		path = decoded
	}
	if !strings.Contains(path, "?") {
		join = "?"
	}
	if query != "" && join != "" {
		path += join + query
	}
	path, _, _ = strings.Cut(path, "#")
	path, query, _ = strings.Cut(path, "?")
	path, ok := undotted(merged(path), false)
	return path, query, ok
}

// guardedByQuery generates routes that look at the query. Some of them require a key.
func (d *draw) guardedByQuery() []slipwayv1alpha1.Route {
	out := make([]slipwayv1alpha1.Route, 2+d.below(4))
	for i := range out {
		route := slipwayv1alpha1.Route{
			Path:           pick(d, "/", "/", "/", "/x", "/private"),
			PathType:       slipwayv1alpha1.PathPrefix,
			BackendService: &slipwayv1alpha1.BackendService{Name: "users", Port: 8080},
		}
		for _, name := range pick(d, []string{}, []string{}, []string{"m"}, []string{"m"}, []string{"a", "m"}, []string{"a b"}) {
			route.QueryParams = append(route.QueryParams, slipwayv1alpha1.QueryParamMatch{Name: name, Value: pick(d, nil, new("1"), new("1"), new("2"))})
		}
		if secret := pick(d, "", "a", "b"); secret != "" {
			route.Auth = &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: secret}}}
		}
		out[i] = route
	}
	return out
}

// queryTarget generates a path with a hidden query, and a query.
func (d *draw) queryTarget() (path, query string) {
	text := "/" + pick(d, "", "x", "x/", "private", "y")
	for range 1 + d.below(6) {
		text += pick(d,
			"%3F", "%3F", "%3f", "%253F", "%23", "%2523", "%2500", "m=1", "m%3D1", "m%253D1", "%6d=1", "%256d=1", "m=2", "m", "a=1", "a%20b", "a%2Bb=1", "%26", "%26", "&", "%2526",
			"/", "/x", "/..", "%2F", ";", "1", "z")
	}
	return text, pick(d, "", "", "m=1", "m=2", "a=1", "a=2&m=1", "z=1&m=1", "m", "a+b=1", "%6d=1", "m;m=1", "z?m=1", "#")
}

// checkQueries checks that a target that gets through reaches, in no model, a route that
// requires another key.
func checkQueries(t *testing.T, in []slipwayv1alpha1.Route, compiled *table.Table, target, query string) (goesOn bool) {
	t.Helper()
	path, err := table.ParsePath(target)
	if err != nil || strings.Contains(query, "#") {
		return false
	}
	r := &table.Request{Method: "GET", Host: "a.test", Path: path.Match, RawQuery: query, Header: http.Header{}}
	route := compiled.Match(r)
	if route == nil || !compiled.ReadAlike(r, path, route) {
		return false
	}
	asked := keyOf(&in[route.Index])
	for _, model := range queryModels {
		readPath, readQuery, ok := model.read(path.Forward, query)
		if !ok {
			continue
		}
		at := reference(in, &table.Request{Method: "GET", Host: "a.test", Path: readPath, RawQuery: readQuery, Header: http.Header{}})
		if at < 0 && strings.Contains(readPath, "//") {
			continue // no route matches an empty segment
		}
		if at < 0 || (keyOf(&in[at]) != "" && keyOf(&in[at]) != asked) {
			written, _ := yaml.Marshal(in)
			t.Fatalf("%s?%s goes to route %d; %s reads %q and %q, and would have it at route %d of\n%s", target, query, route.Index, model.name, readPath, readQuery, at, written)
		}
	}
	return true
}

func TestNoQueryInAPathGetsAroundAKey(t *testing.T) {
	const tables, targets = 250, 200
	random := rand.New(rand.NewPCG(23, 29))
	went := 0
	for range tables {
		in := random64(random).guardedByQuery()
		compiled := compileGuarded(t, in)
		for range targets {
			target, query := random64(random).queryTarget()
			if checkQueries(t, in, compiled, target, query) {
				went++
			}
		}
	}
	if went < tables*targets/10 {
		t.Errorf("of %d targets %d go on: this shows too little", tables*targets, went)
	}
}

func FuzzQueries(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), "/x%3Fm=1", "z=1")
	f.Fuzz(func(t *testing.T, choices []byte, target, query string) {
		d := draw(choices)
		in := d.guardedByQuery()
		compiled := compileGuarded(t, in)
		checkQueries(t, in, compiled, target, query)
		drawn, behind := d.queryTarget()
		checkQueries(t, in, compiled, drawn, behind)
	})
}

// Here the query decides between an open route and one that requires a key.
func TestAQueryInAPathIsReadAsOne(t *testing.T) {
	const closed = `
- {path: /, backendService: {name: users, port: 8080}}
- {path: /, queryParams: [{name: mode, value: admin}], auth: {apiKey: {secretRef: {name: a}}}, backendService: {name: users, port: 8080}}
- {path: /, queryParams: [{name: a, value: '1'}, {name: b, value: '2'}], auth: {apiKey: {secretRef: {name: a}}}, backendService: {name: users, port: 8080}}`
	const open = `
- {path: /, auth: {apiKey: {secretRef: {name: a}}}, backendService: {name: users, port: 8080}}
- {path: /, queryParams: [{name: mode, value: public}], backendService: {name: users, port: 8080}}`
	const noQuery = `
- {path: /, backendService: {name: users, port: 8080}}`
	for _, test := range []struct {
		routes, path, query string
		want                bool
	}{
		{closed, "/x%3Fmode=admin", "", false},
		{closed, "/x%3Fmode%3Dadmin", "", false},
		{closed, "/x%3Fz%26mode%3Dadmin", "", false},
		{closed, "/x%3Fmode=admin", "mode=user", false},
		{closed, "/x%253Fmode=admin", "", false},
		{closed, "/x%253Fz%2526mode%253Dadmin", "", false},
		{closed, "/x%3F%256dode=admin", "", false}, // a name that is decoded with the path and once more
		{closed, "/x%3Fmode=admin%23z", "", false},
		{closed, "/x%3Fmode=admin%2500z", "", false},
		{closed, "/x%3Fa=1", "b=2", false}, // one half in each
		{closed, "/x%3Fa=1", "", true},
		{closed, "/x%3Fmode=adminz", "", true},
		{closed, "/x%3Fmode=user", "mode=user", true},
		{closed, "/x%2Fmode=admin", "", true},
		{closed, "/x%3Fnext=/y", "state=" + strings.Repeat("s", 16<<10), true},
		{closed, "/x;v=1//y%2Fz", "state=" + strings.Repeat("s", 16<<10), true},
		{closed, "/x%3Fnext=/y", "mode=" + strings.Repeat("s", 60<<10), false}, // too long for several readings
		{open, "/x%23", "mode=public", false},                                  // a fragment removes the query
		{open, "/x%3Fz", "mode=public", false},
		{open, "/x%3Fmode=public", "mode=public", false}, // some servers read "public?mode=public"
		{open, "/x%2Fz", "mode=public", true},
		{noQuery, "/x%3Fmode=admin%23z", "mode=public", true},
	} {
		compiled := compileGuarded(t, routes(t, test.routes))
		path, err := table.ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		r := request(t, "GET http://a.test/")
		r.Path, r.RawQuery = path.Match, test.query
		found := compiled.Match(r)
		if found.Auth != nil {
			t.Fatalf("%s?%.30s asks for a key already", test.path, test.query)
		}
		if got := compiled.ReadAlike(r, path, found); got != test.want {
			t.Errorf("%s?%.30s goes on: %v, want %v", test.path, test.query, got, test.want)
		}
	}
}
