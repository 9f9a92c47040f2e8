package table_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

func TestRewriteGivesTheBackendItsPath(t *testing.T) {
	tests := map[string]struct{ route, path, want string }{
		"prefix":                       {"{path: /users, rewrite: {pathPrefix: /v2}}", "/users/1", "/v2/1"},
		"prefix itself":                {"{path: /users, rewrite: {pathPrefix: /v2}}", "/users", "/v2"},
		"prefix and slash":             {"{path: /users, rewrite: {pathPrefix: /v2}}", "/users/", "/v2/"},
		"slashes at both ends":         {"{path: /users/, rewrite: {pathPrefix: /v2/}}", "/users/1", "/v2/1"},
		"new slash":                    {"{path: /users, rewrite: {pathPrefix: /v2/}}", "/users", "/v2/"},
		"strip":                        {"{path: /users, rewrite: {pathPrefix: /}}", "/users/1/2", "/1/2"},
		"strip all":                    {"{path: /users, rewrite: {pathPrefix: /}}", "/users", "/"},
		"put before":                   {"{path: /, rewrite: {pathPrefix: /v2}}", "/users/1", "/v2/users/1"},
		"put before the root":          {"{path: /, rewrite: {pathPrefix: /v2}}", "/", "/v2/"},
		"escapes in the rest stay":     {"{path: /a/b, rewrite: {pathPrefix: /x}}", "/a/b/c%2Fd%20e", "/x/c%2Fd%20e"},
		"escapes in the prefix":        {"{path: /a/b, rewrite: {pathPrefix: /x}}", "/%61/b/c", "/x/c"},
		"empty segments in the prefix": {"{path: /a/b, rewrite: {pathPrefix: /x}}", "//a///b/c", "/x/c"},
		"path":                         {"{path: /a, rewrite: {path: /x/y}}", "/a/b/c", "/x/y"},
		"host alone":                   {"{path: /a, rewrite: {host: b.example.com}}", "/a/%62", "/a/%62"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := routes(t, "["+tc.route+"]")
			in[0].BackendService = &slipwayv1alpha1.BackendService{Name: "users", Port: 8080}
			compiled := compile(t, apiroutes.Input{Routes: in, Services: services()})
			path, err := table.ParsePath(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := compiled.Routes[0].Rewrite.Path(path); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHeadersAreRemovedThenSetThenAdded(t *testing.T) {
	edit := model.HeaderEdit{
		Remove: []string{"X-Gone", "X-Both"},
		Set:    []model.HeaderField{{Name: "X-Set", Value: "new"}},
		Add:    []model.HeaderField{{Name: "X-Both", Value: "new"}, {Name: "X-More", Value: "two"}},
	}
	got := http.Header{"X-Gone": {"a"}, "X-Both": {"a"}, "X-Set": {"a", "b"}, "X-More": {"one"}, "X-Other": {"a"}}
	edit.Apply(got)
	want := http.Header{"X-Both": {"new"}, "X-Set": {"new"}, "X-More": {"one", "two"}, "X-Other": {"a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestRedirectKeepsWhatIsNotSet(t *testing.T) {
	tests := map[string]struct{ redirect, scheme, host, path, query, want string }{
		"scheme":                  {"{scheme: https}", "http", "a.example.com", "/x", "y=z", "https://a.example.com/x?y=z"},
		"scheme takes its port":   {"{scheme: https}", "http", "a.example.com:8080", "/", "", "https://a.example.com/"},
		"host":                    {"{host: b.example.com}", "http", "a.example.com", "/x", "", "http://b.example.com/x"},
		"host keeps the port":     {"{host: b.example.com}", "http", "a.example.com:8080", "/x", "", "http://b.example.com:8080/x"},
		"port":                    {"{port: 8443, scheme: https}", "http", "a.example.com:8080", "/x", "", "https://a.example.com:8443/x"},
		"port that needs no word": {"{port: 443, scheme: https}", "http", "a.example.com", "/x", "", "https://a.example.com/x"},
		"port 443 without TLS":    {"{port: 443}", "http", "a.example.com", "/x", "", "http://a.example.com:443/x"},
		"path":                    {"{path: /y}", "https", "a.example.com", "/x", "a=b", "https://a.example.com/y?a=b"},
		"IPv6":                    {"{port: 81}", "http", "[::1]:80", "/x", "", "http://[::1]:81/x"},
		"IPv6 without port":       {"{scheme: https}", "http", "[::1]", "/x", "", "https://[::1]/x"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, apiroutes.Input{Routes: routes(t, "[{redirect: "+tc.redirect+"}]")})
			redirect := compiled.Routes[0].Redirect
			if got := redirect.Location(tc.scheme, tc.host, 9000, tc.path, tc.query); got != tc.want || redirect.StatusCode != http.StatusFound {
				t.Errorf("got %d %q, want 302 %q", redirect.StatusCode, got, tc.want)
			}
		})
	}
}

func TestCORSLetsInTheOriginsThatAreNamed(t *testing.T) {
	tests := map[string]struct {
		origins, origin, want string
	}{
		"all":                        {"['*']", "https://a.example.com", "*"},
		"named":                      {"['https://a.example.com']", "https://a.example.com", "https://a.example.com"},
		"other":                      {"['https://a.example.com']", "https://b.example.com", ""},
		"other scheme":               {"['https://a.example.com']", "http://a.example.com", ""},
		"other port":                 {"['https://a.example.com']", "https://a.example.com:8443", ""},
		"below a wildcard":           {"['https://*.example.com']", "https://b.a.example.com", "https://b.a.example.com"},
		"name of a wildcard":         {"['https://*.example.com']", "https://example.com", ""},
		"nothing below a wildcard":   {"['https://*.example.com']", "https://.example.com", ""},
		"wildcard in another's name": {"['https://*.example.com']", "https://evil.com/.example.com", ""},
		"wildcard behind a user":     {"['https://*.example.com']", "https://evil.com@x.example.com", ""},
		"wildcard with port":         {"['https://*.example.com:8443']", "https://a.example.com:8443", "https://a.example.com:8443"},
		"opaque":                     {"['https://*.example.com']", "null", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, apiroutes.Input{Routes: answering(routes(t, "[{methods: [PUT], cors: {allowOrigins: "+tc.origins+", allowHeaders: [X-A, X-B]}}]"))})
			cors := compiled.Routes[0].CORS
			if got, ok := cors.AllowOrigin(tc.origin); got != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, tc.want)
			}
			if cors.AllowMethods != "PUT" || cors.AllowHeaders != "X-A, X-B" || cors.ExposeHeaders != "" || cors.MaxAge != "5" {
				t.Errorf("the rest is %+v", cors)
			}
		})
	}
}

