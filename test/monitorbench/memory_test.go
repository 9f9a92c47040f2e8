//go:build monitorbench

package monitorbench

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// steadyFor is how long a process is left alone, with few changes, before it is said what is resident.
const steadyFor = 60 * time.Second

// TestMemory measures what watched objects cost. The API server is a replay: a real one takes minutes to make 100,000 objects, and
// what the monitor keeps is the same.
func TestMemory(t *testing.T) {
	s := newReplay(t)
	perKind := size.objects / size.kinds
	few := perKind / 5
	for i := range size.kinds {
		s.define(numbered(i), few)
	}
	p := newProcess(t, s.access(), settings{})
	p.start()
	p.follows(size.kinds, 5*time.Minute)
	p.turnOver(s)
	small := p.inside()
	for i := range size.kinds {
		s.change(numbered(i), few, perKind-few)
	}
	p.stored(size.kinds*(perKind-few)+turned, 5*time.Minute)
	p.turnOver(s)
	large := p.inside()
	slope := float64(large.Heap-small.Heap) / float64(size.kinds*(perKind-few))
	what := fmt.Sprintf("replay: heap for each object, from %d to %d in %d kinds", size.kinds*few, size.kinds*perKind, size.kinds)
	results.most(t, slope, 500, what, "500 B", "%.0f B (%.1f to %.1f MiB after GC; %d goroutines)", slope, float64(small.Heap)/mebibyte, float64(large.Heap)/mebibyte, large.Goroutines)
	p.end(syscall.SIGTERM)

	p = newProcess(t, s.access(), settings{})
	began := time.Now()
	p.start()
	p.follows(size.kinds, 5*time.Minute)
	p.baselines(size.kinds*perKind + size.kinds) // the definitions, too
	took := time.Since(began)
	_, most := p.memory()
	what = fmt.Sprintf("replay: %d objects in %d kinds", size.kinds*perKind, size.kinds)
	results.most(t, float64(most)/mebibyte, 450, what+": resident at most, from the start until all are in the store", "450 MiB", "%d MiB, in %.0f s", most/mebibyte, took.Seconds())
	p.steady(s, what+": resident after a minute with 50 changes/s")
	p.end(syscall.SIGTERM)
	p.start()
	p.follows(size.kinds, 5*time.Minute)
	_, most = p.memory()
	results.most(t, float64(most)/mebibyte, 450, what+": resident at most, from a start with a store that has them until all kinds are live", "450 MiB", "%d MiB", most/mebibyte)
	p.end(syscall.SIGTERM)

	plain := newProcess(t, s.access(), settings{role: plainRole})
	plain.start()
	inside := plain.inside()
	now, most := plain.memory()
	results.tell(what+": the plain watcher", "%d MiB resident, at most %d MiB; %.0f B of heap for each object", now/mebibyte, most/mebibyte, float64(inside.Heap)/float64(size.kinds*perKind))
	plain.end(syscall.SIGKILL)
}

// turned is how many changes turnOver makes.
const turned = 2000

// turnOver changes some objects, so that what is kept of the last changes is full.
func (p *process) turnOver(s *replay) {
	p.t.Helper()
	figures, err := p.figures()
	if err != nil {
		p.t.Fatal(err)
	}
	n := min(10, size.kinds)
	before := records(figures)
	for i := range n {
		for left := turned / n; left > 0; {
			step := min(left, size.objects/size.kinds/5)
			s.change(numbered(i), 0, step)
			left -= step
		}
	}
	p.stored(before+turned/n*n, time.Minute)
}

// baselines waits until all objects that were there at first are in the store.
func (p *process) baselines(objects int) {
	p.t.Helper()
	eventually(p.t, 5*time.Minute, "all objects in the store", func() error {
		figures, err := p.figures()
		if err != nil {
			return err
		}
		if now := int(figures[`slipway_monitor_records_total{type="Baseline"}`]); now < objects {
			return fmt.Errorf("%d of %d are", now, objects)
		}
		return nil
	})
}

func (p *process) steady(s *replay, what string) {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < min(steadyFor, 2*size.during); {
		s.change(numbered(int(time.Since(began).Milliseconds())%size.kinds), 0, 5)
		pause(p.t, 100*time.Millisecond)
	}
	now, _ := p.memory()
	inside := p.inside()
	results.most(p.t, float64(now)/mebibyte, 300, what, "300 MiB", "%d MiB (heap %.1f MiB after GC, stacks %.1f MiB, %d goroutines)", now/mebibyte, float64(inside.Heap)/mebibyte,
		float64(inside.Stacks)/mebibyte, inside.Goroutines)
}
