package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRequestOnTheWire(t *testing.T) {
	for name, test := range map[string]struct {
		request *Request
		want    string
	}{
		"plain": {
			request: &Request{Method: "GET", Target: "/a?b=c", Host: "example.com", Fields: []Field{{"Accept", "*/*"}, {"X-A", ""}}},
			want:    "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\nX-A: \r\n\r\n",
		},
		"POST of nothing": {
			request: &Request{Method: "POST", Target: "/", Host: "a"},
			want:    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		},
		"trailers are welcome": {
			request: &Request{Method: "GET", Target: "*", Host: "a", AcceptTrailers: true},
			want:    "GET * HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: trailers\r\n\r\n",
		},
		"length": {
			request: &Request{Method: "PUT", Target: "/", Host: "a", Body: strings.NewReader("x"), ContentLength: 1},
			want:    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
		},
		"expectation": {
			request: &Request{Method: "PUT", Target: "/", Host: "a", Body: strings.NewReader("x"), ContentLength: -1, ExpectContinue: true},
			want:    "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.request.appendHead(nil)
			if err != nil || string(got) != test.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, test.want)
			}
		})
	}
}

func TestRequestThatSmugglesIsNotSent(t *testing.T) {
	b := answering(t, okResponse)
	s := serving(t, Options{}, b.address())
	for name, spoil := range map[string]func(*Request){
		"line end in the target":        func(r *Request) { r.Target = "/ HTTP/1.1\r\nX: y" },
		"space in the target":           func(r *Request) { r.Target = "/a b" },
		"no target":                     func(r *Request) { r.Target = "" },
		"space in the method":           func(r *Request) { r.Method = "GET /" },
		"line end in the host":          func(r *Request) { r.Host = "a\r\nX: y" },
		"line end in a value":           func(r *Request) { r.Fields = []Field{{"A", "b\r\nX: y"}} },
		"line feed in a value":          func(r *Request) { r.Fields = []Field{{"A", "b\nX: y"}} },
		"NUL in a value":                func(r *Request) { r.Fields = []Field{{"A", "b\x00"}} },
		"colon in a name":               func(r *Request) { r.Fields = []Field{{"A: b\r\nX", "y"}} },
		"empty name":                    func(r *Request) { r.Fields = []Field{{"", "y"}} },
		"a second host":                 func(r *Request) { r.Fields = []Field{{"host", "y"}} },
		"a length of its own":           func(r *Request) { r.Fields = []Field{{"content-length", "7"}} },
		"a coding of its own":           func(r *Request) { r.Fields = []Field{{"Transfer-Encoding", "chunked"}} },
		"a connection option":           func(r *Request) { r.Fields = []Field{{"Connection", "keep-alive"}} },
		"line end in the new protocol":  func(r *Request) { r.Upgrade = "a\r\nX: y" },
		"expectation of another making": func(r *Request) { r.Fields = []Field{{"expect", "100-continue"}} },
	} {
		for _, protocol := range []Protocol{HTTP1, HTTP2} {
			req := get()
			req.Protocol = protocol
			spoil(req)
			_, err := s.Do(t.Context(), req)
			if KindOf(err) != InvalidRequest {
				t.Errorf("%s, protocol %d: got %v, want an invalid request", name, protocol, err)
			}
		}
	}
}

// received is a body as the backend understood it.
type received struct {
	body     string
	trailers http.Header
	length   int64
	err      error
}

// understanding answers with 200, and reports the requests as net/http parses them.
func understanding(t *testing.T) (*backend, chan received) {
	got := make(chan received, 10)
	b := listen(t, func(p *peer, _ int) {
		for {
			request, err := http.ReadRequest(p.in)
			if err != nil {
				return
			}
			body, err := io.ReadAll(request.Body)
			got <- received{body: string(body), trailers: request.Trailer, length: request.ContentLength, err: err}
			if err != nil {
				return
			}
			p.send(okResponse)
		}
	})
	return b, got
}

func TestBodiesArriveAsTheyWereSent(t *testing.T) {
	small, large := strings.Repeat("s", 5000), strings.Repeat("0123456789", 20<<10)
	for name, test := range map[string]struct {
		body    string
		chunked bool
	}{
		"small": {body: small}, "large": {body: large},
		"small in chunks": {body: small, chunked: true}, "large in chunks": {body: large, chunked: true},
		"nothing in chunks": {body: "", chunked: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, got := understanding(t)
			s := serving(t, Options{}, b.address())
			for range 3 {
				req := post(strings.NewReader(test.body), int64(len(test.body)))
				if test.chunked {
					req.ContentLength = -1
					req.Fields = []Field{{"Trailer", "Digest"}}
					req.Trailers = func() []Field { return []Field{{"Digest", "x"}, {"Content-Length", "1"}, {"Bad", "\r\n"}} }
				}
				if status, _ := fetch(t, s, req); status != 200 {
					t.Fatalf("got %d", status)
				}
				request := <-got
				if request.err != nil || request.body != test.body || request.length != req.ContentLength {
					t.Errorf("got %d bytes of %d, length %d, error %v", len(request.body), len(test.body), request.length, request.err)
				}
				if test.chunked && request.trailers.Get("Digest") != "x" {
					t.Errorf("trailers %v", request.trailers)
				}
			}
			if n := b.accepted.Load(); n != 1 {
				t.Errorf("%d connections for requests one after another", n)
			}
		})
	}
}

