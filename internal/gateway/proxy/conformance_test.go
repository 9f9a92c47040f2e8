package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// wire is a backend that records the bytes that it receives.
type wire struct {
	address string
	got     chan string // each request, with its body
}

// wireBackend answers with the given bytes, and to /second with another response. If end is
// true, it closes the connection after the first response.
func wireBackend(t testing.TB, response string, end bool) *wire {
	t.Helper()
	w := &wire{got: make(chan string, 100)}
	w.address = listen(t, func(conn net.Conn) {
		var raw bytes.Buffer
		in := bufio.NewReader(io.TeeReader(conn, &raw))
		for {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, request.Body); err != nil {
				return
			}
			w.got <- raw.String()
			raw.Reset()
			if request.URL.Path == "/second" {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")
				continue
			}
			_, _ = io.WriteString(conn, response)
			if end {
				return
			}
		}
	})
	return w
}

// exchangeRaw sends bytes and returns everything that comes until the gateway closes the
// connection. Ten seconds of silence also end it.
func (g *gateway) exchangeRaw(request string) string {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, _ := io.ReadAll(conn)
	return string(text)
}

// plain removes from a response what differs each time.
func plain(response string) string {
	var kept []string
	for line := range strings.SplitSeq(response, "\r\n") {
		if !strings.HasPrefix(line, "Date: ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\r\n")
}

const (
	get        = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	last       = "GET /second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	second     = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecond"
	badGateway = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 12\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\r\nBad Gateway\n"
)

// This is what the client gets, byte by byte, followed by the response to another request
// on the same connection. If a response ended at the wrong place, the second one could not
// be read.
func TestResponsesOnTheWire(t *testing.T) {
	head := strings.Replace(get, "GET", "HEAD", 1)
	for name, test := range map[string]struct {
		request  string // GET if empty
		response string
		want     string
		end      bool // the backend closes the connection after it
	}{
		"length":                 {response: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"no content":             {response: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", want: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		"the same length twice":  {response: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"chunks":                 {response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\n\r\n", want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"up to the end":          {response: "HTTP/1.1 200 OK\r\n\r\nok", end: true, want: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		"HTTP/1.0":               {response: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok", end: true, want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"no reason":              {response: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"close is not passed on": {response: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", end: true, want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"what Connection names":  {response: "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nok", want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"HEAD with a length":     {request: head, response: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", want: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"},
		"HEAD with chunks":       {request: head, response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", want: "HTTP/1.1 200 OK\r\n\r\n"},
		"HEAD with a body":       {request: head, response: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"},
		"204":                    {response: "HTTP/1.1 204 No Content\r\n\r\n", want: "HTTP/1.1 204 No Content\r\n\r\n"},
		"204 with a length":      {response: "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", want: "HTTP/1.1 204 No Content\r\n\r\n"},
		"204 with a body":        {response: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", want: "HTTP/1.1 204 No Content\r\n\r\n"},
		"304 with a length":      {response: "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nETag: x\r\n\r\n", want: "HTTP/1.1 304 Not Modified\r\nEtag: x\r\n\r\n"},
		"304 with a body":        {response: "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", want: "HTTP/1.1 304 Not Modified\r\n\r\n"},
		"100 that nobody awaits": {response: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"102 with a length":      {response: "HTTP/1.1 102 Processing\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", want: "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"two hints":              {response: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", want: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"},
		"101 that nobody asked":  {response: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"a second response":      {response: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", want: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"a head that says its own fields are trailers": {
			response: "HTTP/1.1 200 OK\r\nDigest: y\r\nSet-Cookie: a=b\r\nTrailer: Set-Cookie, digest, X-Other\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nDigest: x\r\n\r\n",
			want:     "HTTP/1.1 200 OK\r\nDigest: y\r\nSet-Cookie: a=b\r\nTrailer: Set-Cookie, digest, X-Other\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nDigest: x\r\n\r\n",
		},
		"trailers":                 {response: "HTTP/1.1 200 OK\r\nTrailer: Digest\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nDigest: x\r\nContent-Length: 9\r\nSet-Cookie: a=b\r\n\r\n", want: "HTTP/1.1 200 OK\r\nTrailer: Digest\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nDigest: x\r\n\r\n"},
		"length and chunks":        {response: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", want: badGateway},
		"two lengths":              {response: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", want: badGateway},
		"negative length":          {response: "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", want: badGateway},
		"chunks of HTTP/1.0":       {response: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", want: badGateway},
		"another transfer coding":  {response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", want: badGateway},
		"folded field":             {response: "HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"injected carriage return": {response: "HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: evil\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"NUL in a field":           {response: "HTTP/1.1 200 OK\r\nA: b\x00\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"name with a space":        {response: "HTTP/1.1 200 OK\r\nA B: c\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"HTTP/0.9":                 {response: "ok", end: true, want: badGateway},
		"another protocol":         {response: "ICY 200 OK\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"HTTP/2":                   {response: "HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"status of two digits":     {response: "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"status of four digits":    {response: "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok", want: badGateway},
		"garbage":                  {response: "\x16\x03\x01\x00\x00", end: true, want: badGateway},
		"nothing":                  {end: true, want: badGateway},
		"half a head":              {response: "HTTP/1.1 200 OK\r\nContent-Le", end: true, want: badGateway},
		"head without end":         {response: "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 70<<10), want: badGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, Options{}, `[{backendService: {name: app, port: 80}, retries: {attempts: 0}}]`, wireBackend(t, test.response, test.end).address)
			request := test.request
			if request == "" {
				request = get
			}
			if got := plain(g.exchangeRaw(request + last)); got != test.want+second {
				t.Errorf("got\n%q, want\n%q", got, test.want+second)
			}
		})
	}
}

// A response that does not end as declared must not look complete to the client.
func TestResponsesThatEndWrong(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, response := range map[string]string{
		"shorter than its length":  "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok",
		"chunk shorter than said":  chunked + "5\r\nok",
		"chunk longer than said":   chunked + "2\r\nokok\r\n0\r\n\r\n",
		"no last chunk":            chunked + "2\r\nok\r\n",
		"no end of the trailers":   chunked + "2\r\nok\r\n0\r\n",
		"size with a sign":         chunked + "2\r\nok\r\n-1\r\n",
		"size that overflows":      chunked + "2\r\nok\r\n10000000000000002\r\nok\r\n0\r\n\r\n",
		"size in another notation": chunked + "2\r\nok\r\n0x2\r\nok\r\n0\r\n\r\n",
		"size without digits":      chunked + "2\r\nok\r\n;x\r\nok\r\n0\r\n\r\n",
		"bare line feed":           chunked + "2\r\nok\r\n2\nok\r\n0\r\n\r\n",
		"endless extension":        chunked + "2\r\nok\r\n2;" + strings.Repeat("x", 10<<10) + "\r\nok\r\n0\r\n\r\n",
		"folded trailer":           chunked + "2\r\nok\r\n0\r\nA: b\r\n c\r\n\r\n",
		"trailers without end":     chunked + "2\r\nok\r\n0\r\nA: " + strings.Repeat("a", 70<<10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, Options{}, toApp, wireBackend(t, response, true).address)
			got := g.exchangeRaw(get + last)
			read, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
			if err != nil || read.StatusCode == http.StatusBadGateway {
				return // the response had not begun
			}
			defer read.Body.Close()
			if body, err := io.ReadAll(read.Body); err == nil {
				t.Errorf("%q passes as whole in\n%q", body, got)
			}
			if strings.Contains(got, "second") {
				t.Errorf("the connection goes on:\n%q", got)
			}
		})
	}
}
