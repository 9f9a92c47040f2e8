package table_test

import (
	"testing"

	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// In each case the expected route is the last one in the spec, so that it does not win by
// its position. If the position decides, the expected route comes first.
func TestOfTheRoutesThatMatchTheMostSpecificAnswers(t *testing.T) {
	const get = "GET http://api.example.com/users/1?v=2"
	tests := map[string]struct {
		routes  string
		request string
		headers []string
	}{
		"a host before any host": {`
- {name: other, path: /users/1, pathType: Exact}
- {name: wins, host: api.example.com}`, get, nil},
		"a host before a wildcard": {`
- {name: other, host: "*.example.com", path: /users/1, pathType: Exact}
- {name: wins, host: api.example.com}`, get, nil},
		"a wildcard before any host": {`
- {name: other, path: /users/1, pathType: Exact}
- {name: wins, host: "*.example.com"}`, get, nil},
		"a longer wildcard before a shorter": {`
- {name: other, host: "*.com", path: /users/1, pathType: Exact}
- {name: wins, host: "*.example.com"}`, get, nil},
		"a less specific host where the more specific has no such path": {`
- {name: other, host: api.example.com, path: /products}
- {name: another, host: "*.example.com", path: /products}
- {name: wins}`, get, nil},
		"Exact before RegularExpression": {`
- {name: other, path: /users/.+, pathType: RegularExpression}
- {name: wins, path: /users/1, pathType: Exact}`, get, nil},
		"Exact before Prefix of the same length": {`
- {name: other, path: /users/1}
- {name: wins, path: /users/1, pathType: Exact}`, get, nil},
		"RegularExpression before a longer Prefix": {`
- {name: other, path: /users/1}
- {name: wins, path: /u.+, pathType: RegularExpression}`, get, nil},
		"the longer RegularExpression": {`
- {name: other, path: /users/.*, pathType: RegularExpression}
- {name: wins, path: "/users/[0-9]+", pathType: RegularExpression}`, get, nil},
		"the longer Prefix": {`
- {name: shortest}
- {name: other, path: /users}
- {name: wins, path: /users/1}`, get, nil},
		"a slash at the end makes a Prefix no longer": {`
- {name: wins, path: /users}
- {name: other, path: /users/}`, get, nil},
		"the path before methods, headers and query": {`
- {name: other, methods: [GET], headers: [{name: X-A, value: a}], queryParams: [{name: v}]}
- {name: wins, path: /users}`, get, []string{"X-A: a"}},
		"a shorter Prefix where the longer asks for more": {`
- {name: other, path: /users/1, methods: [POST]}
- {name: another, path: /users, headers: [{name: X-A}]}
- {name: wins}`, get, nil},
		"a method before none": {`
- {name: other}
- {name: wins, methods: [GET]}`, get, nil},
		"a method before more headers": {`
- {name: other, headers: [{name: X-A}, {name: X-B}]}
- {name: wins, methods: [GET]}`, get, []string{"X-A: a", "X-B: b"}},
		"the number of methods does not count": {`
- {name: wins, methods: [GET]}
- {name: other, methods: [GET, POST]}`, get, nil},
		"more headers": {`
- {name: other, headers: [{name: X-A}]}
- {name: wins, headers: [{name: X-A}, {name: X-B}]}`, get, []string{"X-A: a", "X-B: b"}},
		"headers before query parameters": {`
- {name: other, queryParams: [{name: v}, {name: w}]}
- {name: wins, headers: [{name: X-A}]}`, get + "&w=1", []string{"X-A: a"}},
		"more query parameters": {`
- {name: other, queryParams: [{name: v}]}
- {name: wins, queryParams: [{name: v}, {name: w}]}`, get + "&w=1", nil},
		"the first of equals": {`
- {name: wins, queryParams: [{name: v}]}
- {name: other, queryParams: [{name: w}]}`, get + "&w=1", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, apiroutes.Input{Routes: answering(routes(t, tc.routes))})
			if got := nameOf(compiled.Match(request(t, tc.request, tc.headers...))); got != "wins" {
				t.Errorf("%q answers", got)
			}
		})
	}
}

