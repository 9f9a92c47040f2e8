package table_test

import (
	"net/http"
	"strings"
	"testing"

	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// A backend may read a text without its control characters, or each of its lines alone. So a request with one goes on only where no
// route of its host asks for more.
func TestAControlCharacterGetsAroundNoKey(t *testing.T) {
	const key = "auth: {apiKey: {secretRef: {name: a}}}, "
	const app = "backendService: {name: users, port: 8080}"
	const admin = "[{path: '/v[0-9]+/admin(/.*)?', pathType: RegularExpression, " + key + app + "}, {path: /, " + app + "}]"
	const open = "[{path: '/open/.*', pathType: RegularExpression, " + app + "}, {path: /, " + key + app + "}]"
	const exact = "[{path: /admin, pathType: Exact, " + key + app + "}, {path: /, " + app + "}]"
	const query = "[{path: /, " + app + "}, {path: /, queryParams: [{name: m, value: 'adm(in)?', type: RegularExpression}], " + key + app + "}]"
	const header = "[{path: /, " + app + "}, {path: /, headers: [{name: X-M, value: 'adm(in)?', type: RegularExpression}], " + key + app + "}]"
	const part = "[{path: /api, " + app + "}, {path: /api/x, " + app + "}]"
	const posts = "[{path: /, methods: [POST], " + app + "}, {path: /api, " + app + "}]"
	const free = "[{path: /, " + app + "}, {path: '/x.*', pathType: RegularExpression, " + app + "}, {path: /, queryParams: [{name: m, value: x}], " + app + "}]"
	const elsewhere = "[{path: /, host: a.test, " + app + "}, {path: /, host: b.test, " + key + app + "}]"
	const wildcard = "[{path: /, host: a.test, " + app + "}, {path: /, host: '*.test', " + key + app + "}]"
	const anyHost = "[{path: /, host: a.test, " + app + "}, {path: /x, " + key + app + "}]"
	const broken = "[{path: /, " + app + "}, {path: /x, auth: {apiKey: {secretRef: {name: missing}}}, " + app + "}]"
	const redirect = "[{path: /old, redirect: {path: /new}}, {path: /, " + app + "}]"
	const login = "[{path: '/v[0-9]+/admin(/.*)?', pathType: RegularExpression, redirect: {path: /log-in}}, {path: /, " + app + "}]"
	const asked = "[{path: /, queryParams: [{name: m, value: 'adm(in)?', type: RegularExpression}], redirect: {path: /log-in}}, {path: /, " + app + "}]"
	const named = "[{path: /, headers: [{name: X-M, value: 'adm(in)?', type: RegularExpression}], redirect: {path: /log-in}}, {path: /, " + app + "}]"
	const direct = "[{path: /robots.txt, directResponse: {statusCode: 200}}, {path: /, " + app + "}]"
	const blocked = "[{path: /admin, directResponse: {statusCode: 403}}, {path: /, " + app + "}]"
	const removes = "[{path: /a, requestHeaders: {remove: [X-Role]}, " + app + "}, {path: /, " + app + "}]"
	const sets = "[{path: /a, " + app + "}, {path: /, requestHeaders: {set: [{name: X-Area, value: a}]}, " + app + "}]"
	const ofBackend = "[{path: /a, backends: [{name: users, port: 8080, requestHeaders: {remove: [X-Role]}}]}, {path: /, " + app + "}]"
	const alike = "[{path: /a, requestHeaders: {remove: [X-Role]}, " + app + "}, {path: /, requestHeaders: {remove: [X-Role]}, " + app + "}]"
	const moved = "[{path: /old, redirect: {path: /new}}, {path: /, requestHeaders: {remove: [X-Role]}, cors: {allowOrigins: ['*']}, " + app + "}]"
	const origins = "[{path: /a, " + app + "}, {path: /, cors: {allowOrigins: ['*']}, " + app + "}]"
	const fewer = "[{path: /a, cors: {allowOrigins: ['*']}, " + app + "}, {path: /, " + app + "}]"
	const inside = "[{path: /old, clientAddresses: {allow: [10.0.0.0/8]}, redirect: {path: /new}}, {path: /, " + app + "}]"
	const limited = "[{path: /a, rateLimit: {requests: 5}, " + app + "}, {path: /, " + app + "}]"
	const small = "[{path: /a, maxBodyBytes: 10, " + app + "}, {path: /, " + app + "}]"
	for _, test := range []struct {
		name, routes, path, query, header string
		want                              bool
	}{
		{name: "a last line feed", routes: admin, path: "/v1/admin%0a"},
		{name: "it is escaped twice", routes: admin, path: "/v1/admin%250a"},
		{name: "both digits are escaped", routes: admin, path: "/v1/admin%25%30%61"},
		{name: "in overlong UTF-8", routes: admin, path: "/v1/admin%c0%8a"},
		{name: "in overlong UTF-8, escaped twice", routes: admin, path: "/v1/admin%25c0%258a"},
		{name: "an overlong percent sign", routes: admin, path: "/v1/admin%c0%a50a"},
		{name: "an escape of IIS", routes: admin, path: "/v1/admin%25u000A"},
		{name: "a return", routes: admin, path: "/v1/admin%0D"},
		{name: "both", routes: admin, path: "/v1/admin%0d%0a"},
		{name: "another control character", routes: admin, path: "/v1/admin%1f"},
		{name: "a tab", routes: admin, path: "/v1/admin%09"},
		{name: "delete", routes: admin, path: "/v1/admin%7F"},
		{name: "a next line", routes: admin, path: "/v1/admin%C2%85"},
		{name: "a next line, not escaped", routes: admin, path: "/v1/admin\u0085"},
		{name: "a next line of Latin-1", routes: admin, path: "/v1/admin%85"},
		{name: "a line separator", routes: admin, path: "/v1/admin%e2%80%a8"},
		{name: "a paragraph separator of IIS", routes: admin, path: "/v1/admin%25u2029"},
		{name: "before parameters", routes: admin, path: "/v1/admin%0a;x"},
		{name: "in parameters", routes: admin, path: "/v1/admin;x%0a"},
		{name: "before a slash", routes: admin, path: "/v1/admin%0a/"},
		{name: "a line of its own", routes: admin, path: "/x%0a/v1/admin"},
		{name: "before what is resolved", routes: admin, path: "/v1/admin%0a/x/.."},
		{name: "in what is resolved", routes: admin, path: "/x%0a/../v1/adminx"},
		{name: "in a query that the path hides", routes: query, path: "/x%3Fm=admin%0a"},
		{name: "a dot that is no line end", routes: open, path: "/open/%0a"},
		{name: "an exact path", routes: exact, path: "/admin%0a"},
		{name: "a value", routes: query, path: "/", query: "m=admin%0a"},
		{name: "a value of another parameter", routes: query, path: "/", query: "n=x%0a", want: true},
		{name: "a value that is not the first", routes: query, path: "/", query: "m=x&m=admin%0a"},
		{name: "a value, escaped twice", routes: query, path: "/", query: "m=x%250a"},
		{name: "a name", routes: query, path: "/", query: "m%0a=admin"},
		{name: "a name, before a tab", routes: query, path: "/", query: "%09m=admin"},
		{name: "a field", routes: header, path: "/", header: "admin\u0085"},
		{name: "a field of Latin-1", routes: header, path: "/", header: "admin\x85"},
		{name: "a tab in a field", routes: header, path: "/", header: "x\tadmin", want: true},
		{name: "a tab and a line feed in a field", routes: header, path: "/", header: "x\t\nadmin"},
		{name: "a field as it should be", routes: header, path: "/", header: "x\u0105", want: true},
		{name: "not every path has a route", routes: part, path: "/api/%0a/private"},
		{name: "not every method has a route", routes: posts, path: "/api/%0a"},
		{name: "a route that cannot be served", routes: broken, path: "/%0a"},
		{name: "the key of a wildcard", routes: wildcard, path: "/%0a"},
		{name: "the key of every host", routes: anyHost, path: "/x%0a"},
		{name: "nothing is protected", routes: free, path: "/x%0a%C2%85/%250d", query: "m=%0a", want: true},
		{name: "nothing of this host is protected", routes: elsewhere, path: "/%0a", want: true},
		{name: "a redirect", routes: redirect, path: "/notes/a%0Ab", want: true},
		{name: "a direct answer", routes: direct, path: "/notes/a%0Ab", want: true},
		{name: "what is redirected, before a line feed", routes: redirect, path: "/old%0a"},
		{name: "what is redirected, below a line feed", routes: redirect, path: "/old%0a/x"},
		{name: "what is redirected, escaped twice", routes: redirect, path: "/old%250d%250a"},
		{name: "an expression that is redirected", routes: login, path: "/v1/admin%c2%85"},
		{name: "a value that is redirected", routes: asked, path: "/", query: "m=admin%0a"},
		{name: "a field that is redirected", routes: named, path: "/", header: "admin\u0085"},
		{name: "another value than one that is redirected", routes: asked, path: "/", query: "n=x%0a", want: true},
		{name: "what is answered directly, before a line separator", routes: direct, path: "/robots.txt%e2%80%a8"},
		{name: "what is answered directly, around a zero byte of overlong UTF-8", routes: direct, path: "/robots%c0%80.txt"},
		{name: "a header that the other backend does not get", routes: removes, path: "/notes/a%0Ab"},
		{name: "a header that it gets beside", routes: sets, path: "/notes/a%0Ab"},
		{name: "headers of a backend", routes: ofBackend, path: "/notes/a%0Ab"},
		{name: "the same headers", routes: alike, path: "/notes/a%0Ab", want: true},
		{name: "headers that no other backend gets", routes: moved, path: "/notes/a%0Ab", want: true},
		{name: "more origins", routes: origins, path: "/notes/a%0Ab"},
		{name: "fewer origins", routes: fewer, path: "/notes/a%0Ab", want: true},
		{name: "an error for everybody", routes: blocked, path: "/admin%0a"},
		{name: "a redirect with addresses", routes: inside, path: "/notes/a%0Ab"},
		{name: "a limit", routes: limited, path: "/notes/a%0Ab"},
		{name: "a bound for bodies", routes: small, path: "/notes/a%0Ab"},
		{name: "letters", routes: admin, path: "/v1/%C4%85\u0105/%E2%80%A6%80%ff", want: true},
		{name: "a percent sign", routes: admin, path: "/100%25/20%2520", want: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			compiled, _ := apiroutes.Compile(apiroutes.Input{
				Routes: routes(t, test.routes), Services: services(),
				Secrets: map[string]map[string][]byte{"a": {"x": []byte("sha256:" + strings.Repeat("a", 64))}},
			})
			path, err := table.ParsePath(test.path)
			if err != nil {
				t.Fatal(err)
			}
			r := &table.Request{Method: http.MethodGet, Host: "a.test", Path: path.Match, RawQuery: test.query, Header: http.Header{}}
			if test.header != "" {
				r.Header = http.Header{"X-M": {test.header}}
			}
			found := compiled.Match(r)
			if found == nil || found.Auth != nil && test.name != "a dot that is no line end" && test.name != "the key of every host" {
				t.Fatalf("route %+v answers, which shows nothing", found)
			}
			if got := compiled.ReadAlike(r, path, found); got != test.want {
				t.Errorf("goes on: %v, want %v", got, test.want)
			}
		})
	}
}

// A route with a control character in its path would get no request where another one asks for more.
func TestAPathOfTheSpecHasNoControlCharacter(t *testing.T) {
	for _, path := range []string{"/a%0a", "/a%250a", "/a%7f/b", "/a%C2%85", "/a%c0%8a"} {
		_, problems := apiroutes.Compile(apiroutes.Input{
			Routes: routes(t, "[{path: '"+path+"', backendService: {name: users, port: 8080}}]"), Services: services(),
		})
		if len(problems) != 1 {
			t.Errorf("%s: %+v", path, problems)
		}
	}
}
