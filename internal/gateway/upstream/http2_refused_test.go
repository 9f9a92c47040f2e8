package upstream

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// refusals are how an endpoint says that it has not processed a request.
var refusals = map[string]func(s *streamsOf, stream uint32){
	"a refused stream":                  func(s *streamsOf, stream uint32) { _ = s.WriteRSTStream(stream, http2.ErrCodeRefusedStream) },
	"an endpoint that ends":             func(s *streamsOf, _ uint32) { _ = s.WriteGoAway(0, http2.ErrCodeNo, nil) },
	"an endpoint that ends with a code": func(s *streamsOf, _ uint32) { _ = s.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) },
	"an endpoint that lowers its limit": func(s *streamsOf, stream uint32) { lowerTo(s, 0, stream) },
	"an endpoint that ends after hints": func(s *streamsOf, stream uint32) {
		s.head(stream, false, "103")
		_ = s.WriteGoAway(0, http2.ErrCodeNo, nil)
	},
	"a refused stream after 100 continue": func(s *streamsOf, stream uint32) {
		s.head(stream, false, "100")
		_ = s.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
	},
	"a refused stream before its settings": func(s *streamsOf, stream uint32) {
		_ = s.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		_ = s.WriteSettings()
	},
}

func lowerTo(s *streamsOf, limit, refused uint32) {
	_ = s.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: limit})
	_ = s.WriteRSTStream(refused, http2.ErrCodeRefusedStream)
}

// echoing sends the head at once, and then the request's body.
func echoing(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	_, _ = io.Copy(w, r.Body)
}

// untilHead is a body that comes when the head of the response has come, as clients of gRPC may send it.
func untilHead(text string) (req *Request, headCame func()) {
	req, writer, _ := pipeBody()
	return req, func() { _, _ = io.WriteString(writer, text); _ = writer.Close() }
}

// Whatever an endpoint refuses, and whatever was read of the request: another endpoint is asked, and gets all of it.
func TestARequestThatWasNotProcessedGoesToAnotherEndpoint(t *testing.T) {
	sized := func(text string) func() (*Request, string, func()) {
		return func() (*Request, string, func()) { return post(strings.NewReader(text), int64(len(text))), text, nil }
	}
	unsized := func(text string) func() (*Request, string, func()) {
		return func() (*Request, string, func()) { return post(strings.NewReader(text), -1), text, nil }
	}
	bodies := map[string]func() (req *Request, body string, headCame func()){
		"none":                     func() (*Request, string, func()) { return get(), "", nil },
		"small":                    sized("body"),
		"small, of unknown length": unsized("body"),
		"as much as is kept":       unsized(strings.Repeat("x", MaxReplay-1)),
		"that waits for the head":  func() (*Request, string, func()) { req, came := untilHead("body"); return req, "body", came },
		"much that waits for a head": func() (*Request, string, func()) {
			text := strings.Repeat("x", 1<<20)
			req, came := untilHead(text)
			return req, text, came
		},
	}
	other := http2Backend(t, echoing)
	for refusal, refuse := range refusals {
		refusing := framesBackend(t, func(s *streamsOf, stream uint32, _ string) { refuse(s, stream) })
		for body, make := range bodies {
			t.Run(refusal+", a body "+body, func(t *testing.T) {
				s := serving(t, Options{Ejection: Ejection{Failures: 1 << 30}}, refusing.address(), other)
				var wait sync.WaitGroup
				for range 8 {
					wait.Go(func() {
						req, want, headCame := make()
						req.Protocol, req.Deadline = HTTP2, time.Now().Add(5*time.Second)
						response, err := s.Do(t.Context(), req)
						if err != nil {
							t.Error(err)
							return
						}
						if headCame != nil {
							go headCame()
						}
						if got, err := readAll(response); got != want || err != nil {
							t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
						}
					})
				}
				wait.Wait()
			})
		}
		if refusing.accepted.Load() == 0 {
			t.Errorf("%s: it was not asked, so nothing is shown", refusal)
		}
	}
}

// What is not kept is not sent again, and nobody waits for a client whose request cannot be answered.
func TestARequestThatEndsWhileItsBodyIsReadIsAnsweredAtOnce(t *testing.T) {
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			var left atomic.Int64 // how much of a body is read before the endpoint refuses
			b := listen(t, func(p *peer, _ int) {
				_, _ = io.ReadFull(p.in, make([]byte, len(http2.ClientPreface)))
				s := newStreams(p)
				_ = s.WriteSettings()
				for {
					frame, err := s.ReadFrame()
					if err != nil {
						return
					}
					if data, ok := frame.(*http2.DataFrame); ok && left.Add(-int64(len(data.Data()))) == 0 {
						refuse(s, data.StreamID)
					}
				}
			})
			s := serving(t, Options{Ejection: Ejection{Failures: 1 << 30}}, b.address())
			req, writer, _ := pipeBody()
			req.Protocol, req.Deadline = HTTP2, time.Now().Add(5*time.Second)
			left.Store(2 * MaxReplay)
			defer writer.Close()
			go func() { _, _ = io.WriteString(writer, strings.Repeat("x", 2*MaxReplay)) }() // and the client waits
			_, err := s.Do(t.Context(), req)
			wantKind(t, err, Reset)
		})
	}
}
