package recorder

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Look shows the last known state of an object to the observer, without a record. It reports whether the kind is followed, and
// whether there is such an object.
func (r *Recorder) Look(ctx context.Context, kind schema.GroupResource, uid types.UID) (followed, found bool, err error) {
	followed, err = r.visit(ctx, kind, func(j *journal, e *entry) error {
		state, err := j.before(ctx, uid)
		if err != nil || state == nil {
			return err
		}
		found = true
		j.show(ctx, e, state, r.clock.Now())
		return nil
	})
	return followed, found, err
}

// show asks the observer about an object that has not changed.
func (j *journal) show(ctx context.Context, e *entry, state *change.State, now time.Time) {
	seen := Change{Kind: j.kind, Before: state, After: state, Time: now}
	moved := false
	seen.Object, seen.Health = j.judge(state, now)
	seen.HealthBefore, moved = j.health.set(j, e, state, seen.Health, now)
	j.ask(ctx, e, seen)
	if moved {
		e.update = &Update{
			Kind: j.kind, Namespace: state.Namespace, Name: state.Name, UID: state.UID, Health: seen.Health,
			HealthBefore: seen.HealthBefore,
		}
	}
}

// ask asks the observer what it adds.
func (j *journal) ask(ctx context.Context, e *entry, seen Change) {
	if observer := j.recorder.options.Observer; observer != nil {
		e.take(observer.Observe(ctx, seen))
	}
}

// take adds what an observer adds.
func (e *entry) take(effects Effects) {
	e.outbox, e.values = append(e.outbox, effects.Outbox...), append(e.values, effects.Values...)
	e.stored = effects.Stored
}

// Add stores what an observer adds of its own, behind what it has added to the changes of a kind. Meanwhile no change of the kind
// is shown to it. It reports whether the kind is followed: otherwise nothing is asked for.
func (r *Recorder) Add(ctx context.Context, kind schema.GroupResource, ask func() Effects) (followed bool, err error) {
	return r.visit(ctx, kind, func(_ *journal, e *entry) error {
		e.take(ask())
		return nil
	})
}

// Stored waits until everything is stored that was seen before it was called.
func (r *Recorder) Stored(ctx context.Context) error {
	for _, j := range r.all() {
		if err := j.behind(ctx); err != nil {
			return err
		}
	}
	return nil
}

// behind puts something behind what waits, and waits until that is stored.
func (j *journal) behind(ctx context.Context) error {
	if waiting, _ := j.pipe.size(); waiting == 0 {
		return nil
	}
	landed := make(chan struct{})
	followed, err := j.recorder.visit(ctx, j.key, func(_ *journal, e *entry) error {
		e.stored = sync.OnceFunc(func() { close(landed) })
		return nil
	})
	if err != nil || !followed {
		return err
	}
	select {
	case <-landed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-j.recorder.work.Done():
		return j.recorder.work.Err()
	}
}

// followed returns the journal of a kind, nil when there is none.
func (r *Recorder) followed(kind schema.GroupResource) *journal {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.journals[kind]
}

// visit adds what follows from something that is no event.
func (r *Recorder) visit(ctx context.Context, kind schema.GroupResource, do func(*journal, *entry) error) (followed bool, err error) {
	j := r.followed(kind)
	if j == nil {
		return false, nil
	}
	if err := j.pipe.reserve(ctx, entryBytes); err != nil {
		return true, err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if r.followed(kind) != j || j.kind.Resource == "" { // it is gone by now, or is not opened yet
		j.pipe.release(entryBytes)
		return false, nil
	}
	e := entry{weight: entryBytes}
	if err := do(j, &e); err != nil || e.empty() && e.stored == nil {
		j.pipe.release(entryBytes)
		return true, err
	}
	j.pipe.add(j.kind, e)
	return true, nil
}