func TestBackendsShareRequestsByWeight(t *testing.T) {
	tests := map[string]struct {
		backends string
		want     map[string]int // of 1000 requests
	}{
		"equal":                  {"[{name: users, port: 8080}, {name: chat, port: 9000}]", map[string]int{"users:8080": 500, "chat:9000": 500}},
		"weighted":               {"[{name: users, port: 8080, weight: 9}, {name: chat, port: 9000, weight: 1}]", map[string]int{"users:8080": 900, "chat:9000": 100}},
		"nothing for one":        {"[{name: users, port: 8080, weight: 1}, {name: chat, port: 9000, weight: 0}]", map[string]int{"users:8080": 1000}},
		"the others stand in":    {"[{name: users, port: 8080, weight: 1}, {name: idle, port: 8080, weight: 9}]", map[string]int{"users:8080": 1000}},
		"nobody stands in for 0": {"[{name: idle, port: 8080, weight: 1}, {name: users, port: 8080, weight: 0}]", map[string]int{"": 1000}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			compiled, _ := apiroutes.Compile(apiroutes.Input{Routes: routes(t, "[{backends: "+tc.backends+"}]"), Services: services()})
			got := map[string]int{}
			for random := range uint64(1000) {
				id := ""
				if backend, _ := compiled.Routes[0].Pick(random); backend != nil {
					id = backend.ID
				}
				got[id]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// In a blue-green pair the idle side is scaled to zero on purpose.
func TestABackendWithoutWeightNeedsNoEndpoints(t *testing.T) {
	compile(t, apiroutes.Input{Services: services(), Routes: routes(t, `
- backends: [{name: users, port: 8080, weight: 1}, {name: idle, port: 8080, weight: 0}]
- {path: /m, backendService: {name: users, port: 8080}, mirror: {percent: 0, backendService: {name: idle, port: 8080}}}`)})
}
