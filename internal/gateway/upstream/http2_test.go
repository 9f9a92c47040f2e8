package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// http2Backend starts a server that speaks only h2c. Without a handler it reads the request
// and answers ok.
func http2Backend(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	if handler == nil {
		handler = func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "ok")
		}
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func getHTTP2() *Request {
	req := get()
	req.Protocol = HTTP2
	return req
}

func TestHTTP2RequestArrivesAsItIs(t *testing.T) {
	got := make(chan *http.Request, 1)
	address := http2Backend(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		got <- r
		w.Header().Set("X-Answer", "yes")
		w.Header().Set("Keep-Alive", "no")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	})
	s := serving(t, Options{}, address)
	req := post(strings.NewReader("body"), 4)
	req.Protocol, req.Target, req.AcceptTrailers = HTTP2, "/a%2fb//c?d=e&f", true
	req.Fields = []Field{{"X-Ask", "1"}, {"x-ask", "2"}}
	response, err := s.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if response.Status != http.StatusTeapot {
		t.Errorf("got %d", response.Status)
	}
	for _, field := range response.Fields {
		if fieldname.OfConnection(field.Name) && field.Name != "Content-Length" {
			t.Errorf("passed on: %v", field)
		}
	}
	if body, err := readAll(response); body != "short and stout" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	r := <-got
	body, _ := io.ReadAll(r.Body)
	if r.Host != "example.com" || r.RequestURI != "/a%2fb//c?d=e&f" || string(body) != "body" || r.ContentLength != 4 {
		t.Errorf("got %s %s %q %d", r.Host, r.RequestURI, body, r.ContentLength)
	}
	want := http.Header{"X-Ask": {"1", "2"}, "Te": {"trailers"}, "Content-Length": {"4"}}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHTTP2TrailersBothWays(t *testing.T) {
	address := http2Backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if got := r.Trailer.Get("Digest"); got != "x" {
			t.Errorf("trailer of the request: %q", got)
		}
		_, _ = io.WriteString(w, "ok")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Location", "/") // which must not be a trailer
	})
	s := serving(t, Options{}, address)
	req := post(strings.NewReader("body"), -1)
	req.Protocol = HTTP2
	req.Trailers = func() []Field { return []Field{{"digest", "x"}} }
	response, err := s.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Close()
	_, _ = io.Copy(io.Discard, response)
	if diff := cmp.Diff([]Field{{"Grpc-Status", "0"}}, response.Trailers()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHTTP2StreamsBothWays(t *testing.T) {
	address := http2Backend(t, func(w http.ResponseWriter, r *http.Request) {
		controller := http.NewResponseController(w)
		controller.Flush()
		piece := make([]byte, 10)
		for {
			n, err := r.Body.Read(piece)
			_, _ = w.Write(piece[:n])
			controller.Flush()
			if err != nil {
				return
			}
		}
	})
	s := serving(t, Options{}, address)
	req, writer, stopped := pipeBody()
	req.HeaderTimeout = 100 * time.Millisecond
	req.Protocol = HTTP2
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
	<-time.After(120 * time.Millisecond) // longer than the wait for a head
	if rest, err := readAll(response); rest != "" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	if stopped.Load() {
		t.Error("a body that has ended was stopped")
	}
}

func TestAnAttemptOverHTTP2EndsWithItsResponse(t *testing.T) {
	address := http2Backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	req := getHTTP2()
	req.AttemptTimeout = 50 * time.Millisecond
	response, err := serving(t, Options{}, address).Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := readAll(response); body != "begun" || err == nil {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestHTTP2FailuresHaveAKind(t *testing.T) {
	started := make(chan struct{}, 1)
	hang := http2Backend(t, func(_ http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-r.Context().Done()
	})
	abort := http2Backend(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

	req := getHTTP2()
	req.HeaderTimeout = 30 * time.Millisecond
	_, err := serving(t, Options{}, hang).Do(t.Context(), req)
	wantKind(t, err, Timeout)
	<-started

	req = getHTTP2()
	req.Deadline = time.Now().Add(30 * time.Millisecond)
	_, err = serving(t, Options{}, hang).Do(t.Context(), req)
	wantKind(t, err, Timeout)
	<-started

	req = getHTTP2()
	req.AttemptTimeout = 30 * time.Millisecond
	_, err = serving(t, Options{}, hang).Do(t.Context(), req)
	wantKind(t, err, Timeout)
	<-started

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	_, err = serving(t, Options{}, hang).Do(ctx, getHTTP2())
	wantKind(t, err, Canceled)

	_, err = serving(t, Options{}, abort).Do(t.Context(), getHTTP2())
	wantKind(t, err, Reset)

	req = getHTTP2()
	req.Upgrade = "websocket"
	_, err = serving(t, Options{}, hang).Do(t.Context(), req)
	wantKind(t, err, InvalidRequest)

	cut := errors.New("the client went away")
	req = post(readerFunc(func([]byte) (int, error) { return 0, cut }), -1)
	req.Protocol = HTTP2
	_, err = serving(t, Options{}, http2Backend(t, nil)).Do(t.Context(), req)
	wantKind(t, err, RequestBody)
	if !errors.Is(err, cut) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestHTTP2BodyIsNotReadAfterTheExchange(t *testing.T) {
	address := http2Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	})
	s := serving(t, Options{}, address)
	var closed, late atomic.Bool
	reader, writer := io.Pipe()
	defer writer.Close()
	req := post(readerFunc(func(p []byte) (int, error) {
		if closed.Load() {
			late.Store(true)
		}
		return reader.Read(p)
	}), -1)
	req.Protocol = HTTP2
	req.StopBody = func() { reader.CloseWithError(io.ErrClosedPipe) }
	if status, _ := fetch(t, s, req); status != http.StatusForbidden {
		t.Errorf("got %d", status)
	}
	closed.Store(true)
	fetch(t, s, getHTTP2())
	if late.Load() {
		t.Error("the body was read after its exchange had ended")
	}
}

func TestHTTP2ConnectionIsSharedAndDrained(t *testing.T) {
	var conns, open atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			conns.Add(1)
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s := serving(t, Options{}, server.Listener.Addr().String())
	first, err := s.Do(t.Context(), getHTTP2())
	if err != nil {
		t.Fatal(err)
	}
	fetch(t, s, getHTTP2())
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	s.Set(nil)
	if body, err := readAll(first); body != "ok" || err != nil {
		t.Errorf("the request under way got %q, %v", body, err)
	}
	eventually(t, "the connection is closed", func() bool { return open.Load() == 0 })
}

func TestHTTP2InformationalResponses(t *testing.T) {
	address := http2Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	})
	var hints atomic.Int64
	req := getHTTP2()
	req.Informational = func(status int, fields []Field) {
		if status == http.StatusEarlyHints && len(fields) == 1 {
			hints.Add(1)
		}
	}
	fetch(t, serving(t, Options{}, address), req)
	if hints.Load() != 1 {
		t.Errorf("%d hints", hints.Load())
	}
}
