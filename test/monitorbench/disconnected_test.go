//go:build monitorbench

package monitorbench

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestDisconnected cuts the monitor off from a real API server while many changes are made.
func TestDisconnected(t *testing.T) {
	s := startServer(t)
	w := s.newWriter(t, numbered(0), liveObjects)
	way := newProxy(t, s.Config.Host)
	p := newProcess(t, s.Config, settings{program: program(t), server: way.address()})
	p.start()
	p.follows(ownKinds+1, time.Minute)
	w.run(t.Context(), t, liveObjects/2, 0)
	figures, err := p.figures()
	if err != nil {
		t.Fatal(err)
	}
	p.stored(max(records(figures), liveObjects/2), time.Minute)
	done := w.taken()
	way.setCut(true)
	began := time.Now()
	w.run(t.Context(), t, size.missed, 0)
	made := time.Since(began)
	done = append(done, w.taken()...)
	p.forgetPeak()
	before, _ := p.memory()
	way.setCut(false)
	began = time.Now()
	p.stored(len(done), 5*time.Minute)
	took := time.Since(began)
	_, most := p.memory()
	p.end(syscall.SIGTERM)
	lost, inGaps := missing(t, p.folder, w.kind.group, done)
	what := fmt.Sprintf("real API server: %d changes while the monitor is cut off", size.missed)
	results.must(t, lost+inGaps == 0, what+": dropped", "0", "%d lost, %d in a gap; made in %.0f s, recorded %.1f s after it was connected", lost, inGaps, made.Seconds(), took.Seconds())
	results.most(t, float64(most-before)/mebibyte, 100, what+": more memory, at most", "100 MiB", "%d MiB (%d to %d MiB resident)", (most-before)/mebibyte, before/mebibyte, most/mebibyte)
}
