package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// keyed is an API with open and protected routes. Each protected route has its own keys.
const keyed = `
- {host: a, path: /, backendService: {name: app, port: 80}}
- {host: a, path: /private, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}
- {host: a, path: /other, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: others}}}}
- {host: a, path: /api/v1, backendService: {name: app, port: 80}}
- {host: a, path: /api/v1/admin, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}
- {host: a, path: /secret/.*, pathType: RegularExpression, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}
- {host: all.test, path: /, backendService: {name: app, port: 80}}
- {host: all.test, path: /x, backendService: {name: app, port: 80}}
- {host: part.test, path: /public, backendService: {name: app, port: 80}}
- {host: part.test, path: /old, backendService: {name: app, port: 80}, rewrite: {pathPrefix: /new/api}}
- {host: part.test, path: /limited, backendService: {name: app, port: 80}, rateLimit: {requests: 1, period: 1h}}
- {host: part.test, path: /small, backendService: {name: app, port: 80}, maxBodyBytes: 10}
- {host: part.test, path: /closed, directResponse: {statusCode: 403}}
- {host: part.test, path: /broken, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: missing}}}}
- {host: part.test, path: /open, backendService: {name: app, port: 80}}
`

func keySecret(key string) map[string][]byte {
	sum := sha256.Sum256([]byte(key))
	return map[string][]byte{"somebody": []byte("sha256:" + hex.EncodeToString(sum[:]))}
}

// startKeyed starts a gateway with the routes of keyed. It also returns the targets that
// the backend receives, as they are on the wire.
func startKeyed(t *testing.T) (*gateway, chan string) {
	t.Helper()
	targets := make(chan string, 1000)
	backend := listen(t, func(conn net.Conn) {
		head := make([]byte, 64<<10)
		for n := 0; ; {
			more, err := conn.Read(head[n:])
			if err != nil {
				return
			}
			if n += more; !strings.HasSuffix(string(head[:n]), "\r\n\r\n") {
				continue
			}
			line, _, _ := strings.Cut(string(head[:n]), " HTTP/1.1\r\n")
			_, target, _ := strings.Cut(line, " ")
			targets <- target
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			n = 0
		}
	})
	secrets := map[string]map[string][]byte{"keys": keySecret("k"), "others": keySecret("o")}
	return startTable(t, Options{}, compile(t, keyed, secrets, backend)), targets
}

// ask sends a target over HTTP/1.1 and over HTTP/2. It returns both answers, each with the
// target that the backend received.
func (g *gateway) ask(targets chan string, host, target string, fields ...string) (http1, http2 string) {
	g.t.Helper()
	came := func() string {
		select {
		case target := <-targets:
			return " " + target
		default:
			return ""
		}
	}
	head := "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n"
	pseudo := []string{":method", "GET", ":scheme", "http", ":authority", host, ":path", target}
	for i := 0; i < len(fields); i += 2 {
		head += fields[i] + ": " + fields[i+1] + "\r\n"
		pseudo = append(pseudo, strings.ToLower(fields[i]), fields[i+1])
	}
	response, _ := g.raw(head + "\r\n")
	http1 = status(response) + came()
	f := g.frames()
	defer f.conn.Close()
	f.open(1, true, pseudo...)
	http2 = f.outcome(1) + came()
	return http1, http2
}

