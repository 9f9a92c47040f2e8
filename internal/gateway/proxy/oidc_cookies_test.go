package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// renewing is a gateway whose backend answers as it likes, and the cookies of a session that is due to be renewed.
func renewing(t *testing.T, route string, backend http.HandlerFunc) (*gateway, string) {
	p := newProvider(t)
	clock := testingclock.NewFakeClock(time.Now())
	g := startTable(t, Options{Clock: clock}, compile(t, p.route()+route, p.secrets(), serve(t, backend)))
	alice := newPerson(t, g)
	alice.open("/login")
	clock.Step(601 * time.Second)
	return g, cookiesOf(alice)
}

// A cache in front must not give the renewed session to somebody else, whatever the backend and the route say.
func TestARenewedSessionReachesTheBrowserAlone(t *testing.T) {
	g, cookies := renewing(t, `  responseHeaders: {remove: [Set-Cookie], set: [{name: Cache-Control, value: "public, max-age=60"}]}`+"\n",
		func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range []string{"Cache-Control", "CDN-Cache-Control", "Surrogate-Control", "X-Accel-Expires"} {
				w.Header().Set(name, "max-age=60")
			}
		})
	response, _ := g.get("/", "Cookie", cookies, "Accept", "*/*")
	want(t, "status", response.StatusCode, http.StatusOK)
	want(t, "a session is set", strings.Contains(join(response.Header["Set-Cookie"]), ".s0=1."), true)
	want(t, "cache", join(response.Header["Cache-Control"]), "no-store")
	for _, name := range []string{"Cdn-Cache-Control", "Surrogate-Control", "X-Accel-Expires"} {
		want(t, name, join(response.Header[name]), "")
	}
}

// A backend keeps a page from being compressed that has a secret in it.
func TestARenewedSessionLeavesAPageUncompressed(t *testing.T) {
	g, cookies := renewing(t, "  compression: {minBytes: 1}\n", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "private, No-Transform")
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, strings.Repeat("secret ", 100))
	})
	response, _ := g.get("/", "Cookie", cookies, "Accept", "*/*", "Accept-Encoding", "gzip")
	want(t, "a session is set", strings.Contains(join(response.Header["Set-Cookie"]), ".s0=1."), true)
	want(t, "coding", join(response.Header["Content-Encoding"]), "")
	want(t, "cache", join(response.Header["Cache-Control"]), "no-store, no-transform")
}

func TestARenewedSessionComesWithAnUpgrade(t *testing.T) {
	g, cookies := renewing(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\nCache-Control: public\r\nSet-Cookie: slipway-oidc-x.s0=1.evil\r\n\r\n")
	})
	head := g.exchangeRaw("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: test\r\nCookie: " + cookies + "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 101") || strings.Count(head, "Set-Cookie: ") != 1 || strings.Contains(head, "evil") || !strings.Contains(head, ".s0=1.") || !strings.Contains(head, "Cache-Control: no-store") {
		t.Errorf("got %q", head)
	}
}

// A head before the answer must not carry the session either: intermediaries treat it in their own ways.
func TestAHeadBeforeTheAnswerCarriesNoSession(t *testing.T) {
	g, cookies := renewing(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
	})
	text := g.exchangeRaw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: " + cookies + "\r\n\r\n")
	early, final, _ := strings.Cut(text, "\r\n\r\n")
	if !strings.HasPrefix(early, "HTTP/1.1 103") || strings.Contains(early, "Set-Cookie") || !strings.Contains(final, ".s0=1.") {
		t.Errorf("got %s", text)
	}
}
