package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// Known implements supervisor.Sink.
func (r *Recorder) Known(ctx context.Context) ([]change.Kind, error) {
	if err := r.reportLosses(ctx); err != nil {
		return nil, err
	}
	stored, err := r.store.KindsUncounted(ctx)
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	kinds := make([]change.Kind, 0, len(stored))
	for i := range stored {
		r.stored[stored[i].GroupResource()] = stored[i]
		kinds = append(kinds, stored[i].Kind)
	}
	return kinds, nil
}

// Open implements supervisor.Sink.
func (r *Recorder) Open(ctx context.Context, kind change.Kind, s supervisor.Schema) (supervisor.Journal, error) {
	key := kind.GroupResource()
	if before, other := r.otherDefinition(kind); other {
		if err := r.Gone(ctx, before, s.Made); err != nil {
			return nil, err
		}
	}
	j := r.journal(key)
	if err := j.pipe.drain(ctx); err != nil {
		return nil, err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	// Before the checkpoint is read: a loss after that makes the journal stale again.
	j.stale.Store(false)
	resume, err := r.store.Checkpoint(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := j.load(ctx); err != nil {
		return nil, err
	}
	if j.opened {
		if err := j.readCommitted(ctx); err != nil {
			return nil, err
		}
	}
	j.opened = true
	j.kind, j.schema, j.definition, j.resume, j.listing = kind, r.readSchema(kind, s), definitionOf(s), resume, nil
	j.noStatus.Store(s.NoStatus)
	return j, nil
}

// otherDefinition returns the kind as it was stored, when it was one of another definition.
func (r *Recorder) otherDefinition(kind change.Kind) (change.Kind, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	before := r.stored[kind.GroupResource()].Kind
	if j := r.journals[kind.GroupResource()]; j != nil && j.kind.Resource != "" {
		before = j.kind
	}
	return before, before.Definition != "" && before.Definition != kind.Definition
}

// journal returns the journal of a kind.
func (r *Recorder) journal(key schema.GroupResource) *journal {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	j := r.journals[key]
	if j == nil {
		j = &journal{recorder: r, key: key, committed: r.stored[key].Committed}
		j.pipe.hurry = make(chan struct{}, 1)
		j.pipe.recorder = r
		r.journals[key] = j
	}
	return j
}

// load reads what is known of the kind, once.
func (j *journal) load(ctx context.Context) error {
	if j.health.loaded {
		return nil
	}
	for _, part := range []struct {
		name string
		read func([]byte)
	}{
		{baselineName, func([]byte) { j.known = true }},
		{foldedName, func(data []byte) { j.foldedSum = decodeNumber(data) }},
	} {
		values, err := j.recorder.store.Values(ctx, part.name+j.key.String())
		if err != nil {
			return err
		}
		for _, v := range values {
			if v.Key == part.name+j.key.String() {
				part.read(v.Data)
			}
		}
	}
	return j.health.load(ctx, j)
}

// readCommitted reads up to when everything is stored.
func (j *journal) readCommitted(ctx context.Context) error {
	kinds, err := j.recorder.store.KindsUncounted(ctx)
	for i := range kinds {
		if kinds[i].GroupResource() == j.key {
			j.committed = kinds[i].Committed
		}
	}
	return err
}

// Gone implements supervisor.Sink.
func (r *Recorder) Gone(ctx context.Context, kind change.Kind, successor time.Time) error {
	key := kind.GroupResource()
	j := r.journal(key)
	if err := j.pipe.drain(ctx); err != nil {
		return err
	}
	j.mutex.Lock()
	if err := j.load(ctx); err != nil {
		j.mutex.Unlock()
		return err
	}
	j.kind = kind
	unseen := !j.opened
	j.mutex.Unlock()
	if err := j.noteUnseen(ctx, unseen); err != nil {
		return err
	}
	kept := false
	for state, err := range r.store.StatesOf(ctx, key) {
		if err != nil && !store.Is(err, store.Corrupt) {
			return err
		}
		if madeSince(&state, successor) {
			kept = true // the next list tells whether it is still there
			continue
		}
		if err := j.bury(ctx, &state); err != nil {
			return err
		}
	}
	j.mutex.Lock()
	weight, err := j.reserve(ctx, 0)
	if err == nil || errors.Is(err, errStale) {
		j.pipe.add(kind, entry{weight: weight, values: []store.Value{{Key: baselineName + key.String()}, {Key: foldedName + key.String()}}})
	}
	j.mutex.Unlock()
	if err := j.pipe.drain(ctx); err != nil {
		return err
	}
	forget := r.store.Forget
	if kept {
		forget = r.store.ClearCheckpoint
	}
	if err := errors.Join(forget(ctx, key), j.readCommitted(ctx)); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.journals, key)
	delete(r.stored, key)
	if kept {
		r.stored[key] = store.KindState{Committed: j.committed} // of which definition the next Open says
	}
	return nil
}

// madeSince reports whether an object was made at that second or later. All objects of a definition are gone before another one of the
// same name can be made, so these are of the other one. Nothing is made since the zero time.
func madeSince(state *change.State, moment time.Time) bool {
	if moment.IsZero() {
		return false
	}
	object := metav1.PartialObjectMetadata{}
	return json.Unmarshal(state.Body, &object) == nil && !object.CreationTimestamp.Time.Before(moment.Truncate(time.Second))
}

const deletedUnseen = "the definition was deleted while the kind was not followed: objects may have come, changed and gone"

// noteUnseen records a gap when the kind was not followed to its end: not in this life, or not until its objects were deleted.
func (j *journal) noteUnseen(ctx context.Context, unseen bool) error {
	for _, err := range j.recorder.store.Marks(ctx, j.key) {
		if err != nil {
			return err
		}
		unseen = true
		break
	}
	if !unseen {
		return nil
	}
	if err := j.readCommitted(ctx); err != nil {
		return err
	}
	return j.note(ctx, supervisor.Gap{Since: j.committed, Reason: deletedUnseen})
}

// bury records that an object went with its definition.
func (j *journal) bury(ctx context.Context, state *change.State) error {
	weight := int64(entryBytes) + factor*int64(len(state.Body))
	if err := j.pipe.reserve(ctx, weight); err != nil {
		return err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	c := change.Context{Kind: j.kind, Schema: j.schema, Time: j.recorder.clock.Now(), WithDefinition: true}
	e, err := j.compare(ctx, state, nil, c, nil)
	if err != nil {
		j.pipe.release(weight)
		return err
	}
	e.weight = weight
	j.pipe.add(j.kind, e)
	return nil
}

// readSchema reads a schema as far as it says what is compared. Of one that cannot be read nothing is known.
func (r *Recorder) readSchema(kind change.Kind, s supervisor.Schema) *change.Schema {
	if len(s.JSON) == 0 {
		return nil
	}
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(s.JSON, props); err != nil {
		r.log.Warn("a schema cannot be read", "kind", kind.GroupResource().String(), "error", err.Error())
		return nil
	}
	return change.NewSchema(props)
}

func encodeNumber(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func decodeNumber(data []byte) int64 {
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
