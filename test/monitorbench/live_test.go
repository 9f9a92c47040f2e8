//go:build monitorbench

package monitorbench

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// liveObjects are so many that no rule takes them for flapping.
const liveObjects = 4000

// TestLive lets the program itself follow a real API server that is written to as fast as it takes it. Built with the tag monitorplant
// it measures a monitor that forgets one change in ten, and has to fail.
func TestLive(t *testing.T) {
	s := startServer(t)
	w := s.newWriter(t, numbered(0), liveObjects)
	during := func(d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	w.run(during(size.during/3), t, 0, 0)
	results.tell("real API server: writes a second of 2 KB objects, without a monitor", "%.0f writes/s", float64(len(w.taken()))/(size.during/3).Seconds())

	p := newProcess(t, s.Config, settings{program: program(t)})
	p.start()
	p.follows(ownKinds+1, time.Minute)
	settled, err := p.figures()
	if err != nil {
		t.Fatal(err)
	}
	cpu, profiled := p.cpu(), p.profile("live", size.during)
	w.run(during(size.during), t, 0, 0)
	last := time.Now()
	done := w.taken()
	if planted {
		pause(t, 5*time.Second) // what it forgets never comes
	} else {
		p.stored(records(settled)+len(done), time.Minute)
	}
	behind, used := time.Since(last), p.cpu()-cpu
	profiled()
	p.end(syscall.SIGTERM)
	lost, inGaps := missing(t, p.folder, numbered(0).group, done)
	results.tell("real API server: writes a second, with the monitor", "%.0f writes/s; the last one was on the disk within %s", float64(len(done))/size.during.Seconds(), milliseconds(behind))
	results.must(t, lost+inGaps == 0, "real API server: changes that were lost", "0", "%d lost, %d in a gap, of %d", lost, inGaps, len(done))
	each := float64(used.Microseconds()) / float64(len(done))
	results.most(t, each, 400, "real API server: the monitor's own processor time for each change", "400 µs", "%.0f µs", each)
	if planted {
		return
	}
	// Objects that change several times in those seconds: who lists again sees the last state only.
	w = s.newWriter(t, numbered(1), 10*writers)
	compareLosses(t, s, w, "killed for 3 s", func(processes ...*process) {
		for _, p := range processes {
			p.end(syscall.SIGKILL)
		}
		pause(t, 3*time.Second)
		for _, p := range processes {
			p.start()
		}
	})
	compareLosses(t, s, w, "cut off for 3 s", nil)
}

// program is slipway-monitor, or this binary as the monitor when none is named.
func program(t *testing.T) string {
	t.Helper()
	named := os.Getenv("MONITOR")
	if named == "" || planted {
		return ""
	}
	absolute, err := filepath.Abs(named)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}

// compareLosses lets the monitor and the plain watcher follow the same writes while something happens to both.
func compareLosses(t *testing.T, s *server, w *writer, what string, disturb func(...*process)) {
	t.Helper()
	way := newProxy(t, s.Config.Host)
	monitor := newProcess(t, s.Config, settings{program: program(t), server: way.address()})
	plain := newProcess(t, s.Config, settings{role: plainRole, server: way.address()})
	monitor.start()
	plain.start()
	monitor.follows(ownKinds+2, time.Minute)
	plain.inside() // it answers when it has listed everything
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.run(ctx, t, 0, 300) }()
	pause(t, 3*time.Second)
	if disturb != nil {
		disturb(monitor, plain)
	} else {
		way.setCut(true)
		pause(t, 3*time.Second)
		way.setCut(false)
	}
	monitor.follows(ownKinds+2, time.Minute)
	plain.inside()
	pause(t, 2*time.Second)
	cancel()
	<-ended
	pause(t, 5*time.Second)
	monitor.end(syscall.SIGTERM)
	plain.end(syscall.SIGTERM)
	done := w.taken()
	lost, inGaps := missing(t, monitor.folder, w.kind.group, done)
	seen, unseen := reported(t, plain.reported), 0
	for _, one := range done {
		if _, found := seen[one.version]; !found {
			unseen++
		}
	}
	results.must(t, lost == 0, "real API server, "+what+" at 300 writes/s: changes that were lost", "0", "%d lost, %d in a recorded gap, of %d; the plain watcher: %d lost", lost, inGaps, len(done), unseen)
}
