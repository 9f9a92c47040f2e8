package recorder

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// journal implements supervisor.Journal for one kind. It lives as long as the kind.
type journal struct {
	recorder *Recorder
	key      schema.GroupResource
	pipe     pipe

	// mutex is held while something is compared and added, so that what time changes does not come in between.
	mutex  sync.Mutex
	kind   change.Kind
	schema *change.Schema
	// definition is that by which objects are read now.
	definition int64
	// noStatus reports whether its definition gives the objects no status.
	noStatus atomic.Bool
	// resume is the checkpoint with which the journal was opened.
	resume string
	// stale reports whether the store has lost the checkpoint: the journal has to be opened again.
	stale atomic.Bool
	// known reports whether all objects were listed once. committed is up to when everything was stored by who had
	// the kind before: an earlier life, or a journal that was closed. opened reports whether the kind was opened in this life.
	known     bool
	opened    bool
	committed time.Time
	listing   *listing
	// health is how the objects do.
	health healthBook
	// folded are changes without a meaning since the last record of an object, and foldedSum all there ever were.
	folded    map[shortKey]int64
	foldedSum int64
	// unstored are definitions that wait for the store, by their names.
	unstored map[string]bool
}

// errStale makes the supervisor open the journal again.
var errStale = errors.New("the store has lost how far it was")

// factor is how many bytes wait for a byte of an object: its state, its managers and the record.
const (
	factor       = 3
	entryBytes   = 1024
	baselineName = "kind/baseline/"
	foldedName   = "kind/folded/"
)

// Resume implements supervisor.Journal.
func (j *journal) Resume() string { return j.resume }

// reserve waits until the journal can take an object.
func (j *journal) reserve(ctx context.Context, raw int) (weight int64, err error) {
	if j.stale.Load() {
		return 0, errStale
	}
	weight = entryBytes + factor*int64(raw)
	return weight, j.pipe.reserve(ctx, weight)
}

// Event implements supervisor.Journal.
func (j *journal) Event(ctx context.Context, event supervisor.Event) error {
	if planted(&event) {
		return nil
	}
	weight, err := j.reserve(ctx, len(event.Object.Raw))
	if err != nil {
		return err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	e, err := j.event(ctx, &event)
	if err != nil {
		j.pipe.release(weight)
		return err
	}
	e.weight, e.checkpoint, e.reached = weight, event.Object.ResourceVersion, j.reached(event.Reached)
	j.pipe.add(j.kind, e)
	return nil
}

// event says what follows from an event.
func (j *journal) event(ctx context.Context, event *supervisor.Event) (entry, error) {
	after := j.reduce(&event.Object)
	before, err := j.before(ctx, after.UID)
	if err != nil {
		return entry{}, err
	}
	c := change.Context{
		Kind: j.kind, Schema: j.schema, Time: j.recorder.clock.Now(), Gone: event.Type == supervisor.Deleted,
		// It was there before, and was not seen to come.
		First: event.Type == supervisor.Modified, InGap: event.Type == supervisor.Modified && before == nil,
	}
	switch {
	case before != nil && isOlder(after.ResourceVersion, before.ResourceVersion):
		return entry{}, nil // it is known what came later
	case before != nil && !c.Gone && before.ResourceVersion == after.ResourceVersion && before.Hash == after.Hash:
		return entry{}, nil
	case before == nil && !c.Gone:
		if before, err = j.beforeNamed(ctx, &event.Object); err != nil {
			return entry{}, err
		}
	}
	return j.compare(ctx, before, &after, c, event.Object.Raw)
}

// compare says what follows from two states, and remembers it.
func (j *journal) compare(ctx context.Context, before, after *change.State, c change.Context, raw []byte) (entry, error) {
	e := entry{}
	last := after
	if last == nil {
		last = before
	}
	uid := last.UID
	c.Folded = j.folded[shorten(uid)]
	if before != nil && after != nil && before.Noise == nil && len(after.Noise) > 0 {
		known := *before // the store does not keep what noise there was
		known.Noise = after.Noise
		before = &known
	}
	records, folded := change.Records(before, after, c)
	e.records = j.spread(settle(records, before, after))
	if len(e.records) < len(records) {
		folded = c.Folded + 1
	}
	if before != nil && (after == nil || before.UID != after.UID) {
		e.drop = append(e.drop, before.UID)
	}
	switch {
	case after == nil:
	case c.Gone:
		e.drop = append(e.drop, after.UID)
	default:
		e.put = after
	}
	j.fold(&e, uid, folded, c.Folded)
	if err := j.define(ctx, &e, after, c, raw); err != nil {
		return entry{}, err
	}
	j.observe(ctx, &e, before, after, c)
	for _, gone := range e.drop {
		j.forget(gone)
		delete(j.folded, shorten(gone))
	}
	if e.put != nil {
		j.remember(e.put)
	}
	return e, nil
}

// fold counts changes without a meaning.
func (j *journal) fold(e *entry, uid types.UID, now, before int64) {
	if now > before && len(e.records) == 0 {
		if j.folded == nil {
			j.folded = map[shortKey]int64{}
		}
		j.folded[shorten(uid)] = now
		j.foldedSum += now - before
		e.values = append(e.values, store.Value{Key: foldedName + j.key.String(), Data: encodeNumber(j.foldedSum)})
		j.recorder.counts.folded.Add(now - before)
		return
	}
	if len(e.records) > 0 {
		delete(j.folded, shorten(uid))
	}
}

// observe says how the object does now, and asks the observer.
func (j *journal) observe(ctx context.Context, e *entry, before, after *change.State, c change.Context) {
	seen := Change{Kind: j.kind, Records: e.records, Before: before, After: after, Time: c.Time}
	last := after
	if c.Gone || after == nil {
		seen.After = nil
		if last == nil {
			last = before
		}
	}
	if before != nil && after != nil && before.UID != after.UID {
		j.health.drop(j, e, before.UID)
	}
	moved := false
	if seen.After != nil {
		seen.Object, seen.Health = j.judge(after, c.Time)
		seen.HealthBefore, moved = j.health.set(j, e, after, seen.Health, c.Time)
	} else {
		seen.HealthBefore = j.health.drop(j, e, last.UID)
	}
	if len(e.records) == 0 && !moved {
		return
	}
	j.ask(ctx, e, seen)
	e.update = &Update{
		Kind: j.kind, Namespace: last.Namespace, Name: last.Name, UID: last.UID, Records: e.records,
		Health: seen.Health, HealthBefore: seen.HealthBefore,
	}
}

// Bookmark implements supervisor.Journal.
func (j *journal) Bookmark(_ context.Context, resourceVersion string, reached time.Time) error {
	if j.stale.Load() {
		return errStale
	}
	j.pipe.bookmark(j.kind, resourceVersion, j.reached(reached))
	return nil
}

// reached is up to when everything is reported with a checkpoint. Where that is not known yet, it is what an earlier life knew: the
// next gap must not begin later than what is missing.
func (j *journal) reached(reported time.Time) time.Time {
	if reported.IsZero() {
		return j.committed
	}
	return reported
}

// SchemaChanged implements supervisor.Journal.
func (j *journal) SchemaChanged(_ context.Context, s supervisor.Schema) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.schema, j.definition = j.recorder.readSchema(j.kind, s), definitionOf(s)
	j.noStatus.Store(s.NoStatus)
	return nil
}