func TestNobodyGetsAroundAKeyByAnotherSpelling(t *testing.T) {
	g, targets := startKeyed(t)
	for _, test := range []struct{ host, target, key string }{
		{"a", "/;%2Fx/private/x", ""},
		{"a", "/;%5Cx/private/x", ""},
		{"a", `/;\x/private/x`, ""},
		{"a", "/%3B%2Fx/private/x", ""},
		{"a", "/api/v1;%2Fx/admin/x", ""},
		{"a", "/api/v1;%5Cx/admin/x", ""},
		{"a", "/api;/v1/admin/x", ""},
		{"a", "/private;v=1/x", ""},
		{"a", "/private;/x", ""},
		{"a", "/api/v1/admin;v=1", "k"}, // the parameter belongs to the segment that requires the key
		{"a", "/private%3Bv=1/x", ""},
		{"a", "/x/..;/private/x", ""},
		{"a", "/x/..%3B/private/x", ""},
		{"a", "/x/.;/../private/x", ""},
		{"a", "/x/..%2Fprivate/x", ""},
		{"a", "/x%2F..%2Fprivate/x", ""},
		{"a", "/x%2F%2e%2e%2Fprivate", ""},
		{"a", `/x/..\private/x`, ""},
		{"a", `/x\..\private\x`, ""},
		{"a", `/\private/x`, ""},
		{"a", "/%5Cprivate/x", ""},
		{"a", "/%2Fprivate/x", ""},
		{"a", "/private%2Fx", ""},
		{"a", "/private%5Cx", ""},
		{"a", "/x//../private/x", ""},
		{"a", "//x/private/x", ""},
		{"a", "/%252e%252e/private/x", ""},
		{"a", "/x/%252e%252e%252Fprivate/x", ""},
		{"a", "/%2570rivate/x", ""},
		{"a", "/x%252F..%252Fprivate", ""},
		{"a", "/private%252Fx", ""},
		{"a", "/private%2500", ""},
		{"a", "/private%3Fx", ""},
		{"a", "/private%23x", ""},
		{"a", "/x/..%c0%afprivate/x", ""},
		{"a", "/x/%c0%ae%c0%ae/private/x", ""},
		{"a", "/private%c0%afx", ""},
		{"a", "/x/%e0%80%ae%e0%80%ae/private", ""},
		{"a", "/x\xc0\xaf..\xc0\xafprivate", ""},
		{"a", "/private/%2e%2e/../x", ""},
		{"a", "/secret%2Fx", ""},
		{"a", "/secret/%0a", ""},
		{"a", "/a%0ab", ""}, // a control character: it may belong to any route of the host
		{"a", "/private%0a", ""},
		{"a", "/x%0a/private/x", ""},
		{"a", "/private%250a", ""},
		{"a", "/private%25u000a", ""},
		{"a", "/private%C2%85", ""},
		{"a", "/private%E2%80%A8", ""},
		{"a", "/private\xe2\x80\xa9", ""},
		{"a", "/private%85", ""},
		{"a", "/private%c0%8a", ""},
		{"a", "/private%7F;x", ""},
		{"a", "/private%0a", "o"},
		{"a", "/;%2Fx/other/x", "k"}, // another route's key
		{"a", "/private/..;/other/x", "k"},
		{"a", "/private/..%2Fother/x", "k"},
		{"a", "/private%2F..%2Fother/x", "k"},
		{"part.test", "/public/..%2Fadmin", ""}, // to a path without a route
		{"part.test", "/public/..;/admin", ""},
		{"part.test", "/old/..%2F..%2Fadmin", ""}, // out of the rewritten prefix
		{"part.test", "/old/..;/..;/admin", ""},
		{"part.test", "/open/..%2Flimited", ""}, // around a rate limit
		{"part.test", "/open/..%2Fsmall", ""},
		{"part.test", "/open/..%2Fclosed", ""},
		{"part.test", "/open/..%2Fbroken", ""},
		{"part.test", "/open;/..%2F..;/broken", ""},
	} {
		http1, http2 := g.ask(targets, test.host, test.target, "X-Api-Key", test.key)
		for _, got := range []string{http1, http2} {
			if got != "400" && got != "401" && got != "404" {
				t.Errorf("%s %s with the key %q: %s, %s", test.host, test.target, test.key, http1, http2)
				break
			}
		}
	}
}

