package upstream

import (
	"testing"
	"time"
)

// The response is the same, and the connection is kept, whether the response comes before
// the context is watched or long after.
func TestResponsesThatComeAtOnceAndAfterAWhile(t *testing.T) {
	for name, pause := range map[string]time.Duration{"at once": 0, "after a while": 3 * unwatched} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, func(p *peer, _ int) {
				for p.head() != "" {
					<-time.After(pause)
					p.send("HTTP/1.1 200 OK\r\nContent-Le")
					<-time.After(pause)
					p.send("ngth: 2\r\n\r\no")
					<-time.After(pause)
					p.send("k")
				}
			})
			s := serving(t, Options{}, b.address())
			for range 3 {
				if status, body := fetch(t, s, get()); status != 200 || body != "ok" {
					t.Errorf("got %d %q", status, body)
				}
			}
			if n := b.accepted.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}