func TestARouteMatchesWhatItSaysAndNothingElse(t *testing.T) {
	tests := map[string]struct {
		route   string
		request string
		headers []string
		want    bool
	}{
		"no host": {"{}", "GET http://anything/", nil, true},
		"host with port, upper case and final dot": {"{host: a.example.com}", "GET http://A.Example.com.:8080/", nil, true},
		"other host":                       {"{host: a.example.com}", "GET http://b.example.com/", nil, false},
		"below a host":                     {"{host: a.example.com}", "GET http://b.a.example.com/", nil, false},
		"below a wildcard":                 {`{host: "*.example.com"}`, "GET http://a.example.com/", nil, true},
		"far below a wildcard":             {`{host: "*.example.com"}`, "GET http://b.a.example.com/", nil, true},
		"the name of a wildcard":           {`{host: "*.example.com"}`, "GET http://example.com/", nil, false},
		"a name that ends like a wildcard": {`{host: "*.example.com"}`, "GET http://badexample.com/", nil, false},
		"IPv6 address and any host":        {"{}", "GET http://[::1]:8080/", nil, true},

		"prefix itself":                  {"{path: /users}", "GET http://a/users", nil, true},
		"prefix with a slash":            {"{path: /users}", "GET http://a/users/", nil, true},
		"below a prefix":                 {"{path: /users}", "GET http://a/users/1/2", nil, true},
		"prefix is not text":             {"{path: /users}", "GET http://a/usersx", nil, false},
		"above a prefix":                 {"{path: /users/1}", "GET http://a/users", nil, false},
		"prefix that ends in a slash":    {"{path: /users/}", "GET http://a/users", nil, true},
		"below one that ends in a slash": {"{path: /users/}", "GET http://a/users/1", nil, true},
		"prefix in another case":         {"{path: /users}", "GET http://a/Users", nil, false},
		"escaped prefix":                 {"{path: /users}", "GET http://a/%75sers/1", nil, true},
		"prefix with dots":               {"{path: /users}", "GET http://a/x/../users/1", nil, true},
		"out of a prefix with dots":      {"{path: /users}", "GET http://a/users/%2e%2E/admin", nil, false},
		"prefix with empty segments":     {"{path: /users/all}", "GET http://a//users///all", nil, true},
		"escaped slash is no slash":      {"{path: /users/all}", "GET http://a/users%2Fall", nil, false},
		"escape in the spec":             {`{path: "/a%20b"}`, "GET http://a/a%20b/c", nil, true},
		"any path":                       {"{}", "GET http://a/x/y", nil, true},
		"exact":                          {"{path: /users, pathType: Exact}", "GET http://a/users", nil, true},
		"exact and a slash":              {"{path: /users, pathType: Exact}", "GET http://a/users/", nil, false},
		"below exact":                    {"{path: /users, pathType: Exact}", "GET http://a/users/1", nil, false},
		"exact root":                     {"{path: /, pathType: Exact}", "GET http://a/", nil, true},
		"expression":                     {"{path: '/v[0-9]+/.*', pathType: RegularExpression}", "GET http://a/v12/x", nil, true},
		"expression is for the whole":    {"{path: '/v[0-9]+', pathType: RegularExpression}", "GET http://a/v12/x", nil, false},
		"alternatives are for the whole": {"{path: '/a|/b', pathType: RegularExpression}", "GET http://a/bc", nil, false},

		"method":       {"{methods: [GET, HEAD]}", "HEAD http://a/", nil, true},
		"other method": {"{methods: [GET]}", "POST http://a/", nil, false},
		"preflight for a method of a route with cors": {
			"{methods: [PUT], cors: {allowOrigins: ['*']}}", "OPTIONS http://a/", []string{"Access-Control-Request-Method: PUT"}, true,
		},
		"preflight for another method": {
			"{methods: [PUT], cors: {allowOrigins: ['*']}}", "OPTIONS http://a/", []string{"Access-Control-Request-Method: GET"}, false,
		},
		"preflight for a route without cors": {"{methods: [PUT]}", "OPTIONS http://a/", []string{"Access-Control-Request-Method: PUT"}, false},
		"OPTIONS that is no preflight":       {"{methods: [PUT], cors: {allowOrigins: ['*']}}", "OPTIONS http://a/", nil, false},

		"header":                     {"{headers: [{name: x-canary, value: 'yes'}]}", "GET http://a/", []string{"X-Canary: yes"}, true},
		"one of a header's values":   {"{headers: [{name: X-Canary, value: 'yes'}]}", "GET http://a/", []string{"X-Canary: no", "X-Canary: yes"}, true},
		"header of another value":    {"{headers: [{name: X-Canary, value: 'yes'}]}", "GET http://a/", []string{"X-Canary: Yes"}, false},
		"missing header":             {"{headers: [{name: X-Canary}]}", "GET http://a/", nil, false},
		"header of any value":        {"{headers: [{name: X-Canary}]}", "GET http://a/", []string{"X-Canary: "}, true},
		"header without a value":     {"{headers: [{name: X-Canary, value: ''}]}", "GET http://a/", []string{"X-Canary: a"}, false},
		"header by expression":       {"{headers: [{name: X-Canary, value: 'y.*', type: RegularExpression}]}", "GET http://a/", []string{"X-Canary: yes"}, true},
		"header by part of one":      {"{headers: [{name: X-Canary, value: 'y', type: RegularExpression}]}", "GET http://a/", []string{"X-Canary: yes"}, false},
		"all headers":                {"{headers: [{name: X-A}, {name: X-B}]}", "GET http://a/", []string{"X-A: a"}, false},
		"parameter":                  {"{queryParams: [{name: v, value: '2'}]}", "GET http://a/?u=1&v=2", nil, true},
		"parameter of another value": {"{queryParams: [{name: v, value: '2'}]}", "GET http://a/?v=3", nil, false},
		"the first parameter counts": {"{queryParams: [{name: v, value: '2'}]}", "GET http://a/?v=3&v=2", nil, false},
		"parameter in another case":  {"{queryParams: [{name: v}]}", "GET http://a/?V=3", nil, false},
		"parameter without a value":  {"{queryParams: [{name: v}]}", "GET http://a/?v", nil, true},
		"escaped parameter":          {"{queryParams: [{name: a b, value: 'c d'}]}", "GET http://a/?a+b=c%20d", nil, true},
		"parameter by expression":    {"{queryParams: [{name: v, value: '[0-9]+', type: RegularExpression}]}", "GET http://a/?v=12", nil, true},
		"missing parameter":          {"{queryParams: [{name: v}]}", "GET http://a/?w=v", nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, apiroutes.Input{Routes: answering(routes(t, "["+tc.route+"]"))})
			if got := compiled.Match(request(t, tc.request, tc.headers...)) != nil; got != tc.want {
				t.Errorf("matches: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMatchingAPlainRouteAllocatesNothing(t *testing.T) {
	compiled := compile(t, apiroutes.Input{Routes: answering(routes(t, `
- {name: any, host: "*.example.com"}
- {name: users, host: api.example.com, path: /users}
- {name: canary, host: api.example.com, path: /users, methods: [GET], headers: [{name: X-Canary, value: "yes"}], queryParams: [{name: v, value: "2"}]}
`))})
	for name, r := range map[string]*table.Request{
		"any":    request(t, "GET http://deep.www.example.com:8080/x/y"),
		"users":  request(t, "GET http://api.example.com/users/12?v=2"),
		"canary": request(t, "GET http://api.example.com/users/12?u=1&v=2", "X-Canary: yes"),
		"":       request(t, "GET http://localhost/"),
	} {
		if got := nameOf(compiled.Match(r)); got != name {
			t.Fatalf("%q answers, want %q", got, name)
		}
		allocations := testing.AllocsPerRun(100, func() {
			path, _ := table.ParsePath(r.Path)
			compiled.Match(&table.Request{Method: r.Method, Host: r.Host, Path: path.Match, RawQuery: r.RawQuery, Header: r.Header})
		})
		if allocations != 0 {
			t.Errorf("%q: %v allocations", name, allocations)
		}
	}
}
