package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// soonEnough is when everything must have ended that Options{SendTimeout: briefly} ends.
const briefly, soonEnough = 20 * time.Millisecond, 5 * time.Second

// unreadBackends do not read the body of a request. The last one answers before.
func unreadBackends(t *testing.T) map[Protocol]string {
	hold := make(chan struct{})
	http2 := http2Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/answered" {
			_ = http.NewResponseController(w).Flush()
		}
		<-hold
	})
	http1 := listen(t, func(p *peer, _ int) {
		if strings.Contains(p.head(), "/answered") {
			p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
		}
		<-hold
	})
	t.Cleanup(func() { close(hold) })
	return map[Protocol]string{HTTP1: http1.address(), HTTP2: http2}
}

func upload() *Request { return post(endless{}, 1<<40) }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Who does not read the request has failed in time, whatever bounds the wait for the response of one that was sent.
func TestARequestThatIsNotReadEndsWithoutABoundOfItsResponse(t *testing.T) {
	for protocol, address := range unreadBackends(t) {
		for name, deadline := range map[string]time.Time{"no bound": {}, "a bound that is far away": time.Now().Add(time.Hour)} {
			ctx, cancel := context.WithTimeout(t.Context(), soonEnough)
			req := upload()
			req.Protocol, req.Deadline = protocol, deadline
			_, err := serving(t, Options{SendTimeout: briefly}, address).Do(ctx, req)
			cancel()
			if KindOf(err) != Timeout {
				t.Errorf("%v, %s: got %v, want a timeout", protocol, name, err)
			}
		}
	}
}

// Whoever does not wait any more keeps nothing up, though nothing is read from the client, and though the endpoint may pause.
func TestARequestThatIsNotReadEndsWithItsClient(t *testing.T) {
	for protocol, address := range unreadBackends(t) {
		for name, change := range map[string]func(*Request){
			"patient":                     func(r *Request) { r.Patient = true },
			"patient, answered":           func(r *Request) { r.Patient, r.Target = true, "/answered" },
			"with a bound, answered":      func(r *Request) { r.Target = "/answered" },
			"patient, of unknown length":  func(r *Request) { r.Patient, r.ContentLength = true, -1 },
			"patient, and never answered": func(r *Request) { r.Patient, r.Deadline = true, time.Now().Add(time.Hour) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), soonEnough)
			var asked atomic.Int64
			req := upload()
			req.Protocol = protocol
			change(req)
			req.ClientGone = func() bool { return asked.Add(1) == 3 } // it is still there at first
			response, err := serving(t, Options{SendTimeout: briefly}, address).Do(ctx, req)
			if err == nil {
				if _, err = readAll(response); err == nil {
					t.Errorf("%v, %s: the response is whole", protocol, name)
				}
			} else if wantKind(t, err, Canceled); !errors.Is(err, errClientGone) {
				t.Errorf("%v, %s: got %v", protocol, name, err)
			}
			if ctx.Err() != nil {
				t.Errorf("%v, %s: it did not end", protocol, name)
			}
			cancel()
			if asked.Load() != 3 {
				t.Errorf("%v, %s: asked %d times", protocol, name, asked.Load())
			}
		}
	}
}

// An exchange has ended when nothing stops its body any more: what stops it is gone then.
func TestASourceDoesNotStopAfterItHasFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, stopping, mayStop := make(chan struct{}), make(chan struct{}, 2), make(chan struct{})
		var stopped atomic.Int64
		req := post(readerFunc(func([]byte) (int, error) { <-read; return 0, io.EOF }), -1)
		req.StopBody = func() { stopping <- struct{}{}; <-mayStop; stopped.Add(1) }
		source := req.source(nil)
		source.lost = true
		body := &http2Body{request: req, source: source, ended: func() {}}
		go func() { _, _ = source.read(body, make([]byte, 10)) }()
		synctest.Wait()
		go source.leave(body)
		<-stopping
		close(read) // the read returns without being stopped
		synctest.Wait()
		var finished atomic.Bool
		go func() { source.finish(); finished.Store(true) }()
		synctest.Wait()
		if finished.Load() {
			t.Error("it has finished while the body was being stopped")
		}
		close(mayStop)
		synctest.Wait()
		if !finished.Load() || stopped.Load() != 1 {
			t.Errorf("finished: %t, stopped %d times", finished.Load(), stopped.Load())
		}
	})
}

// What was read is not kept for as long as the response comes.
func TestABodyIsNotKeptForTheResponse(t *testing.T) {
	for name, late := range map[string]bool{"read before the head": false, "read after the head": true} {
		req := post(strings.NewReader(strings.Repeat("x", 1000)), -1)
		source := req.source(panics.Reporter(nil))
		body := &http2Body{request: req, source: source, ended: func() {}}
		if late {
			if _, err := source.read(body, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			source.settle(body)
		}
		n, err := io.Copy(io.Discard, readerFunc(func(p []byte) (int, error) { return source.read(body, p) }))
		if !late {
			source.settle(body)
		}
		if n+map[bool]int64{true: 10}[late] != 1000 || err != nil || source.kept != nil {
			t.Errorf("%s: %d bytes are kept of %d, %v", name, cap(source.kept), n, err)
		}
		if _, err := source.read(body, make([]byte, 10)); !errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: then %v", name, err)
		}
	}
}
