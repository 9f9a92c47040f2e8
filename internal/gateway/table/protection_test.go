package table_test

import (
	"strings"
	"testing"

	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Each case has the route that answers and the route of another reading. It says which
// protections they may have. A backend that decodes slashes reads /a/..%2Fb as /b.
func TestAReadingMayAskForNoMoreThanTheRouteThatAnswers(t *testing.T) {
	const keyed = "auth: {apiKey: {secretRef: {name: a}}}"
	tests := map[string]struct {
		answers, other string
		want           bool
	}{
		"nothing and nothing":                {"", "", true},
		"other backends and timeouts":        {"timeouts: {request: 1s}", "retries: {attempts: 0}", true},
		"other headers of the response":      {"", "responseHeaders: {remove: [Server]}", true},
		"nothing and a key":                  {"", keyed, false},
		"a key and nothing":                  {keyed, "", true},
		"a key and the same":                 {keyed, keyed, true},
		"a key and that of others":           {keyed, "auth: {apiKey: {secretRef: {name: b}}}", false},
		"a key and the same elsewhere":       {keyed, "auth: {apiKey: {secretRef: {name: a}, header: X-Other}}", false},
		"a key and a token":                  {keyed, "auth: {jwt: {issuer: i, jwksURL: 'https://i.test/keys'}}", false},
		"nothing and a limit":                {"", "rateLimit: {requests: 5}", false},
		"a limit and the same":               {"rateLimit: {requests: 5}", "rateLimit: {requests: 5, period: 1s}", true},
		"a limit and another":                {"rateLimit: {requests: 50}", "rateLimit: {requests: 5}", false},
		"a limit and nothing":                {"rateLimit: {requests: 5}", "", true},
		"any body and a small one":           {"", "maxBodyBytes: 10", false},
		"a large body and a small one":       {"maxBodyBytes: 20", "maxBodyBytes: 10", false},
		"a small body and a large one":       {"maxBodyBytes: 10", "maxBodyBytes: 20", true},
		"nothing and addresses":              {"", "clientAddresses: {allow: [10.0.0.0/8]}", false},
		"addresses and nothing":              {"clientAddresses: {allow: [10.0.0.0/8]}", "", true},
		"addresses and the same":             {"clientAddresses: {deny: [10.0.0.0/8]}", "clientAddresses: {deny: [10.0.0.0/8]}", true},
		"addresses and others":               {"clientAddresses: {allow: [10.0.0.0/8]}", "clientAddresses: {allow: [10.0.0.0/9]}", false},
		"a header that is set for one":       {"requestHeaders: {set: [{name: X-Internal, value: 'yes'}]}", "", false},
		"a header that is removed for one":   {"", "requestHeaders: {remove: [X-Internal]}", false},
		"a header for both":                  {"requestHeaders: {remove: [X-Internal]}", "requestHeaders: {remove: [X-Internal]}", true},
		"other origins":                      {"cors: {allowOrigins: ['*']}", "", false},
		"origins that the other allows":      {"cors: {allowOrigins: ['*']}", "cors: {allowOrigins: ['*']}", true},
		"origins of the other":               {"", "cors: {allowOrigins: ['*']}", true},
		"a route that cannot be served":      {"", "auth: {apiKey: {secretRef: {name: missing}}}", false},
		"a route that answers by itself":     {"", "directResponse: {statusCode: 403}", false},
		"a redirect":                         {"", "redirect: {path: /c}", false},
		"a method that the other is not for": {"", "methods: [POST]", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			route := func(path, fields string) string {
				if !strings.Contains(fields, "directResponse") && !strings.Contains(fields, "redirect") {
					fields += ", backendService: {name: users, port: 8080}"
				}
				return "- {path: " + path + ", " + strings.TrimPrefix(fields, ", ") + "}\n"
			}
			compiled, _ := apiroutes.Compile(apiroutes.Input{
				Routes: routes(t, route("/a", tc.answers)+route("/b", tc.other)), Services: services(),
				Secrets: map[string]map[string][]byte{
					"a": {"x": []byte("sha256:" + strings.Repeat("a", 64))},
					"b": {"x": []byte("sha256:" + strings.Repeat("b", 64))},
				},
			})
			path, err := table.ParsePath("/a/..%2Fb")
			if err != nil {
				t.Fatal(err)
			}
			r := request(t, "GET http://a.test/a")
			r.Path = path.Match
			found := compiled.Match(r)
			if found == nil || found.Index != 0 {
				t.Fatalf("%+v answers", found)
			}
			if got := compiled.ReadAlike(r, path, found); got != tc.want {
				t.Errorf("goes on: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestARewrittenPathStaysBelowItsPrefix(t *testing.T) {
	for target, want := range map[string]bool{
		"/a/x":               true,
		"/a/x%2Fy;z":         true,
		"/a/x%2F..%2Fy":      true,
		"/a/x/..%2Fy":        true,
		"/a/..%2Fy":          false, // outside of the new prefix
		"/a/..%2F..%2Fy":     false,
		"/a/..;/y":           false,
		"/a/%252e%252e/y":    false,
		"/a/..%2Fnew%2Fy":    true,
		`/a/..\y`:            false,
		"/a/%c0%ae%c0%ae/y":  false,
		"/a;/../../y":        true, // nothing is left to be read differently
		"/a/x%2F..%2F..%2Fy": false,
	} {
		compiled := compile(t, apiroutes.Input{Services: services(), Routes: routes(t, `
- {path: /, backendService: {name: users, port: 8080}}
- {path: /a, rewrite: {pathPrefix: /api/new}, backendService: {name: users, port: 8080}}`)})
		path, err := table.ParsePath(target)
		if err != nil {
			t.Fatal(err)
		}
		r := request(t, "GET http://a.test/")
		r.Path = path.Match
		if got := compiled.ReadAlike(r, path, compiled.Match(r)); got != want {
			t.Errorf("%s goes on: %v, want %v", target, got, want)
		}
	}
}
