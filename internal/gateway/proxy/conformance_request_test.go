package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// sorted returns a request with sorted fields, without the fields that every request has.
// The order of fields with different names has no meaning.
func sorted(request string) string {
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	fields := slices.DeleteFunc(lines[1:], func(line string) bool {
		return strings.HasPrefix(line, "Via: ") || strings.HasPrefix(line, "X-Forwarded-Host: ") || line == "X-Forwarded-For: 127.0.0.1" || line == "X-Forwarded-Proto: http"
	})
	slices.Sort(fields)
	return strings.Join(append(lines[:1], fields...), "\r\n") + "\r\n\r\n" + body
}

// This is what the backend gets, byte by byte.
func TestRequestsOnTheWire(t *testing.T) {
	const chunked = "Transfer-Encoding: chunked\r\n"
	for name, test := range map[string]struct{ request, want string }{
		"no body":                         {"GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n"},
		"HTTP/1.0":                        {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"HTTP/1.0 without host":           {"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: \r\n\r\n"},
		"method of an extension":          {"PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", "PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"OPTIONS of the server":           {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
		"absolute form":                   {"GET http://b:8080/x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x HTTP/1.1\r\nHost: b:8080\r\n\r\n"},
		"absolute form without path":      {"GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: b\r\n\r\n"},
		"absolute form, OPTIONS":          {"OPTIONS http://b HTTP/1.1\r\nHost: b\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n"},
		"question mark without a query":   {"GET /a? HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a? HTTP/1.1\r\nHost: a\r\n\r\n"},
		"semicolons in the query":         {"GET /a?b;c&d HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a?b;c&d HTTP/1.1\r\nHost: a\r\n\r\n"},
		"line ends that are escaped":      {"GET /a%0d%0aX:%20y HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a%0d%0aX:%20y HTTP/1.1\r\nHost: a\r\n\r\n"},
		"length":                          {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok", "POST / HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\n\r\nok"},
		"the same length twice":           {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", "POST / HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\n\r\nok"},
		"no content":                      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 0\r\nHost: a\r\n\r\n"},
		"GET with a body":                 {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok", "GET / HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\n\r\nok"},
		"chunks":                          {"POST / HTTP/1.1\r\nHost: a\r\n" + chunked + "\r\n2;x=\"y\"\r\nok\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n" + chunked + "\r\n2\r\nok\r\n0\r\n\r\n"},
		"chunks and length":               {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n" + chunked + "\r\n2\r\nok\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n" + chunked + "\r\n2\r\nok\r\n0\r\n\r\n"},
		"coding in upper case":            {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n2\r\nok\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n" + chunked + "\r\n2\r\nok\r\n0\r\n\r\n"},
		"trailers that must not be":       {"POST / HTTP/1.1\r\nHost: a\r\n" + chunked + "Trailer: Digest, Authorization, Host\r\n\r\n0\r\nDigest: x\r\nAuthorization: y\r\nHost: b\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nTrailer: Digest\r\n" + chunked + "\r\n0\r\nDigest: x\r\n\r\n"},
		"what looks like framing":         {"POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 0\r\nTransfer_Encoding: chunked\r\ncontent_length: 9\r\nKeep_Alive: 5\r\nX_A: b\r\nContent-Length: 2\r\n\r\nok", "POST / HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\nX_a: b\r\n\r\nok"},
		"trailers that look like framing": {"POST / HTTP/1.1\r\nHost: a\r\n" + chunked + "Trailer: Digest, Content_Length, Content_Type\r\n\r\n0\r\nDigest: x\r\nContent_Length: 5\r\nContent_Type: y\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nTrailer: Digest\r\n" + chunked + "\r\n0\r\nDigest: x\r\n\r\n"},
		"hop by hop":                      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-A , ,x-b\r\nConnection: X-C\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\nX-D: 4\r\nKeep-Alive: 5\r\nProxy-Connection: close\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX-D: 4\r\n\r\n"},
		"Connection names what is ours":   {"POST / HTTP/1.1\r\nHost: a\r\nConnection: Host, Content-Length, Via, X-Forwarded-For\r\nContent-Length: 2\r\n\r\nok", "POST / HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\n\r\nok"},
		"TE":                              {"GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: gzip, deflate;q=0.5\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"TE with trailers":                {"GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: gzip, trailers\r\n\r\n", "GET / HTTP/1.1\r\nConnection: TE\r\nHost: a\r\nTE: trailers\r\n\r\n"},
		"Upgrade":                         {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x/1\r\n\r\n", "GET / HTTP/1.1\r\nConnection: Upgrade\r\nHost: a\r\nUpgrade: x/1\r\n\r\n"},
		"Upgrade that Connection omits":   {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"Upgrade of HTTP/1.0":             {"GET / HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"Upgrade to h2c":                  {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"Upgrade to h2c or another":       {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"Upgrade to two":                  {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x,y\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"Upgrade to HTTP/2":               {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: HTTP/2.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"Upgrade to TLS":                  {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"Upgrade with a body":             {"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nok", "POST / HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\n\r\nok"},
		"two Upgrades":                    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\nUpgrade: y\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"folded field":                    {"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", "GET / HTTP/1.1\r\nA: b c\r\nHost: a\r\n\r\n"},
		"white space around a value":      {"GET / HTTP/1.1\r\nHost: a\r\nA: \t b \t\r\n\r\n", "GET / HTTP/1.1\r\nA: b\r\nHost: a\r\n\r\n"},
		"empty value":                     {"GET / HTTP/1.1\r\nHost: a\r\nA:\r\n\r\n", "GET / HTTP/1.1\r\nA: \r\nHost: a\r\n\r\n"},
		"a field twice":                   {"GET / HTTP/1.1\r\nHost: a\r\nA: 2\r\nA: 1\r\n\r\n", "GET / HTTP/1.1\r\nA: 1\r\nA: 2\r\nHost: a\r\n\r\n"},
		"bytes above ASCII":               {"GET / HTTP/1.1\r\nHost: a\r\nA: \xc3\xbc\xff\r\n\r\n", "GET / HTTP/1.1\r\nA: \xc3\xbc\xff\r\nHost: a\r\n\r\n"},
		"where it claims to come from":    {"GET / HTTP/1.1\r\nHost: a\r\nx-forwarded-for: 6.6.6.6\r\nX-Forwarded-Port: 1\r\nX-Forwarded-Prefix: /x\r\nX-Forwarded-Server: x\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: x\r\nForwarded: for=6.6.6.6\r\nX-Real-Ip: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nX_Real-Ip: 6.6.6.6\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"how far it may go":               {"OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 5\r\n\r\n", "OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 4\r\n\r\n"},
		"how far, where it says nothing":  {"GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := wireBackend(t, "HTTP/1.1 204 No Content\r\n\r\n", false)
			g := start(t, Options{}, toApp, backend.address)
			response, _ := g.raw(test.request)
			if response.StatusCode != http.StatusNoContent {
				t.Fatalf("got %d", response.StatusCode)
			}
			if got := sorted(<-backend.got); got != test.want {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// These requests are answered without a backend. Each case also says whether the connection
// stays open.
func TestRequestsThatGoNoFurther(t *testing.T) {
	const chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, test := range map[string]struct{ request, status string }{
		"TRACE that goes no further":    {"TRACE / HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\nMax-Forwards: 0\r\n\r\n", "501"},
		"OPTIONS that goes no further":  {"OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", "204"},
		"CONNECT":                       {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "501"},
		"CONNECT of a path":             {"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", "501"},
		"no target":                     {"GET HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		"authority form":                {"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		"relative target":               {"GET a/b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		"NUL in the target":             {"GET /a%00 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		"half an escape":                {"GET /a%4 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		"very long target":              {"GET /" + strings.Repeat("a", 70<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", "431"},
		"large field":                   {"GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", "431"},
		"many fields":                   {"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("A: b\r\n", 20<<10) + "\r\n", "431"},
		"many names":                    {"GET / HTTP/1.1\r\nHost: a\r\n" + manyNames(600) + "\r\n", "431"},
		"fewer names":                   {"GET / HTTP/1.1\r\nHost: a\r\n" + manyNames(400) + "\r\n", "200"},
		"many options":                  {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close" + strings.Repeat(",a", 30<<10) + "\r\n\r\n", "431"},
		"many lines of options":         {"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("Connection: a\r\n", 100) + "\r\n", "431"},
		"chunk size that is negative":   {chunked + "-2\r\nok\r\n0\r\n\r\n", "400"},
		"chunk size that overflows":     {chunked + "10000000000000002\r\nok\r\n0\r\n\r\n", "400"},
		"chunk size with white space":   {chunked + " 2\r\nok\r\n0\r\n\r\n", "400"},
		"chunk size without digits":     {chunked + "\r\nok\r\n0\r\n\r\n", "400"},
		"chunk longer than its size":    {chunked + "2\r\nokok\r\n0\r\n\r\n", "400"},
		"chunk that ends with LF":       {chunked + "2\r\nok\n0\r\n\r\n", "400"},
		"carriage return in a size":     {chunked + "2\r;x\r\nok\r\n0\r\n\r\n", "400"},
		"endless extension":             {chunked + "2;" + strings.Repeat("x", 20<<10) + "\r\nok\r\n0\r\n\r\n", "400"},
		"length and HTTP/1.0 chunks":    {"POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "200"},
		"chunks twice":                  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "501"},
		"length in hexadecimal":         {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2\r\n\r\nok", "400"},
		"length with white space":       {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2 2\r\n\r\nok", "400"},
		"length that overflows":         {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nok", "400"},
		"empty length":                  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\nok", "400"},
		"folded first field":            {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400"},
		"field without a colon":         {"GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n", "400"},
		"field without a name":          {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "400"},
		"colon after a tab":             {"GET / HTTP/1.1\r\nHost: a\r\nA\t: b\r\n\r\n", "400"},
		"user in the host":              {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "400"},
		"garbage":                       {"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n", "400"},
		"lower case version":            {"GET / http/1.1\r\nHost: a\r\n\r\n", "400"},
		"HTTP/1.1 with trailing spaces": {"GET / HTTP/1.1  \r\nHost: a\r\n\r\n", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := wireBackend(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false)
			g := start(t, Options{}, toApp, backend.address)
			got := g.exchangeRaw(test.request + last)
			if code := strings.SplitN(got+"  ", " ", 3)[1]; code != test.status {
				t.Errorf("got %q, want %s", got, test.status)
			}
			if test.status == "400" && strings.Contains(got, "second") && !strings.Contains(got, "X-Content-Type-Options") {
				t.Errorf("the connection goes on after it:\n%q", got)
			}
			for len(backend.got) > 0 {
				if request := <-backend.got; test.status != "200" && !strings.HasPrefix(request, "GET /second ") {
					t.Errorf("the backend got %q", request)
				}
			}
		})
	}
}

func manyNames(count int) string {
	var fields strings.Builder
	for i := range count {
		fmt.Fprintf(&fields, "A%d: b\r\n", i)
	}
	return fields.String()
}

// A client that is refused early and keeps sending must still be able to read the answer.
func TestAnswersBeforeTheEndOfTheRequest(t *testing.T) {
	early := listen(t, func(conn net.Conn) {
		if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
		}
	})
	for name, framing := range map[string]string{
		"length": "Content-Length: 10000000\r\n\r\n",
		"chunks": "Transfer-Encoding: chunked\r\n\r\n989680\r\n",
		"small":  "Content-Length: 4\r\n\r\nbody",
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, Options{}, toApp, early)
			conn, err := net.Dial("tcp", g.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+framing)
			if name != "small" {
				_, _ = conn.Write(make([]byte, 32<<10))
			}
			_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if response.StatusCode != http.StatusForbidden || string(body) != "no" || err != nil {
				t.Errorf("got %d %q, %v", response.StatusCode, body, err)
			}
			want(t, "close", response.Close, name != "small")
		})
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	g := start(t, Options{}, toApp, backend)
	got := g.exchangeRaw("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nokGET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	in, bodies := bufio.NewReader(strings.NewReader(got)), ""
	for range 3 {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%v in %q", err, got)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		bodies += string(body)
	}
	want(t, "responses", bodies, "/1/2/3")
}
