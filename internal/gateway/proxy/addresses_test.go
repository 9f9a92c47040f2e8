package proxy

import (
	"net/http"
	"net/netip"
	"testing"
)

// What a client says of itself does not decide where it comes from. What a trusted proxy says does, and where it does not say it,
// nobody is let in.
func TestOnlyClientsFromTheRightAddressesAreLetIn(t *testing.T) {
	const routes = `
- {path: /inside, backendService: {name: app, port: 80}, clientAddresses: {allow: [192.0.2.0/24, "2001:db8::/32"]}}
- {path: /outside, backendService: {name: app, port: 80}, clientAddresses: {deny: [127.0.0.0/8, 192.0.2.0/24]}, cors: {allowOrigins: ["*"]}}
- {path: /local, backendService: {name: app, port: 80}, clientAddresses: {allow: [127.0.0.1]}}
- {path: /moved, redirect: {path: /}, clientAddresses: {deny: [127.0.0.1]}}
- {path: /open, backendService: {name: app, port: 80}}
`
	backend, requests := recording(t)
	g := start(t, Options{}, routes, backend)
	ask := func(t *testing.T, path, said string) int {
		t.Helper()
		fields := []string{}
		if said != "none" {
			fields = []string{"X-Forwarded-For", said, "X-Real-IP", "192.0.2.1", "Forwarded", "for=192.0.2.1"}
		}
		response, _ := g.get(path, fields...)
		if response.StatusCode == http.StatusOK {
			<-requests
		}
		return response.StatusCode
	}
	for name, tc := range map[string]struct {
		path, said string
		// alone is the answer to a client, and behind is that to a proxy that is trusted.
		alone, behind int
	}{
		"the client is inside":             {"/inside", "192.0.2.1", 403, 200},
		"it is inside, by IPv6":            {"/inside", "2001:db8::1", 403, 200},
		"it is inside, by mapped IPv4":     {"/inside", "::ffff:192.0.2.1", 403, 200},
		"it is outside":                    {"/inside", "203.0.113.1", 403, 403},
		"it says that it is inside":        {"/inside", "192.0.2.1, 203.0.113.1", 403, 403},
		"a second proxy is trusted":        {"/inside", "192.0.2.1, 10.0.0.1", 403, 200},
		"the proxy says nothing":           {"/local", "none", 200, 200},
		"the proxy says no address":        {"/local", "unknown", 200, 403},
		"the proxy says an empty one":      {"/local", "", 200, 403},
		"an address with a port":           {"/local", "127.0.0.1:80", 200, 403},
		"no address behind a second proxy": {"/local", "unknown, 10.0.0.1", 200, 403},
		"a denied client":                  {"/outside", "192.0.2.1", 403, 403},
		"a client that is not denied":      {"/outside", "203.0.113.1", 403, 200},
		"nobody knows who, and not denied": {"/outside", "unknown", 403, 403},
		"an answer of the gateway":         {"/moved", "none", 403, 403},
		"a path that leads there":          {"/open/..;/inside", "203.0.113.1", 400, 400},
		"anybody":                          {"/open", "unknown", 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			g.handler.Set(Config{Table: compile(t, routes, nil, backend)})
			want(t, "alone", ask(t, tc.path, tc.said), tc.alone)
			g.handler.Set(Config{
				Table:          compile(t, routes, nil, backend),
				TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")},
			})
			want(t, "behind a trusted proxy", ask(t, tc.path, tc.said), tc.behind)
		})
	}
	g.handler.Set(Config{Table: compile(t, routes, nil, backend)})
	response, _ := g.send(g.request("OPTIONS", "/outside", "Origin", "https://a.test", "Access-Control-Request-Method", "GET"))
	want(t, "preflight", response.StatusCode, 403)
}
