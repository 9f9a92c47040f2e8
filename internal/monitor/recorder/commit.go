package recorder

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
)

// commit stores a part, however long that takes. It returns false when the recorder has ended.
func (r *Recorder) commit(p *part) bool {
	begin := r.clock.Now()
	if !r.push(p, p.batch()) {
		return false
	}
	if r.options.Committed != nil && len(p.entries) > 0 {
		r.options.Committed(r.clock.Since(begin), len(p.entries))
	}
	var updates []Update
	for i := range p.entries {
		r.counts.add(&p.entries[i])
		if check := p.entries[i].check; check != nil {
			r.checks.add(*check)
		}
		if stored := p.entries[i].stored; stored != nil {
			stored()
		}
		if u := p.entries[i].update; u != nil {
			updates = append(updates, *u)
		}
	}
	r.live.publish(updates)
	return true
}

// push gives a batch to the store until it takes it.
func (r *Recorder) push(p *part, batch store.Batch) bool {
	pause := firstPause
	for {
		err := r.once(p, batch)
		switch {
		case err == nil:
			r.trouble.clear()
			return true
		case r.work.Err() != nil, store.Is(err, store.Closed):
			return false
		case store.Is(err, store.Invalid):
			return r.apart(p, err)
		}
		r.trouble.set(err)
		timer := r.clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-r.work.Done():
			timer.Stop()
			return false
		}
		pause = min(2*pause, maxPause)
	}
}

// once gives a batch to the store. A checkpoint from before the store lost its own is none.
func (r *Recorder) once(p *part, batch store.Batch) error {
	r.gate.RLock()
	defer r.gate.RUnlock()
	if p.epoch != r.epoch.Load() {
		batch.Checkpoint = ""
	}
	return r.store.Commit(r.work, batch)
}

// apart stores the entries of a part one by one, because the store will never take all of them. One that it does not take
// becomes a gap that says so.
func (r *Recorder) apart(p *part, problem error) bool {
	if len(p.entries) == 0 {
		r.log.Error("the store refuses a checkpoint", "kind", p.kind.GroupResource().String(), "error", problem.Error())
		return true
	}
	if len(p.entries) > 1 {
		for i := range p.entries {
			one := part{kind: p.kind, epoch: p.epoch, entries: p.entries[i : i+1]}
			if i == len(p.entries)-1 {
				one.checkpoint, one.reached = p.checkpoint, p.reached
			}
			if !r.push(&one, one.batch()) {
				return false
			}
		}
		return true
	}
	e := &p.entries[0]
	next := *e
	if len(e.outbox)+len(e.values) > 0 {
		next.outbox, next.values, next.stored, next.check = nil, nil, nil, nil
		r.log.Error("what was added to a change cannot be stored", "kind", p.kind.GroupResource().String(), "error", problem.Error())
	} else {
		if len(e.records) == 1 && e.records[0].Type == change.Gap {
			r.log.Error("a gap cannot be stored", "kind", p.kind.GroupResource().String(), "error", problem.Error())
			return true
		}
		next = e.without(p.kind, problem)
	}
	p.entries = []entry{next}
	return r.push(p, p.batch())
}

// Trouble says what is wrong with the store.
type Trouble struct {
	// Kind is what kind of trouble there is, empty when there is none, and Since when it began.
	Kind  store.Trouble
	Since time.Time
	// Message says more.
	Message string
	// limit reports whether it is the limit of the store that is reached, and not that of the disk.
	limit bool
}

// Words says it to everybody, without a path: empty while there is no trouble.
func (t Trouble) Words() string {
	const none = "the store takes no changes: "
	switch {
	case t.Kind == "":
		return ""
	case t.Kind == store.NoSpace && t.limit:
		return none + "the last states of all objects alone need more than its limit (store.maxBytes)"
	case t.Kind == store.NoSpace:
		return none + "its disk is full"
	case t.Kind == store.ReadOnly:
		return none + "its disk may not be written"
	case t.Kind == store.Corrupt:
		return none + "a file of it is damaged"
	}
	return none + "its disk reports errors"
}

// trouble is what is wrong with the store now. A line is logged when that changes.
type trouble struct {
	clock clock.PassiveClock
	log   *slog.Logger

	mutex sync.Mutex
	now   Trouble
}

func (t *trouble) set(err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	kind := store.Failed
	var known *store.Error
	if errors.As(err, &known) {
		kind = known.Trouble
	}
	if t.now.Kind == kind {
		return
	}
	t.now = Trouble{
		Kind: kind, Since: t.clock.Now(), Message: err.Error(), limit: known != nil && known.Err == nil,
	}
	t.log.Error("changes wait, because the store takes none", "trouble", kind, "error", err.Error())
}

func (t *trouble) clear() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.now.Kind == "" {
		return
	}
	t.log.Info("the store takes changes again", "trouble", t.now.Kind, "lasted", t.clock.Since(t.now.Since).Round(time.Second).String())
	t.now = Trouble{}
}

// Trouble returns what is wrong with the store now.
func (r *Recorder) Trouble() Trouble {
	r.trouble.mutex.Lock()
	defer r.trouble.mutex.Unlock()
	return r.trouble.now
}