func TestATargetWithOneProtectionGoesOnAsItCame(t *testing.T) {
	g, targets := startKeyed(t)
	for _, test := range []struct{ host, target, key string }{
		{"a", "/", ""},
		{"a", "/a%2Fb", ""},
		{"a", "/a%2fb/c", ""},
		{"a", "/a//b", ""},
		{"a", "//a", ""},
		{"a", "/a//", ""},
		{"a", "/a;v=1", ""},
		{"a", "/a;v=1/b;w=2", ""},
		{"a", "/;", ""},
		{"a", `/a\b`, ""},
		{"a", "/a%5Cb", ""},
		{"a", "/a%3Bb", ""},
		{"a", "/a%253Bb%2525", ""},
		{"a", "/100%25", ""},
		{"a", "/a%3Fb%23c", ""},
		{"a", "/%C3%A4/\xc3\xb6", ""},
		{"a", "/%c0%af", ""},
		{"a", "/a..b/c.d/...", ""},
		{"a", "/.well-known/acme-challenge/x", ""},
		{"a", "/..a/.b", ""},
		{"a", "/a%2F..%2Fb", ""},
		{"a", "/%C4%85", ""},       // a letter with a byte that would end a line alone
		{"all.test", "/a%0ab", ""}, // no route of the host asks for more
		{"all.test", "/a%250a%E2%80%A8/%7f?x=%0a", ""},
		{"a", `/a%2Fb"c`, ""},
		{"a", "/a%2Fb{c}|^`<>", ""},
		{"a", "/a%2Fb\xff", ""},
		{"a", "/a'()*!$&+,:=@~", ""},
		{"a", "/%61%2f?x=%2F&y={\"}", ""},
		{"a", "/a?", ""},
		{"a", "/a?b?c;d", ""},
		{"a", "/privateer%2Fx", ""},
		{"a", "/private/x%2Fy;z", "k"},
		{"a", "/private//x", "k"},
		{"a", "//private/x", "k"},
		{"a", "/%70rivate/x", "k"},
		{"a", "/private/a%2F..%2Fb", "k"},
		{"part.test", "/public//x%2Fy;z", ""},
		{"part.test", "/public/%2e.%2Fpublic", ""},
	} {
		http1, http2 := g.ask(targets, test.host, test.target, "X-Api-Key", test.key)
		if want := "200 " + test.target; http1 != want || http2 != want {
			t.Errorf("%s with the key %q: %s, %s", test.target, test.key, http1, http2)
		}
	}
}

func TestWhatIsRewrittenKeepsItsSpelling(t *testing.T) {
	g, targets := startKeyed(t)
	for target, want := range map[string]string{
		"/old/a%2Fb\"{\xc3\xa4;c//d?e": "/new/api/a%2Fb\"{\xc3\xa4;c//d?e",
		"/old/a/../b%2F":               "/new/api/b%2F",
		"//old/x%5C":                   "400", // a host, to some
	} {
		if want != "400" {
			want = "200 " + want
		}
		http1, http2 := g.ask(targets, "part.test", target)
		if http1 != want || http2 != want {
			t.Errorf("%s: %s, %s", target, http1, http2)
		}
	}
}

func TestABackendOfHTTP2GetsTheTargetAsItCame(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, `[{backendService: {name: h2, port: 80}}]`, backend)
	for _, target := range []string{
		"/", "/a%2Fb", "//a//b", "//a", "/a;v=1?b;c", `/a\b%5C`, `/a%2Fb"{}|^<>`, "/%C3%A4/\xc3\xb6%2f", "/a%2Fb\xff", "/a?", "/?x=%zz",
	} {
		for _, head := range []string{" HTTP/1.1\r\nHost: a.test:81", " HTTP/1.0"} {
			response, _ := g.raw("GET " + target + head + "\r\n\r\n")
			if response.StatusCode != http.StatusOK {
				t.Errorf("%s%s: %d", target, head, response.StatusCode)
				continue
			}
			want(t, "target", (<-requests).RequestURI, target)
		}
	}
}

// What a path costs that is meant to cost much.
func TestAPathOfManyReadingsIsAnsweredSoon(t *testing.T) {
	g, targets := startKeyed(t)
	for _, target := range []string{
		"/" + strings.Repeat("%2F..%5c;x/", 5000),
		"/" + strings.Repeat("/..;", 14000),
		"/" + strings.Repeat("%25", 20000),
		"/" + strings.Repeat("%c0%ae/", 8000),
		"/" + strings.Repeat(";", 60000),
	} {
		begun := time.Now()
		response, _ := g.raw("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%.20s...: %s after %s", target, status(response), took)
		}
	}
	for len(targets) > 0 {
		<-targets
	}
}
