package apigateway_test

import (
	"fmt"
	"strings"
	"testing"
)

// loginOf and plainOf are routes of a host and a path, with and without a log-in. more are more fields.
func loginOf(host, path string) string {
	return fmt.Sprintf(`{host: %q, path: %s, backendService: {name: app, port: 80}, auth: {oidc: {issuer: %q, clientID: shop, clientSecretRef: {name: login, key: secret}}}}`, host, path, issuer)
}

func plainOf(host, path string, more ...string) string {
	fields := append([]string{fmt.Sprintf("path: %s, backendService: {name: app, port: 80}", path)}, more...)
	if host != "" {
		fields = append(fields, fmt.Sprintf("host: %q", host))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// A route for a host of its own decides about that host. It must not switch off the log-ins of the hosts beside it.
func TestALogInOfManyHostsIsJudgedForEach(t *testing.T) {
	const narrower = `InvalidRoute: auth.oidc.redirectPath: requests for "/oauth2/callback" of host %q do not come`
	for name, test := range map[string]struct {
		routes []string
		want   string
	}{
		"a wildcard alone":                      {[]string{loginOf("*.example.com", "/")}, ""},
		"a host of another route":               {[]string{loginOf("*.example.com", "/"), plainOf("any.example.com", "/")}, ""},
		"a host with the path of the log-in":    {[]string{loginOf("*.example.com", "/"), plainOf("a.example.com", "/oauth2")}, fmt.Sprintf(narrower, "a.example.com")},
		"a path of a host beside the log-in":    {[]string{loginOf("*.example.com", "/"), plainOf("a.example.com", "/shop")}, ""},
		"a narrower wildcard":                   {[]string{loginOf("*.example.com", "/"), plainOf("*.a.example.com", "/oauth2")}, fmt.Sprintf(narrower, "*.a.example.com")},
		"a host of another domain":              {[]string{loginOf("*.example.com", "/"), plainOf("a.example.net", "/oauth2")}, ""},
		"a host whose log-in it is":             {[]string{loginOf("*.example.com", "/"), loginOf("a.example.com", "/oauth2")}, ""},
		"a wider route with the path":           {[]string{loginOf("*.example.com", "/office"), plainOf("", "/oauth2")}, `InvalidRoute: auth.oidc.redirectPath: requests for "/oauth2/callback" do not come to this route`},
		"a path that no request of it comes to": {[]string{loginOf("*.example.com", "/shop"), loginOf("*.example.com", "/oauth2"), plainOf("a.example.com", "/shop"), plainOf("a.example.com", "/oauth2")}, ""},
		"a route by a header":                   {[]string{loginOf("*.example.com", "/"), plainOf("*.example.com", "/", `headers: [{name: X-Canary, value: "yes"}]`)}, ""},
		"a route by a parameter":                {[]string{loginOf("*.example.com", "/"), plainOf("*.example.com", "/", `queryParams: [{name: canary, value: "yes"}]`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := problemOf(t, "["+strings.Join(test.routes, ", ")+"]", login(issuer, "0123456789abcdef"))
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
