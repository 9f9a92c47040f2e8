//go:build monitorbench

package monitorbench

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// cyclesAtOnce is how many definitions come and go at a time, each with so many objects.
	cyclesAtOnce = 10
	cycleObjects = 3
)

// TestCycles lets definitions come and go, and looks for what is left of them. The API server is a replay.
func TestCycles(t *testing.T) {
	s := newReplay(t)
	s.define(numbered(0), 2000)
	p := newProcess(t, s.access(), settings{})
	p.start()
	p.follows(1, time.Minute)
	s.change(numbered(0), 0, 2000)
	p.stored(2000, time.Minute)
	const again = 100
	cycle(t, s, p, 1, size.cycles/5, again) // what is kept of the last changes, and of connections, is there
	before := p.settled()
	measureCycles(t, s, p, before, "100 names in turn", 1, again)
	before = p.settled()
	p.heap("cycles-before")
	measureCycles(t, s, p, before, "each with a name of its own", 1+again, size.cycles)
	p.heap("cycles-after")
	p.end(syscall.SIGTERM)
}

func measureCycles(t *testing.T, s *replay, p *process, before inside, name string, from, names int) {
	t.Helper()
	began := time.Now()
	cycle(t, s, p, from, size.cycles, names)
	took := time.Since(began)
	after := p.settled()
	what := fmt.Sprintf("replay: %d definitions that came and went, %d at a time, %s", size.cycles, cyclesAtOnce, name)
	results.must(t, after.Goroutines <= before.Goroutines, what+": goroutines that are left", "0", "%d (%d to %d; %.0f s)", after.Goroutines-before.Goroutines, before.Goroutines, after.Goroutines, took.Seconds())
	growth := float64(after.Heap-before.Heap) / mebibyte
	results.most(t, growth, 1, what+": heap that is left", "1 MiB", "%.2f MiB (%.1f to %.1f)", growth, float64(before.Heap)/mebibyte, float64(after.Heap)/mebibyte)
}

// settled is what the process says of itself when nothing is under way: the least of some readings, further apart than what the
// monitor does from time to time.
func (p *process) settled() inside {
	p.t.Helper()
	least := p.inside()
	for range 4 {
		pause(p.t, 3*time.Second)
		now := p.inside()
		least.Heap, least.Goroutines = min(least.Heap, now.Heap), min(least.Goroutines, now.Goroutines)
	}
	return least
}

func cycle(t *testing.T, s *replay, p *process, from, n, names int) {
	t.Helper()
	var group sync.WaitGroup
	for part := range cyclesAtOnce {
		group.Go(func() {
			for i := part; i < n; i += cyclesAtOnce {
				k := numbered(from + i%names)
				s.define(k, cycleObjects)
				s.watched(k)
				s.undefine(k)
			}
		})
	}
	group.Wait()
	s.change(numbered(0), 0, 1100) // the last states in memory are again those of kinds that stay
	eventually(t, time.Minute, "the end of all kinds but two", func() error { return p.exactly(2) })
}
