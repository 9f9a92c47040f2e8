package alarm

import (
	"context"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// reviewedName is followed by the UID of a rule. The value is the generation for which all objects were looked at. It is not
// stored while an expression fails: for which objects it does is not stored either, and is found out after a start.
const reviewedName = "alarm/reviewed/"

const (
	// looksAtOnce objects are looked at, and then the others get a turn for looksPause: about 2,000 in a second.
	looksAtOnce = 50
	looksPause  = 25 * time.Millisecond
)

func (a *Alarms) loadReviewed(ctx context.Context) error {
	values, err := a.options.Store.Values(ctx, reviewedName)
	for _, v := range values {
		if generation, err := strconv.ParseInt(string(v.Data), 10, 64); err == nil {
			a.reviewed[types.UID(strings.TrimPrefix(v.Key, reviewedName))] = generation
		}
	}
	return err
}

// review shows the objects that are there to rules that are new, or look for something else than before.
func (a *Alarms) review(ctx context.Context, r Recorder) {
	for ctx.Err() == nil {
		wait := idle
		if rules := a.unreviewed(); len(rules) > 0 {
			if err := a.reviewAll(ctx, r, rules); err != nil && ctx.Err() == nil {
				a.options.Log.Error("not all objects were shown to rules that are new: it is tried again", "error", err.Error())
				wait = retry
			}
		}
		timer := a.options.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-a.fresh:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// unreviewed returns rules for which objects were not looked at. What is remembered of rules that are gone is forgotten.
func (a *Alarms) unreviewed() (rules []*rule.Rule) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, e := range a.rules {
		if e.rule != nil && !e.rule.Suspended && a.reviewed[e.uid] != e.generation {
			rules = append(rules, e.rule)
		}
	}
	return rules
}

func (a *Alarms) reviewAll(ctx context.Context, r Recorder, rules []*rule.Rule) error {
	if err := r.Stored(ctx); err != nil { // what was seen before the rules were told is found in the store then
		return err
	}
	kinds, err := a.options.Store.KindsUncounted(ctx)
	if err != nil {
		return err
	}
	set := rule.NewSet(rules)
	for i := range kinds {
		if len(set.For(kinds[i].Group, kinds[i].Kind.Kind)) == 0 {
			continue
		}
		if err := a.reviewKind(ctx, r, &kinds[i]); err != nil {
			return err
		}
	}
	return a.reviewedAll(ctx, rules)
}

// reviewKind looks at all objects of a kind. Those that come meanwhile are seen by the rule as they come.
func (a *Alarms) reviewKind(ctx context.Context, r Recorder, kind *store.KindState) error {
	key := kind.GroupResource()
	looked := 0
	for mark, err := range a.options.Store.Marks(ctx, key) {
		if err != nil {
			return err
		}
		if _, _, err := r.Look(ctx, key, mark.UID); err != nil {
			return err
		}
		if looked++; looked%looksAtOnce == 0 {
			if err := a.pause(ctx, looksPause); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Alarms) pause(ctx context.Context, d time.Duration) error {
	timer := a.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// reviewedAll remembers that all objects were looked at, and forgets rules that are gone.
func (a *Alarms) reviewedAll(ctx context.Context, rules []*rule.Rule) error {
	batch := store.Batch{}
	a.mutex.Lock()
	there := map[types.UID]bool{}
	for _, e := range a.rules {
		there[e.uid] = true
	}
	for _, r := range rules {
		a.reviewed[r.UID] = r.Generation
		if a.engine.Fails(r.UID) {
			continue
		}
		batch.Values = append(batch.Values, store.Value{Key: reviewedName + string(r.UID), Data: strconv.AppendInt(nil, r.Generation, 10)})
	}
	for uid := range a.reviewed {
		if a.known.Load() && !there[uid] {
			delete(a.reviewed, uid)
			batch.Values = append(batch.Values, store.Value{Key: reviewedName + string(uid)})
		}
	}
	a.mutex.Unlock()
	uids := make([]types.UID, 0, len(rules))
	for _, r := range rules {
		uids = append(uids, r.UID)
	}
	a.changes(uids)
	for len(batch.Values) > 0 {
		n := min(len(batch.Values), maxEffects)
		if err := a.options.Store.Commit(ctx, store.Batch{Values: batch.Values[:n]}); err != nil {
			return err
		}
		batch.Values = batch.Values[n:]
	}
	return nil
}
