package proxy

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// owned is a route on which the gateway decides about fields in every way.
const owned = `
- host: a
  headers: [{name: X-Mode, value: open}]
  backendService: {name: app, port: 80}
  requestHeaders: {set: [{name: X-Internal, value: ours}], remove: [X-Debug]}
  auth: {apiKey: {secretRef: {name: keys}, header: X-Api-Key, clientHeader: X-User}}
`

// asVariable is how a CGI program knows a field.
func asVariable(name string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToUpper(name))
}

// Each field of the gateway is sent under every name that a CGI program reads as the same, in the head and as a trailer. Only what
// the gateway says may arrive.
func TestNoOtherNameStandsForAFieldOfTheGateway(t *testing.T) {
	backend, requests := recording(t)
	g := startTable(t, Options{}, compile(t, owned, map[string]map[string][]byte{"keys": keySecret("k")}, backend))
	ours := map[string]string{
		"X-User": "somebody", "X-Internal": "ours", "X-Debug": "", "X-Api-Key": "", "X-Mode": "open", "X-Real-Ip": "", "X-Forwarded-Host": "a",
		"X-Forwarded-Proto": "http", "X-Forwarded-Prefix": "", "Transfer-Encoding": "", "Keep-Alive": "", "Proxy-Connection": "",
	}
	arrived := 0
	for name, want := range ours {
		for _, c := range "_.!~|^'*+#$%&`" {
			other := strings.ReplaceAll(name, "-", string(c))
			mixed := strings.Replace(strings.ToLower(name), "-", string(c), 1)
			for _, sent := range slices.Compact([]string{other, mixed}) {
				check := func(how string, r seen) {
					t.Helper()
					arrived++
					for _, part := range []http.Header{r.Header, r.Trailer} {
						for got, values := range part {
							if asVariable(got) == asVariable(name) && join(values) != want {
								t.Errorf("%s, %s: the backend gets %s: %s, want %q", how, sent, got, join(values), want)
							}
						}
					}
				}
				head := "POST / HTTP/1.1\r\nHost: a\r\nX-Api-Key: k\r\nX-Mode: open\r\nTransfer-Encoding: chunked\r\n"
				if response, _ := g.raw(head + sent + ": evil\r\n\r\n0\r\n\r\n"); response.StatusCode == http.StatusOK {
					check("HTTP/1", <-requests)
				}
				if response, _ := g.raw(head + "Trailer: " + sent + "\r\n\r\n2\r\nok\r\n0\r\n" + sent + ": evil\r\n\r\n"); response.StatusCode == http.StatusOK {
					check("a trailer of HTTP/1", <-requests)
				}
				f := g.frames()
				f.open(1, true, with("x-api-key", "k", "x-mode", "open", strings.ToLower(sent), "evil")...)
				if f.outcome(1) == "200" {
					check("HTTP/2", <-requests)
				}
				f.open(3, false, with("x-api-key", "k", "x-mode", "open", "trailer", strings.ToLower(sent))...)
				_ = f.WriteData(3, false, []byte("ok"))
				_ = f.WriteHeaders(http2.HeadersFrameParam{
					StreamID: 3, BlockFragment: f.encode(strings.ToLower(sent), "evil"), EndHeaders: true, EndStream: true,
				})
				if f.outcome(3) == "200" {
					check("a trailer of HTTP/2", <-requests)
				}
				_ = f.conn.Close()
			}
		}
	}
	if arrived < 1000 {
		t.Errorf("only %d requests arrived, which shows too little", arrived)
	}
}
