package recorder

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// pipe is what waits for the store in one journal. While something is being committed, what comes is gathered, so the more there
// is to do, the more is done at a time. Changes gather for Options.CommitInterval at least, but the first one after a pause is committed at
// once.
type pipe struct {
	recorder *Recorder
	// hurry is told when nothing should be waited for.
	hurry chan struct{}

	mutex sync.Mutex
	// open is what is gathered, and flight what is being committed.
	open, flight part
	// running reports whether a goroutine commits, and forced whether it commits checkpoints of which nothing else is new, too.
	running, forced bool
	// changed is closed when there is room, or nothing left. It is nil while nobody waits.
	changed chan struct{}
}

// reserve waits until there is room for something of that weight. Then add does not fail.
func (p *pipe) reserve(ctx context.Context, weight int64) error {
	err := p.wait(ctx, func() bool { return len(p.open.entries) < maxEntries && p.open.weight < maxBytes })
	if err != nil {
		return err
	}
	return p.recorder.waiting.Acquire(ctx, min(weight, p.recorder.options.MaxWaiting))
}

// release gives back what was reserved and is not needed.
func (p *pipe) release(weight int64) {
	p.recorder.waiting.Release(min(weight, p.recorder.options.MaxWaiting))
}

// add puts an entry behind the others. Its weight was reserved.
func (p *pipe) add(kind change.Kind, e entry) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.describe(kind)
	if e.reached.IsZero() {
		e.reached = p.recorder.clock.Now()
	}
	p.open.entries = append(p.open.entries, e)
	p.open.weight += e.weight
	if p.crowded() {
		p.hurryUp()
	}
	if e.checkpoint != "" {
		p.open.checkpoint = "" // that of the entry is newer
	}
	p.run()
}

// bookmark moves the checkpoint. It is stored with the next entry, or when it is asked for.
func (p *pipe) bookmark(kind change.Kind, checkpoint string, reached time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.describe(kind)
	p.open.checkpoint, p.open.reached = checkpoint, reached
}

func (p *pipe) describe(kind change.Kind) {
	p.open.kind = kind
	if len(p.open.entries) == 0 && p.open.checkpoint == "" {
		p.open.epoch = p.recorder.epoch.Load()
	}
}

// kick lets what waits be committed. With force, that is a checkpoint by itself, too.
func (p *pipe) kick(force bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.forced = p.forced || force
	if force {
		p.hurryUp()
	}
	p.run()
}

// crowded reports whether there is enough for a commit of a good size.
func (p *pipe) crowded() bool {
	return len(p.open.entries) >= batchEntries || p.open.weight >= maxBytes/2
}

func (p *pipe) hurryUp() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// gather lets changes come together after a commit that began then. A kind that changes all the time would write each change by itself
// otherwise, and a write to the disk costs more than the change.
func (p *pipe) gather(begin time.Time) {
	left := p.recorder.options.CommitInterval - p.recorder.clock.Since(begin)
	p.mutex.Lock()
	select {
	case <-p.hurry: // of what is committed by now
	default:
	}
	now := p.forced || p.crowded()
	p.mutex.Unlock()
	if left <= 0 || now {
		return
	}
	timer := p.recorder.clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-p.hurry:
	case <-p.recorder.work.Done():
	}
}

// due reports whether there is something to commit now.
func (p *pipe) due() bool {
	return len(p.open.entries) > 0 || p.forced && p.open.checkpoint != ""
}

// run starts the goroutine that commits, if it does not run and there is something to do.
func (p *pipe) run() {
	if !p.due() {
		p.forced = false
		p.notify()
		return
	}
	if p.running || p.recorder.work.Err() != nil {
		return
	}
	p.running = true
	p.recorder.group.Go(p.flush)
}

// flush commits until there is nothing left.
func (p *pipe) flush() {
	for {
		begin := p.recorder.clock.Now()
		next, more := p.take()
		if !more {
			return
		}
		if !p.recorder.commit(&next) {
			p.mutex.Lock()
			p.running = false // the recorder has ended: what is in flight is sent again after the next start
			p.mutex.Unlock()
			return
		}
		p.landed(&next)
		p.gather(begin)
	}
}

// take takes what is committed next.
func (p *pipe) take() (next part, more bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.due() {
		p.running, p.forced = false, false
		p.notify()
		return part{}, false
	}
	p.flight, p.open = p.open.split()
	p.notify()
	return p.flight, true
}

// landed is told that what was in flight is stored.
func (p *pipe) landed(done *part) {
	p.mutex.Lock()
	p.flight = part{}
	p.notify()
	p.mutex.Unlock()
	for i := range done.entries {
		p.release(done.entries[i].weight)
	}
}

// drain waits until everything is stored, checkpoints included.
func (p *pipe) drain(ctx context.Context) error {
	p.kick(true)
	return p.wait(ctx, func() bool {
		return len(p.flight.entries) == 0 && p.flight.checkpoint == "" && len(p.open.entries) == 0 && p.open.checkpoint == ""
	})
}

// wait waits until something is so.
func (p *pipe) wait(ctx context.Context, is func() bool) error {
	for {
		p.mutex.Lock()
		if is() {
			p.mutex.Unlock()
			return ctx.Err()
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mutex.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.recorder.work.Done():
			return p.recorder.work.Err()
		}
	}
}

func (p *pipe) notify() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// waiting returns what is not stored yet of an object: its last state, nil when it is gone.
func (p *pipe) waiting(uid types.UID) (state *change.State, found bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, entries := range [][]entry{p.open.entries, p.flight.entries} {
		for i := len(entries) - 1; i >= 0; i-- {
			if put := entries[i].put; put != nil && put.UID == uid {
				return put, true
			}
			for _, gone := range entries[i].drop {
				if gone == uid {
					return nil, true
				}
			}
		}
	}
	return nil, false
}

// size returns how much waits.
func (p *pipe) size() (entries int, bytes int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.open.entries) + len(p.flight.entries), p.open.weight + p.flight.weight
}
