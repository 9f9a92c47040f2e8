package recorder

import (
	"context"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// listing is a list that has begun.
type listing struct {
	// marks are of the objects that were stored when it began.
	marks map[shortKey]mark
	// begun is when it began.
	begun time.Time
	// since is when the gap began that the list closes, zero when there is none.
	since time.Time
	// gap is what is to be recorded when the list is answered.
	gap supervisor.Gap
}

// mark is what is held of a stored object during a list.
type mark struct {
	hash    change.Hash
	version uint64
	seen    bool
}

const unfinished = "a list of all objects was not finished, or the store has lost something: what is different is compared"

// BeginList implements supervisor.Journal.
func (j *journal) BeginList(ctx context.Context, gap supervisor.Gap) error {
	if j.stale.Load() {
		return errStale
	}
	if err := j.pipe.drain(ctx); err != nil {
		return err
	}
	marks := map[shortKey]mark{}
	for m, err := range j.recorder.store.Marks(ctx, j.key) {
		if err != nil {
			return err
		}
		marks[shorten(m.UID)] = mark{hash: m.Hash, version: hashOf(m.ResourceVersion)}
	}
	// A list that is not finished is begun again after a crash. Until it is, no checkpoint is true.
	if err := j.recorder.store.ClearCheckpoint(ctx, j.key); err != nil {
		return err
	}
	if gap.Reason == "" && len(marks) > 0 {
		gap = supervisor.Gap{Since: j.committed, Reason: unfinished}
	}
	if gap.Reason != "" && gap.Since.IsZero() {
		gap.Since = j.committed
	}
	j.listing = &listing{marks: marks, begun: j.recorder.clock.Now(), since: gap.Since, gap: gap}
	return nil
}

// answered records the gap that a list closes, before anything else of the list. It lasts until the list is answered: whatever
// happened before is not reported by itself. Requests that fail come before, so they are in it.
func (j *journal) answered(ctx context.Context) error {
	gap := j.listing.gap
	if gap.Reason == "" {
		return nil
	}
	j.listing.gap = supervisor.Gap{}
	return j.note(ctx, gap)
}

// note records a gap.
func (j *journal) note(ctx context.Context, gap supervisor.Gap) error {
	weight := int64(entryBytes)
	if err := j.pipe.reserve(ctx, weight); err != nil {
		return err
	}
	record := change.Record{
		Kind: j.kind, Type: change.Gap, Time: j.recorder.clock.Now(), Since: gap.Since, Reason: gap.Reason,
		Actor: change.Actor{Confidence: change.Unknown},
	}
	records := []change.Record{record}
	j.pipe.add(j.kind, entry{weight: weight, records: records, update: &Update{Kind: j.kind, Records: records}})
	return nil
}

// Lost implements supervisor.Journal.
func (j *journal) Lost(ctx context.Context, gap supervisor.Gap) error { return j.note(ctx, gap) }

// Listed implements supervisor.Journal.
func (j *journal) Listed(ctx context.Context, object supervisor.Object) error {
	if err := j.answered(ctx); err != nil {
		return err
	}
	weight, err := j.reserve(ctx, len(object.Raw))
	if err != nil {
		return err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	e, err := j.listed(ctx, &object)
	if err != nil || e.empty() {
		j.pipe.release(weight)
		return err
	}
	e.weight = weight
	j.pipe.add(j.kind, e)
	return nil
}

// listed says what follows from an object of a list.
func (j *journal) listed(ctx context.Context, object *supervisor.Object) (entry, error) {
	after := j.reduce(object)
	l := j.listing
	key := shorten(after.UID)
	m, known := l.marks[key]
	if known {
		m.seen = true
		l.marks[key] = m
		if m.hash == after.Hash && m.version == hashOf(after.ResourceVersion) {
			return entry{}, nil
		}
	}
	var before *change.State
	var err error
	switch {
	case known:
		before, err = j.before(ctx, after.UID)
	case len(l.marks) > 0:
		before, err = j.beforeNamed(ctx, object)
	}
	if err != nil {
		return entry{}, err
	}
	if before != nil && before.UID != after.UID {
		gone := l.marks[shorten(before.UID)]
		gone.seen = true
		l.marks[shorten(before.UID)] = gone
	}
	e, err := j.compare(ctx, before, &after, j.context(), object.Raw)
	return e, err
}

// context is what is known of a change that a list shows.
func (j *journal) context() change.Context {
	return change.Context{
		Kind: j.kind, Schema: j.schema, Time: j.recorder.clock.Now(), First: !j.known, InGap: len(j.listing.marks) > 0,
	}
}

// EndList implements supervisor.Journal.
func (j *journal) EndList(ctx context.Context, resourceVersion string, complete bool) error {
	if err := j.answered(ctx); err != nil {
		return err
	}
	if complete && len(j.listing.marks) > 0 {
		if err := j.bringMissing(ctx); err != nil {
			return err
		}
	}
	weight, err := j.reserve(ctx, 0)
	if err != nil {
		return err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	e := entry{weight: weight, checkpoint: resourceVersion, reached: j.listing.begun}
	if !j.known {
		e.values = []store.Value{{Key: baselineName + j.key.String(), Data: []byte{}}}
	}
	j.pipe.add(j.kind, e)
	j.known, j.listing = true, nil
	return nil
}

// bringMissing records that objects are gone which were stored and not listed.
func (j *journal) bringMissing(ctx context.Context) error {
	for m, err := range j.recorder.store.Marks(ctx, j.key) {
		if err != nil {
			return err
		}
		key := shorten(m.UID)
		if known, found := j.listing.marks[key]; !found || known.seen {
			continue
		}
		weight, err := j.reserve(ctx, rememberedBytes)
		if err != nil {
			return err
		}
		err = func() error {
			j.mutex.Lock()
			defer j.mutex.Unlock()
			before, err := j.before(ctx, m.UID)
			if err != nil {
				return err
			}
			if before == nil { // nothing is known of it any more
				j.pipe.release(weight)
				return nil
			}
			e, err := j.compare(ctx, before, nil, j.context(), nil)
			if err != nil {
				return err
			}
			e.weight = weight
			j.pipe.add(j.kind, e)
			j.listing.marks[key] = mark{seen: true}
			return nil
		}()
		if err != nil {
			j.pipe.release(weight)
			return err
		}
	}
	return nil
}

// spread says since when a change may have happened that a list shows.
func (j *journal) spread(records []change.Record) []change.Record {
	if j.listing == nil || j.listing.since.IsZero() {
		return records
	}
	records = slices.Clone(records)
	for i := range records {
		if records[i].InGap {
			records[i].Since = j.listing.since
		}
	}
	return records
}
