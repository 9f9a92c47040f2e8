package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/maphash"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// objectKey finds the state of an object that is held in memory.
type objectKey struct {
	kind schema.GroupResource
	uid  types.UID
}

const (
	tooLarge = "it has more bytes than are read"
	damaged  = "what was stored of it is damaged"
)

// reduce makes the state of an object. It always makes one: of an object that cannot be read there is who it is.
func (j *journal) reduce(object *supervisor.Object) change.State {
	state, err := change.Reduce(object.Raw, j.kind, j.schema, j.recorder.options.Policy)
	switch {
	case err != nil:
		state = change.State{MetadataOnly: true, Reason: err.Error()}
	case object.Oversized:
		state.MetadataOnly, state.Reason = true, tooLarge
	}
	if err != nil || object.Oversized {
		// The rest of it is not known, so every version counts as a change.
		sum := sha256.Sum256([]byte(object.ResourceVersion))
		copy(state.Hash[:], sum[:])
	}
	state.Namespace, state.Name = object.Namespace, object.Name
	state.UID, state.ResourceVersion = object.UID, object.ResourceVersion
	state.Definition = j.definition
	return state
}

// definitionOf tells one schema of a kind from another, 0 if there is none.
func definitionOf(s supervisor.Schema) int64 {
	if len(s.JSON) == 0 {
		return 0
	}
	const unused = 64 - 46
	sum := sha256.Sum256(s.JSON)
	return int64(binary.BigEndian.Uint64(sum[:]) >> unused)
}

// before returns the last known state of an object, nil when there is none.
func (j *journal) before(ctx context.Context, uid types.UID) (*change.State, error) {
	if state, found := j.pipe.waiting(uid); found {
		return state, nil
	}
	if known, found := j.recorder.recent.Get(objectKey{j.key, uid}); found {
		return known.(*change.State), nil
	}
	return j.stored(ctx, func() (change.State, error) { return j.recorder.store.State(ctx, j.key, uid) })
}

// beforeNamed returns the last known state of an object by its name, when it is another object than the one with that UID.
func (j *journal) beforeNamed(ctx context.Context, object *supervisor.Object) (*change.State, error) {
	state, err := j.stored(ctx, func() (change.State, error) {
		return j.recorder.store.StateNamed(ctx, j.key, object.Namespace, object.Name)
	})
	if err != nil || state == nil || state.UID == object.UID {
		return nil, err
	}
	// While the store was asked, what waited may have landed: the object may be gone by now. Then there is nothing before.
	return j.before(ctx, state.UID)
}

// stored asks the store for a state until it says something.
func (j *journal) stored(ctx context.Context, ask func() (change.State, error)) (*change.State, error) {
	var state *change.State
	err := j.recorder.insist(ctx, func() error {
		found, err := ask()
		switch {
		case err == nil:
			state = &found
		case store.Is(err, store.NotFound):
			err = nil
		case store.Is(err, store.Corrupt) && found.UID != "":
			found.MetadataOnly, found.Reason = true, damaged
			state, err = &found, nil
		}
		return err
	})
	return state, err
}

// insist does something with the store until it works, or the context or the recorder ends.
func (r *Recorder) insist(ctx context.Context, do func() error) error {
	pause := firstPause
	for {
		err := do()
		if err == nil || ctx.Err() != nil || store.Is(err, store.Closed) {
			return errors.Join(err, ctx.Err())
		}
		r.trouble.set(err)
		timer := r.clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-r.work.Done():
			timer.Stop()
			return r.work.Err()
		}
		pause = min(2*pause, maxPause)
	}
}

// remember holds a state in memory, if it is small, and forget lets go of it.
func (j *journal) remember(state *change.State) {
	key := objectKey{j.key, state.UID}
	if len(state.Body)+len(state.Managers)+len(state.Noise)+len(state.Times) > rememberedBytes {
		j.recorder.recent.Remove(key)
		return
	}
	j.recorder.recent.Add(key, state)
}

func (j *journal) forget(uid types.UID) { j.recorder.recent.Remove(objectKey{j.key, uid}) }

// isOlder reports whether a version comes before another one, as far as they can be compared.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// shortKey is what the memory holds of a UID, and shortHash of a text.
type shortKey [16]byte

func shorten(uid types.UID) (key shortKey) {
	sum := sha256.Sum256([]byte(uid))
	copy(key[:], sum[:])
	return key
}

var hashSeed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(hashSeed, text) }
