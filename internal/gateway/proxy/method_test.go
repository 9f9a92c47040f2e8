package proxy

import "testing"

func TestAMethodThatIsAStandardOneButForItsCaseIsRefused(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, `
- {methods: [GET, POST, PATCH], directResponse: {statusCode: 403}}
- {backendService: {name: app, port: 80}}`, backend)
	for method, code := range map[string]string{
		"GET": "403", "get": "400", "Get": "400", "pOST": "400", "patch": "400", "options": "400", "Delete": "400", "connect": "400", "trace": "400", "hEAD": "400", "put": "400",
		"PROPFIND": "200", "propfind": "200", "GETS": "200", "M-SEARCH": "200", "HEAD": "200",
	} {
		response, _ := g.raw(method + " / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		want(t, method, status(response), code)
		f := g.frames()
		f.open(1, true, ":method", method, ":scheme", "http", ":authority", "a", ":path", "/")
		want(t, method+" of HTTP/2", f.outcome(1), code)
		if code == "200" {
			want(t, "method at the backend", (<-requests).Method, method)
			want(t, "method at the backend", (<-requests).Method, method)
		}
	}
	want(t, "requests that were left", len(requests), 0)
}
