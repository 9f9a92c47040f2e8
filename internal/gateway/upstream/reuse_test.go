package upstream

import (
	"io"
	"strings"
	"testing"
	"time"
)

// A connection is reused only if no server can have seen the end of the request or of the
// response elsewhere.
func TestConnectionsThatAreInDoubtAreNotUsedAgain(t *testing.T) {
	body := func(method string, length int) *Request {
		req := post(strings.NewReader(strings.Repeat("x", length)), int64(length))
		req.Method = method
		return req
	}
	upgrade := get()
	upgrade.Upgrade = "websocket"
	head := get()
	head.Method = "HEAD"
	const second = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for name, test := range map[string]struct {
		request  *Request
		response string
		late     string // what arrives shortly after the response
		kept     bool
	}{
		"a small body":                 {request: body("POST", 10), response: okResponse, kept: true},
		"a large body":                 {request: body("PUT", 100<<10), response: okResponse, kept: true},
		"GET with a body":              {request: body("GET", 10), response: okResponse},
		"GET with a large body":        {request: body("GET", 100<<10), response: okResponse},
		"DELETE with a body":           {request: body("DELETE", 10), response: okResponse},
		"HEAD with a body":             {request: body("HEAD", 10), response: "HTTP/1.1 200 OK\r\n\r\n"},
		"OPTIONS with a body":          {request: body("OPTIONS", 10), response: okResponse},
		"an upgrade that is refused":   {request: upgrade, response: okResponse},
		"HEAD, and content after it":   {request: head, response: "HTTP/1.1 200 OK\r\nContent-Length: 46\r\n\r\n", late: second},
		"304, and content after it":    {request: get(), response: "HTTP/1.1 304 Not Modified\r\nContent-Length: 46\r\n\r\n", late: second},
		"204, and content after it":    {request: get(), response: "HTTP/1.1 204 No Content\r\nContent-Length: 46\r\n\r\n", late: second},
		"many informational responses": {request: get(), response: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 15) + okResponse, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := listen(t, func(p *peer, _ int) {
				for head := p.head(); head != ""; head = p.head() {
					if strings.Contains(head, "X-Second") {
						p.send(okResponse)
						continue
					}
					if test.request.hasBody() {
						_, _ = io.CopyN(io.Discard, p.in, test.request.ContentLength)
					}
					p.send(test.response)
					if test.late != "" {
						<-time.After(5 * time.Millisecond)
						p.send(test.late)
					}
				}
			})
			s := serving(t, Options{}, b.address())
			fetch(t, s, test.request)
			next := get()
			next.Fields = []Field{{"X-Second", "1"}}
			if status, body := fetch(t, s, next); status != 200 || body != "ok" {
				t.Errorf("got %d %q", status, body)
			}
			if got := b.accepted.Load() == 1; got != test.kept {
				t.Errorf("kept: %t, want %t", got, test.kept)
			}
		})
	}
}

// An endpoint that answers before it has the whole request may treat the rest as another
// request.
func TestAnAnswerBeforeTheEndOfTheRequestIsTheLast(t *testing.T) {
	received := make(chan struct{})
	const rest = "rest"
	begin := strings.Repeat("x", MaxReplay) // more than is read in advance
	b := listen(t, func(p *peer, number int) {
		if number == 1 && p.head() != "" {
			_, _ = io.CopyN(io.Discard, p.in, MaxReplay)
			p.send(okResponse)
			_, _ = io.CopyN(io.Discard, p.in, int64(len(rest)))
			close(received)
		}
		for p.head() != "" {
			p.send(okResponse)
		}
	})
	s := serving(t, Options{}, b.address())
	answered := make(chan struct{})
	tail := readerFunc(func(p []byte) (int, error) {
		<-answered
		return copy(p, rest), io.EOF
	})
	response, err := s.Do(t.Context(), post(io.MultiReader(strings.NewReader(begin), tail), int64(len(begin)+len(rest))))
	close(answered)
	if err != nil {
		t.Fatal(err)
	}
	<-received
	if body, err := readAll(response); body != "ok" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	fetch(t, s, get())
	if got := b.accepted.Load(); got != 2 {
		t.Errorf("two requests took %d connections, want 2", got)
	}
}

func TestAnotherProtocolThanTheOneAskedForIsNoAnswer(t *testing.T) {
	for name, response := range map[string]string{
		"another": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
		"none":    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, Options{}, answering(t, response).address())
			req := get()
			req.Upgrade = "websocket"
			_, err := s.Do(t.Context(), req)
			wantKind(t, err, Malformed)
		})
	}
}
