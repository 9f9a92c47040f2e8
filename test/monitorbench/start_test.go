//go:build monitorbench

package monitorbench

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
)

// exactly returns an error unless that many kinds are live and no others are known.
func (p *process) exactly(kinds int) error {
	figures, err := p.figures()
	if err != nil {
		return err
	}
	live, others := figures[`slipway_monitor_kinds{state="Live"}`], 0.0
	for _, state := range []string{"Pending", "Listing", "Behind", "Refused", "Failing", "Stopping"} {
		others += figures[`slipway_monitor_kinds{state="`+state+`"}`]
	}
	if int(live) != kinds || others > 0 || figures["slipway_monitor_waiting_events"] > 0 {
		return fmt.Errorf("%v kinds are live, and %v are not", live, others)
	}
	return nil
}

// TestStart measures how long it takes until all kinds are followed that a real API server serves.
func TestStart(t *testing.T) {
	s := startServer(t)
	began := time.Now()
	var group sync.WaitGroup
	for part := range 4 {
		group.Go(func() {
			for i := part; i < size.definitions; i += 4 {
				if err := s.define(t.Context(), numbered(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	last := path(numbered(size.definitions - 1))
	eventually(t, 5*time.Minute, "the last kind, served", func() error { return s.rest.Get().AbsPath(last).Do(t.Context()).Error() })
	results.tell(fmt.Sprintf("real API server: time to make and serve %d definitions", size.definitions), "%.0f s", time.Since(began).Seconds())
	p := newProcess(t, s.Config, settings{program: program(t)})
	for _, start := range []string{"first start", "start with its store"} {
		began = time.Now()
		p.start()
		p.follows(ownKinds+size.definitions, 5*time.Minute)
		took := time.Since(began)
		_, most := p.memory()
		results.most(t, took.Seconds(), 60, fmt.Sprintf("real API server, %d definitions: %s, until all kinds are live", size.definitions, start), "60 s", "%.1f s (%.1f s of processor time; resident at most %d MiB)",
			took.Seconds(), (p.cpu() - p.spent).Seconds(), most/mebibyte)
		p.end(syscall.SIGTERM)
	}
}
