//go:build monitorbench

package monitorbench

import (
	"syscall"
	"testing"
	"time"
)

// TestReplayed measures how many changes the monitor takes when the server is not what limits it.
func TestReplayed(t *testing.T) {
	for _, m := range []struct {
		name  string
		kinds int
		goal  float64
	}{{"one kind", 1, 2000}, {"20 kinds", 20, 0}} {
		t.Run(m.name, func(t *testing.T) { measureReplay(t, m.name, m.kinds, m.goal) })
	}
}

// replayedObjects are how many objects change in turn: so many that the last state of few of them is in memory.
const replayedObjects = 10_000

func measureReplay(t *testing.T, name string, kinds int, goal float64) {
	s := newReplay(t)
	for i := range kinds {
		s.define(numbered(i), replayedObjects/kinds)
	}
	p := newProcess(t, s.access(), settings{})
	p.start()
	p.follows(kinds, time.Minute)
	before, cpu, began := p.inside(), p.cpu(), time.Now()
	done := p.profile("replayed", size.during)
	const step = 500
	sent := 0
	for at := make([]int, kinds); time.Since(began) < size.during; {
		i := sent / step % kinds
		s.change(numbered(i), at[i], step)
		at[i] = (at[i] + step) % (replayedObjects / kinds)
		sent += step
		s.waitSent(numbered(i), 4*step)
	}
	p.stored(sent, time.Minute)
	took, used := time.Since(began), p.cpu()-cpu
	done()
	after := p.inside()
	_, most := p.memory()
	rate := float64(sent) / took.Seconds()
	what := "replayed watch of " + name + ": changes a second, until the last is on the disk"
	reported := "%.0f changes/s for %.0f s (%d, %.0f µs CPU each, %.0f in a write to the disk); resident at most %d MiB"
	arguments := []any{rate, took.Seconds(), sent, float64(used.Microseconds()) / float64(sent), float64(sent) / float64(after.Commits-before.Commits), most / mebibyte}
	if goal > 0 {
		results.least(t, rate, goal, what, "2000", reported, arguments...)
	} else {
		results.tell(what, reported, arguments...)
	}
	if after.Written-before.Written < int64(sent) {
		t.Errorf("%d of %d changes are stored", after.Written-before.Written, sent)
	}
	perChange := func(now, then inside) float64 {
		return float64(now.Bytes-now.StateBytes-now.SnapshotBytes-then.Bytes+then.StateBytes+then.SnapshotBytes) / float64(sent)
	}(after, before)
	results.most(t, perChange, 400, "replayed watch of "+name+": disk for each change, without full snapshots", "400 B", "%.0f B, and %.0f B of snapshots; with the last states, %d MiB in all",
		perChange, float64(after.SnapshotBytes-before.SnapshotBytes)/float64(sent), after.Bytes/mebibyte)
	p.end(syscall.SIGTERM)
}