func TestBodyWaitsForContinue(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		status int
		read   bool
	}{
		"wanted":               {answer: "HTTP/1.1 100 Continue\r\n\r\n", status: 200, read: true},
		"wanted after a hint":  {answer: "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", status: 200, read: true},
		"not wanted":           {answer: "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", status: 417},
		"wanted without words": {answer: "", status: 200, read: true},
		"half a word":          {answer: "HTTP/1.1 200 OK\r\n", status: 200, read: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, func(p *peer, _ int) {
				head := p.head()
				if !strings.Contains(head, "Expect: 100-continue\r\n") {
					t.Errorf("no expectation in\n%s", head)
				}
				p.send(test.answer)
				if !test.read {
					p.untilClosed()
					return
				}
				body := make([]byte, 4)
				_, _ = io.ReadFull(p.in, body)
				if string(body) != "body" {
					t.Errorf("got %q", body)
				}
				p.send(strings.TrimPrefix(okResponse, test.answer))
				p.untilClosed()
			})
			var read atomic.Bool
			req := post(readerFunc(func(p []byte) (int, error) {
				read.Store(true)
				return copy(p, "body"), io.EOF
			}), 4)
			req.ExpectContinue = true
			s := serving(t, Options{ContinueTimeout: 20 * time.Millisecond}, b.address())
			if status, _ := fetch(t, s, req); status != test.status {
				t.Errorf("got %d", status)
			}
			if read.Load() != test.read {
				t.Errorf("body read: %v", read.Load())
			}
		})
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// pipeBody is a body that the test writes, and that can be stopped.
func pipeBody() (*Request, *io.PipeWriter, *atomic.Bool) {
	reader, writer := io.Pipe()
	stopped := new(atomic.Bool)
	req := post(reader, -1)
	req.StopBody = func() {
		stopped.Store(true)
		reader.CloseWithError(context.Canceled)
	}
	return req, writer, stopped
}

func TestBothDirectionsAtATime(t *testing.T) {
	b := listen(t, func(p *peer, _ int) {
		request, err := http.ReadRequest(p.in)
		if err != nil {
			t.Error(err)
			return
		}
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		piece := make([]byte, 1)
		for {
			n, err := request.Body.Read(piece)
			if n == 1 {
				p.send("1\r\n" + string(piece) + "\r\n")
			}
			if err != nil {
				break
			}
		}
		p.send("0\r\n\r\n")
		p.untilClosed()
	})
	s := serving(t, Options{}, b.address())
	req, writer, stopped := pipeBody()
	response, err := s.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 10)
	for _, want := range []string{"a", "b", "c"} {
		_, _ = io.WriteString(writer, want)
		n, err := response.Read(piece)
		if err != nil || string(piece[:n]) != want {
			t.Fatalf("got %q, %v, want %q", piece[:n], err, want)
		}
	}
	writer.Close()
	if rest, err := readAll(response); rest != "" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	if stopped.Load() {
		t.Error("a body that has ended was stopped")
	}
}

func TestAnswerBeforeTheEndOfTheRequest(t *testing.T) {
	b := listen(t, func(p *peer, _ int) {
		p.head()
		p.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
		p.untilClosed()
	})
	s := serving(t, Options{}, b.address())
	req, _, stopped := pipeBody()
	if status, body := fetch(t, s, req); status != 413 || body != "no" {
		t.Errorf("got %d %q", status, body)
	}
	if !stopped.Load() {
		t.Error("the body is still being read")
	}
	eventually(t, "the connection, with half a request on it, is closed", func() bool { return b.open.Load() == 0 })
}

func TestAnswerOfAnEndpointThatReadsNoFurther(t *testing.T) {
	b := listen(t, func(p *peer, _ int) {
		p.head()
		p.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
		p.untilClosed()
	})
	endless := post(readerFunc(func(p []byte) (int, error) { return len(p), nil }), 1<<40)
	if status, body := fetch(t, serving(t, Options{}, b.address()), endless); status != 413 || body != "no" {
		t.Errorf("got %d %q", status, body)
	}
}

func TestRequestThatIsCutDoesNotPassAsWhole(t *testing.T) {
	cut := errors.New("the client went away")
	for name, length := range map[string]int64{"small": 10, "large": 1 << 20, "chunked": -1} {
		t.Run(name, func(t *testing.T) {
			b, got := understanding(t)
			s := serving(t, Options{}, b.address())
			_, err := s.Do(t.Context(), post(io.MultiReader(strings.NewReader("abc"), readerFunc(func([]byte) (int, error) { return 0, cut })), length))
			wantKind(t, err, RequestBody)
			if !errors.Is(err, cut) {
				t.Errorf("the cause is lost: %v", err)
			}
			if length == 10 {
				if n := b.accepted.Load(); n != 0 {
					t.Errorf("%d connections for a body that never came", n)
				}
				return
			}
			if request := <-got; request.err == nil {
				t.Errorf("the backend takes %q for the whole body", request.body)
			}
		})
	}
}

func TestBodyShorterThanItsLengthIsAnError(t *testing.T) {
	b, got := understanding(t)
	s := serving(t, Options{}, b.address())
	_, err := s.Do(t.Context(), post(bytes.NewReader(make([]byte, 20<<10)), 30<<10))
	wantKind(t, err, RequestBody)
	if request := <-got; request.err == nil {
		t.Error("the backend takes it for whole")
	}
}

func TestWaitForTheAnswerBeginsWhenTheRequestIsSent(t *testing.T) {
	b, got := understanding(t)
	s := serving(t, Options{}, b.address())
	req, writer, _ := pipeBody()
	req.HeaderTimeout = 60 * time.Millisecond
	go func() {
		for range 4 {
			<-time.After(30 * time.Millisecond)
			_, _ = io.WriteString(writer, "x")
		}
		writer.Close()
	}()
	if status, _ := fetch(t, s, req); status != 200 {
		t.Errorf("got %d", status)
	}
	if request := <-got; request.body != "xxxx" {
		t.Errorf("got %q", request.body)
	}
}
