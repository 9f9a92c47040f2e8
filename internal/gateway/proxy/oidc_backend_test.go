package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// forged are fields of a backend that would give a browser the session of somebody else, or end its own one. A cookie without a
// name comes back as its value, which may look like a name and a value.
var forged = []string{
	"slipway-oidc-x.s0=1.evil; Path=/",
	"__Host-slipway-oidc-x.s0=1.evil; Path=/; Secure",
	"__host-SLIPWAY-oidc-x.l0=evil",
	" \tslipway-oidc-x.s1=evil",
	"slipway-oidc-x.s0=; Max-Age=0",
	"=slipway-oidc-x.s0=1.evil",
	"=__Host-slipway-oidc-x.s0=1.evil",
	"slipway-oidc-x.s0",
	"a=b, slipway-oidc-x.s0=1.evil",
}

func TestABackendCannotSetOurCookies(t *testing.T) {
	p := newProvider(t)
	backend := listen(t, func(conn net.Conn) {
		for readRequest(conn) {
			var fields strings.Builder
			for _, cookie := range forged {
				fmt.Fprintf(&fields, "Set-Cookie: %s\r\n", cookie)
			}
			fields.WriteString("Set-Cookie: own=1\r\nClear-Site-Data: \"cache\"\r\nClear-Site-Data: \"storage\", \"cookies\"\r\nClear-Site-Data: \"*\"\r\n")
			_, _ = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n"+fields.String()+"\r\n"+
				"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"+fields.String()+"\r\n0\r\nX-End: 1\r\n"+fields.String()+"\r\n")
		}
	})
	open := "\n- {name: open, path: /open, backendService: {name: app, port: 80}}\n"
	g := startTable(t, Options{}, compile(t, p.route()+open, p.secrets(), backend))
	text := g.exchangeRaw("GET /open HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n")
	if strings.Contains(strings.ToLower(text), "slipway-oidc-") || strings.Contains(text, `"cookies"`) || strings.Contains(text, `"*"`) {
		t.Errorf("got %s", text)
	}
	want(t, "its own cookies", strings.Count(text, "Set-Cookie: own=1"), 2)
	want(t, "what else it clears", strings.Count(text, `Clear-Site-Data: "cache", "storage", "cache", "clientHints", "executionContexts", "prefetchCache", "prerenderCache", "storage"`), 2)
	want(t, "heads", strings.Count(text, "HTTP/1.1 103")+strings.Count(text, "HTTP/1.1 200"), 2)
}

func TestAServiceThatIsAskedCannotSetOurCookies(t *testing.T) {
	a := startAsking(t, "", func(w http.ResponseWriter, _ *http.Request) {
		for _, cookie := range append([]string{"own=1"}, forged...) {
			w.Header().Add("Set-Cookie", cookie)
		}
		w.WriteHeader(http.StatusForbidden)
	})
	response, _ := a.get("/", "Cookie", "theme=dark; slipway-oidc-x.s0=1.secret")
	want(t, "status", response.StatusCode, http.StatusForbidden)
	want(t, "cookies", join(response.Header["Set-Cookie"]), "own=1")
	want(t, "cookies for the Service", join(received(t, a.asked).Header["Cookie"]), "theme=dark")
}

func TestAMirrorGetsNoSession(t *testing.T) {
	p := newProvider(t)
	backend, requests := recording(t)
	g := startTable(t, Options{}, compile(t, p.route()+"  mirrors: [{backendService: {name: h2, port: 80}}]\n", p.secrets(), backend))
	alice := newPerson(t, g)
	want(t, "status", alice.open("/").StatusCode, http.StatusOK)
	g.handler.features.mirror.Wait()
	for range 2 {
		want(t, "cookies", join(received(t, requests).Header["Cookie"]), "")
	}
	trailers := "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: Cookie\r\nCookie: " + cookiesOf(alice) +
		"\r\n\r\n0\r\nCookie: " + cookiesOf(alice) + "\r\n\r\n"
	if text := g.exchangeRaw(trailers); !strings.HasPrefix(text, "HTTP/1.1 200") {
		t.Fatal(text)
	}
	got := received(t, requests)
	want(t, "cookies in trailers", join(got.Header["Cookie"])+join(got.Trailer["Cookie"]), "")
}

// readRequest reads a request without a body. It returns false at the end of the connection.
func readRequest(conn net.Conn) bool {
	request, err := http.ReadRequest(bufio.NewReader(conn))
	return err == nil && request.Body.Close() == nil
}
