package alarm

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
)

const (
	// idle is how long nothing is looked at when nothing is due.
	idle = time.Minute
	// retry is when to ask again whether a kind is covered, and pace how often the engine is asked at most.
	retry = time.Second
	pace  = 20 * time.Millisecond
)

// follow lets timers fire, and ends the alarms of rules that are gone.
func (a *Alarms) follow(ctx context.Context, r Recorder, covered func(schema.GroupResource) bool) {
	for ctx.Err() == nil {
		wait := idle
		if a.known.Load() {
			wait = min(a.sweep(ctx, r), a.tick(ctx, r, covered))
		}
		timer := a.options.Clock.NewTimer(max(wait, pace))
		select {
		case <-ctx.Done():
		case <-a.engine.Wake():
		case <-a.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// tick lets the timers of all kinds fire that are due, and returns how long nothing else is to be done.
func (a *Alarms) tick(ctx context.Context, r Recorder, covered func(schema.GroupResource) bool) time.Duration {
	wait := idle
	for _, kind := range a.engine.Kinds() {
		next, now := a.engine.Next(kind), a.options.Clock.Now()
		switch {
		case next.IsZero():
		case next.After(now):
			wait = min(wait, next.Sub(now))
		case !covered(kind):
			// What happened meanwhile is not known: the object may be well by now.
			wait = min(wait, retry)
		default:
			wait = 0
			a.tickKind(ctx, r, kind, now)
		}
	}
	return wait
}

func (a *Alarms) tickKind(ctx context.Context, r Recorder, kind schema.GroupResource, now time.Time) {
	var objects []rule.Object
	_, err := r.Add(ctx, kind, func() recorder.Effects {
		effects := a.engine.Tick(kind, now)
		objects = effects.Look
		return a.take(&effects)
	})
	if err != nil {
		return // the context has ended
	}
	for i := range objects {
		a.look(ctx, r, kind, &objects[i])
	}
}

// look has an object evaluated again. One that is not there any more has no alarms.
func (a *Alarms) look(ctx context.Context, r Recorder, kind schema.GroupResource, object *rule.Object) {
	followed, found, err := r.Look(ctx, kind, object.UID)
	if err != nil || !followed || found {
		return
	}
	_, _ = r.Add(ctx, kind, func() recorder.Effects { return a.forget(ctx, kind, object) })
}

// forget ends the alarms of an object of which the store knows nothing.
func (a *Alarms) forget(ctx context.Context, kind schema.GroupResource, object *rule.Object) recorder.Effects {
	effects, err := a.engine.Observe(context.WithoutCancel(ctx), rule.Observation{
		Kind:   change.Kind{Group: kind.Group, Resource: kind.Resource, Kind: object.Kind},
		Before: &change.State{Namespace: object.Namespace, Name: object.Name, UID: object.UID}, Time: a.options.Clock.Now(),
	})
	if err != nil {
		a.options.Log.Error("the alarms of an object that is gone stand", "kind", kind.String(), "error", err.Error())
	}
	return a.take(&effects)
}

// sweep ends the alarms of rules that are gone. Of a kind that is not followed they stand until it is.
func (a *Alarms) sweep(ctx context.Context, r Recorder) time.Duration {
	a.mutex.Lock()
	kinds := make([]schema.GroupResource, 0, len(a.unswept))
	for kind := range a.unswept {
		kinds = append(kinds, kind)
	}
	clear(a.unswept)
	a.mutex.Unlock()
	wait := idle
	for _, kind := range kinds {
		followed, err := r.Add(ctx, kind, func() recorder.Effects {
			effects := a.engine.Sweep(kind, a.options.Clock.Now())
			return a.take(&effects)
		})
		if err == nil && followed {
			continue
		}
		wait = retry
		a.mutex.Lock()
		a.unswept[kind] = true
		a.mutex.Unlock()
	}
	return wait
}
