package recorder

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/text"
)

// followLosses tells of what the store loses while it is used.
func (r *Recorder) followLosses(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.store.Lost():
		}
		_ = r.insist(ctx, func() error { return r.reportLosses(ctx) })
	}
}

// reportLosses records a gap of each kind for what the store has lost. When it lost how far it was, all journals are opened again,
// and all objects listed.
func (r *Recorder) reportLosses(ctx context.Context) error {
	losses, err := r.store.Losses(ctx)
	if err != nil || len(losses) == 0 {
		return err
	}
	kinds, err := r.kinds(ctx)
	if err != nil {
		return err
	}
	for i := range losses {
		if losses[i].Checkpoints {
			if err := r.retract(ctx, kinds); err != nil {
				return err
			}
		}
		if err := r.report(ctx, &losses[i], kinds); err != nil {
			return err
		}
		r.counts.losses.Add(1)
	}
	return nil
}

// kinds returns what is stored and what is followed.
func (r *Recorder) kinds(ctx context.Context) ([]change.Kind, error) {
	stored, err := r.store.KindsUncounted(ctx)
	if err != nil {
		return nil, err
	}
	kinds := make([]change.Kind, 0, len(stored))
	seen := map[string]bool{}
	for i := range stored {
		kinds = append(kinds, stored[i].Kind)
		seen[stored[i].GroupResource().String()] = true
	}
	for _, j := range r.all() {
		j.mutex.Lock()
		kind := j.kind
		j.mutex.Unlock()
		if kind.Resource != "" && !seen[kind.GroupResource().String()] {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// retract takes the checkpoints of kinds away and has every journal opened again.
func (r *Recorder) retract(ctx context.Context, kinds []change.Kind) error {
	r.gate.Lock()
	defer r.gate.Unlock()
	for _, kind := range kinds {
		if err := r.store.ClearCheckpoint(ctx, kind.GroupResource()); err != nil {
			return err
		}
	}
	// Only now: a journal that is opened before would begin where nothing is known any more.
	r.epoch.Add(1)
	for _, j := range r.all() {
		j.stale.Store(true)
	}
	return nil
}

// report records a gap of each kind. The loss is reported when the last one is stored.
func (r *Recorder) report(ctx context.Context, loss *store.Loss, kinds []change.Kind) error {
	now := r.clock.Now()
	since := loss.Since
	if since.IsZero() {
		since = loss.Time
	}
	reason := fmt.Sprintf("the store has lost the file %s (%s)", loss.File, loss.Cause)
	if loss.Records > 0 {
		reason += fmt.Sprintf(" with %s of all kinds", text.Count(loss.Records, "change"))
	}
	for _, kind := range kinds {
		err := r.store.Commit(ctx, store.Batch{Kind: kind, Records: []change.Record{{
			Kind: kind, Type: change.Gap, Time: now, Since: since, Reason: reason, Actor: change.Actor{Confidence: change.Unknown},
		}}})
		if err != nil {
			return err
		}
		r.counts.gaps.Add(1)
	}
	return r.store.Commit(ctx, store.Batch{Reported: []int64{loss.ID}})
}
