package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// hasty is a backend that records the target of each request head. The target says whether
// it answers before or after it has read the body.
type hasty struct {
	address string

	mu   sync.Mutex
	seen []string
}

func newHasty(t testing.TB) *hasty {
	t.Helper()
	h := &hasty{}
	h.address = listen(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			h.mu.Lock()
			h.seen = append(h.seen, request.URL.Path)
			h.mu.Unlock()
			if !h.answer(conn, request) {
				return
			}
		}
	})
	return h
}

// answer reports whether the connection stays open.
func (h *hasty) answer(conn net.Conn, request *http.Request) bool {
	response, early := strings.CutPrefix(request.URL.Query().Get("answer"), "early ")
	if request.Header.Get("Expect") != "" && !early {
		_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	if !early {
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return false
		}
	}
	if response == "" {
		response = "200"
	}
	_, _ = io.WriteString(conn, answers[response])
	if early {
		_, _ = io.Copy(io.Discard, conn)
	}
	return !early
}

func (h *hasty) targets() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.seen...)
}

// answers are the responses of the backend, by their names in targets.
var answers = map[string]string{
	"200":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"chunked":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"trailers":   "HTTP/1.1 200 OK\r\nTrailer: Digest\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nDigest: x\r\n\r\n",
	"204":        "HTTP/1.1 204 No Content\r\n\r\n",
	"304":        "HTTP/1.1 304 Not Modified\r\n\r\n",
	"302":        "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
	"403":        "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
	"500":        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\nno",
	"103":        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"102":        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
	"malformed":  "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
	"whole head": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
}

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\nX-Id: smuggled\r\n\r\n"

// conversation sends the head and the beginning of a request and waits for the final
// answer. Then it sends the rest, and returns everything that comes until the gateway
// closes the connection.
func (g *gateway) conversation(begin, rest string) string {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Error(err)
		return ""
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, begin)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var all bytes.Buffer
	in := bufio.NewReader(io.TeeReader(conn, &all))
	for {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			break
		}
		response.Body.Close()
		if response.StatusCode >= http.StatusOK {
			break
		}
	}
	_, _ = io.WriteString(conn, rest)
	_, err = io.Copy(io.Discard, in)
	if err != nil {
		g.t.Errorf("the answer %q is lost, or the connection stays: %v", all.String(), err)
	}
	return all.String()
}

// finals counts the final answers in what a client received. It also reports whether the
// last one says close. method is that of the first request.
func finals(t testing.TB, method, text string) (count int, closes bool) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(text))
	for {
		request := &http.Request{Method: http.MethodGet}
		if count == 0 {
			request.Method = method
		}
		response, err := http.ReadResponse(in, request)
		if err != nil {
			return count, closes
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode >= http.StatusOK || response.StatusCode == http.StatusSwitchingProtocols {
			count++
			closes = response.Close
		}
	}
}

const reuseRoutes = `
- {host: "a", backendService: {name: app, port: 80}}
- {host: "limited", backendService: {name: app, port: 80}, maxBodyBytes: 10}
- {host: "retried", backendService: {name: app, port: 80}, retries: {attempts: 2}}
- {host: "rated", backendService: {name: app, port: 80}, rateLimit: {requests: 1, period: 1h}}
- {host: "key", backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}
- {host: "redirect", redirect: {host: new.example.com}}
- {host: "direct", directResponse: {statusCode: 200, body: hello}}
- {host: "nobody", backendService: {name: none, port: 80}}
`

