package upstream

import (
	"context"
	"io"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// An endpoint may say that it takes requests, and then, before one is sent, that it takes none. It is not asked for ever.
func TestAnEndpointThatTakesNoRequestsAfterAllIsNotAskedForEver(t *testing.T) {
	for name, refuse := range map[string]func(s *streamsOf){
		"it ends":        func(s *streamsOf) { _ = s.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"none at a time": func(s *streamsOf) { _ = s.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}) },
	} {
		t.Run(name, func(t *testing.T) {
			accepted, begin, refused := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
			b := listen(t, func(p *peer, _ int) {
				accepted <- struct{}{}
				<-begin
				_, _ = io.ReadFull(p.in, make([]byte, len(http2.ClientPreface)))
				s := newStreams(p)
				_ = s.WriteSettings()
				for said := false; ; {
					frame, err := s.ReadFrame()
					if err != nil {
						return
					}
					switch frame := frame.(type) {
					case *http2.SettingsFrame:
						if frame.IsAck() && !said {
							said = true
							<-time.After(20 * time.Millisecond) // the connection is open then
							refuse(s)
							_ = s.WritePing(false, [8]byte{1})
						}
					case *http2.PingFrame:
						if frame.IsAck() {
							refused <- struct{}{}
						}
					}
				}
			})
			s := serving(t, Options{}, b.address())
			conns := newHTTP2(newEndpoint(b.address(), s), s).conns[wide]
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := conns.get(ctx, 0)
				ended <- err
			}()
			for waits := true; waits; {
				select {
				case <-accepted:
					conns.mu.Lock() // so that nobody gets the connection before it refuses
					begin <- struct{}{}
					<-refused
					conns.mu.Unlock()
				case err := <-ended:
					waits = false
					if got := (&http2Exchange{ctx: ctx}).explain(ctx, "", err); got.Kind != Connect {
						t.Errorf("got %v", err)
					}
				}
			}
			if n := b.accepted.Load(); n != maxUseless {
				t.Errorf("%d connections", n)
			}
			eventually(t, "all are closed", func() bool { return b.open.Load() == 0 })
			if len(conns.conns) > 0 {
				t.Errorf("%d are kept", len(conns.conns))
			}
		})
	}
}