// A request whose body was not read to its end is the last one on its connection, whatever
// answered it and how.
func TestNothingAfterAnUnreadBodyIsARequest(t *testing.T) {
	backend := newHasty(t)
	secrets := map[string]map[string][]byte{"keys": {"alice": keyHash("secret")}}
	g := startTable(t, Options{ClientTimeout: 500 * time.Millisecond}, compile(t, reuseRoutes, secrets, backend.address))
	framings := map[string]struct{ fields, sent, rest string }{
		"a length, some of it sent":       {"Content-Length: 20000\r\n", strings.Repeat("x", 100), strings.Repeat("x", 100) + smuggled},
		"a length, nothing sent":          {"Content-Length: 20000\r\n", "", smuggled},
		"a short length, nothing sent":    {"Content-Length: 60\r\n", "", smuggled},
		"a large length":                  {"Content-Length: 10000000\r\n", strings.Repeat("x", 1000), smuggled},
		"a length that net/http drains":   {"Content-Length: 200000\r\n", strings.Repeat("x", 70000), strings.Repeat("x", 1000) + smuggled},
		"chunks, one sent":                {"Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n", smuggled},
		"chunks, half of one sent":        {"Transfer-Encoding: chunked\r\n", "ffff\r\nhello", smuggled},
		"chunks, all but the trailers":    {"Transfer-Encoding: chunked\r\nTrailer: Digest\r\n", "5\r\nhello\r\n0\r\nDigest: x\r\n", smuggled},
		"an expectation, nothing sent":    {"Expect: 100-continue\r\nContent-Length: 20000\r\n", "", smuggled},
		"an expectation, chunks":          {"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "", smuggled},
		"an expectation that is not kept": {"Expect: 100-continue\r\nContent-Length: 20000\r\n", strings.Repeat("x", 100), smuggled},
	}
	var targets []string
	for name := range answers {
		targets = append(targets, "POST a /early?answer=early+"+strings.ReplaceAll(name, " ", "+"))
	}
	for _, host := range []string{"limited", "retried"} {
		targets = append(targets, "POST "+host+" /early?answer=early+200")
	}
	targets = append(targets, "HEAD a /early?answer=early+whole+head", "GET a /early?answer=early+304", "OPTIONS a /early?answer=early+204", "DELETE a /early?answer=early+204",
		"POST key /key", "POST redirect /redirect", "POST direct /direct", "POST nobody /nobody", "POST unknown /unknown", "POST a /bad%00path", "CONNECT a /connect", "TRACE a /late", "POST rated /early?answer=early+200")
	if answer := g.exchangeRaw("GET / HTTP/1.1\r\nHost: rated\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200") {
		t.Fatalf("got %q", answer)
	}
	var wait sync.WaitGroup
	for name, framing := range framings {
		for _, target := range targets {
			parts := strings.Fields(target)
			wait.Go(func() {
				got := g.conversation(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", parts[0], parts[2], parts[1], framing.fields, framing.sent), framing.rest)
				if count, closes := finals(t, parts[0], got); count != 1 || !closes {
					t.Errorf("%s, %s: %d answers, close %t:\n%q", name, target, count, closes, got)
				}
			})
		}
	}
	wait.Wait()
	for _, target := range backend.targets() {
		if target == "/smuggled" {
			t.Error("the backend got what was part of a body")
		}
	}
}

// net/http does not report some facts about a request's framing, and a client that asked
// for an upgrade may already speak another protocol. In both cases the connection is not
// used again, although the request was read completely.
func TestConnectionsThatMightBeReadDifferentlyEnd(t *testing.T) {
	backend := newHasty(t)
	g := start(t, Options{}, toApp, backend.address)
	const last = "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	for name, test := range map[string]struct {
		request string
		answers int // with the answer to the following request
	}{
		"a length":                             {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok", 2},
		"a large body":                         {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000), 2},
		"an expectation that is met":           {"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok", 2},
		"an answer to HEAD":                    {"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok", 2},
		"no body":                              {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 2},
		"an offer of h2c":                      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", 2},
		"HTTP/1.0":                             {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", 1},
		"HTTP/1.0 to be kept":                  {"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", 1},
		"HTTP/1.0 with a length, to be kept":   {"POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 1},
		"HTTP/1.0 with both lengths":           {"POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok", 1},
		"HTTP/1.0 with chunks":                 {"POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", 1},
		"chunks":                               {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		"both lengths":                         {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		"an upgrade that the backend refuses":  {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 1},
		"an upgrade that does not get through": {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", 1},
		"an upgrade with a body":               {"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nok", 1},
		"CONNECT":                              {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gateway{t: t, address: g.address}
			got := g.exchangeRaw(test.request + last)
			method, _, _ := strings.Cut(test.request, " ")
			if count, closes := finals(t, method, got); count != test.answers || !closes && !strings.HasPrefix(got, "HTTP/1.0") {
				t.Errorf("%d answers, close %t, in\n%q", count, closes, got)
			}
		})
	}
}

// A client that is still sending when it is answered must be able to read the whole answer.
func TestAnswersAreNotLostToClientsThatStillSend(t *testing.T) {
	large := strings.Repeat("x", 200<<10)
	backend := listen(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(large), large)
			_, _ = io.Copy(io.Discard, conn)
		}
	})
	g := start(t, Options{}, `[{backendService: {name: app, port: 80}, path: /early}]`, backend)
	for name, test := range map[string]struct{ head, body string }{
		"an early answer":             {"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n", large},
		"an early answer to chunks":   {"POST /early HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7000000\r\n", large},
		"an answer of the gateway":    {"POST /unknown HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n", "Not Found\n"},
		"a head that is refused":      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n", "400 Bad Request"},
		"a coding that is not known":  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", "Unsupported transfer encoding"},
		"a request that was the last": {"GET /unknown HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "Not Found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", g.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			for sent := 0; sent < 3<<20; sent += len(large) { // before a byte is read
				if _, err := io.WriteString(conn, test.head+large); err != nil {
					t.Fatalf("after %d bytes: %v", sent, err)
				}
				test.head = ""
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if body, err := io.ReadAll(response.Body); string(body) != test.body || err != nil {
				t.Errorf("got %d bytes of %d, %v", len(body), len(test.body), err)
			}
		})
	}
}

// The backend may send an informational response while the gateway asks the client for the
// body.
func TestHintsBesideARequestForTheBody(t *testing.T) {
	const hints = 8
	backend := listen(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		for range hints {
			_, _ = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			<-time.After(time.Millisecond)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		_, _ = io.Copy(io.Discard, conn)
	})
	options := Options{}
	options.Upstream.ContinueTimeout = 3 * time.Millisecond // the gateway asks for the body before the backend does
	g := start(t, options, toApp, backend)
	for range 20 {
		got := g.conversation("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 20000\r\n\r\n", "")
		rest := strings.Replace(got, "HTTP/1.1 100 Continue\r\n\r\n", "", 1)
		for range hints {
			rest = strings.TrimPrefix(rest, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
		}
		if !strings.HasPrefix(rest, "HTTP/1.1 200 OK\r\n") {
			t.Fatalf("got %q", got)
		}
	}
}
