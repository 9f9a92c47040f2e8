package store

import (
	"bytes"
	"context"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// KindState is what is known of a kind.
type KindState struct {
	change.Kind
	// Checkpoint is the resource version up to which everything is stored, empty if the kind has to be listed.
	Checkpoint string
	// Objects is how many objects have a state.
	Objects int64
	// Committed is when the last checkpoint of the kind was reached, zero when there never was one.
	Committed time.Time
}

// Kinds returns the kinds of which something is known, by their groups and resources.
func (s *Store) Kinds(ctx context.Context) ([]KindState, error) {
	return s.kinds(ctx, `(SELECT count(*) FROM states WHERE kind = kinds.id)`)
}

// KindsUncounted is Kinds without how many objects there are, for which all states would have to be looked at.
func (s *Store) KindsUncounted(ctx context.Context) ([]KindState, error) { return s.kinds(ctx, `0`) }

func (s *Store) kinds(ctx context.Context, count string) ([]KindState, error) {
	var kinds []KindState
	err := s.readState(ctx, "reading the kinds", `SELECT grp, resource, version, kind, namespaced, definition, checkpoint, time, `+
		count+` FROM kinds ORDER BY grp, resource`, nil, func(row scanner) error {
		var k KindState
		var namespaced, committed int64
		err := row.Scan(&k.Group, &k.Resource, &k.Version, &k.Kind.Kind, &namespaced, &k.Definition, &k.Checkpoint, &committed, &k.Objects)
		k.Namespaced, k.Committed = namespaced != 0, readTime(committed)
		kinds = append(kinds, k)
		return err
	})
	return kinds, err
}

// Checkpoint returns the resource version up to which everything of a kind is stored, empty if the kind has to be listed.
func (s *Store) Checkpoint(ctx context.Context, kind schema.GroupResource) (checkpoint string, err error) {
	err = s.readState(ctx, "reading a checkpoint", `SELECT checkpoint FROM kinds WHERE grp = ? AND resource = ?`,
		[]any{kind.Group, kind.Resource}, func(row scanner) error { return row.Scan(&checkpoint) })
	return checkpoint, err
}

// ClearCheckpoint makes a kind be listed the next time, and leaves its states to compare with.
func (s *Store) ClearCheckpoint(ctx context.Context, kind schema.GroupResource) error {
	return s.update(ctx, func(se *session) error {
		return se.state.exec(se.ctx, `UPDATE kinds SET checkpoint = '' WHERE grp = ? AND resource = ?`, kind.Group, kind.Resource)
	})
}

// Forget removes the checkpoint and the states of a kind that is not watched any more. Its history stays.
func (s *Store) Forget(ctx context.Context, kind schema.GroupResource) error {
	if err := s.ClearCheckpoint(ctx, kind); err != nil {
		return err
	}
	// Many states in one transaction would make its log as large as they are.
	const atOnce = 1000
	for {
		var gone int64
		err := s.update(ctx, func(se *session) error {
			const these = ` WHERE id IN (SELECT id FROM states WHERE kind = (SELECT id FROM kinds WHERE grp = ? AND resource = ?) LIMIT ?)`
			var err error
			se.held = nil // many go
			if gone, err = se.state.affect(se.ctx, `DELETE FROM states`+these, kind.Group, kind.Resource, atOnce); err != nil || gone == atOnce {
				return err
			}
			delete(se.kinds, kind)
			return se.state.exec(se.ctx, `DELETE FROM kinds WHERE grp = ? AND resource = ?`, kind.Group, kind.Resource)
		})
		if err != nil || gone < atOnce {
			return err
		}
	}
}

const (
	marksAtOnce  = 2000
	statesAtOnce = 100
	ofKind       = ` FROM states WHERE kind = (SELECT id FROM kinds WHERE grp = ? AND resource = ?) AND `
	afterUID     = ofKind + `uid > ? ORDER BY uid LIMIT ?`
	stateColumns = `uid, rv, hash, namespace, name, generation, metadata, redacted, reason, managers, body`
)

// Marks returns the marks of all objects of a kind. It reads some at a time, so commits meanwhile may or may not be seen.
func (s *Store) Marks(ctx context.Context, kind schema.GroupResource) iter.Seq2[change.Mark, error] {
	return pages(ctx, s, kind, `SELECT uid, rv, hash`+afterUID, marksAtOnce, func(row scanner) (mark change.Mark, uid any, damage, err error) {
		var rv any
		var hash []byte
		if err := row.Scan(&uid, &rv, &hash); err != nil {
			return mark, nil, nil, err
		}
		mark.UID, mark.ResourceVersion, mark.Hash, err = readMark(uid, rv, hash)
		return mark, uid, nil, err
	})
}

func readMark(uid, rv any, hash []byte) (types.UID, string, change.Hash, error) {
	var sum change.Hash
	id, err := readUID(uid)
	version, err2 := readVersion(rv)
	if err != nil || err2 != nil || len(hash) != len(sum) {
		return "", "", sum, errBadRow
	}
	copy(sum[:], hash)
	return id, version, sum, nil
}

// StatesOf returns the last states of all objects of a kind. It holds few of them in memory at a time, so commits meanwhile may
// or may not be seen. A state whose content is damaged comes without it, together with an error that is Corrupt; the next ones
// follow.
func (s *Store) StatesOf(ctx context.Context, kind schema.GroupResource) iter.Seq2[change.State, error] {
	return pages(ctx, s, kind, `SELECT `+stateColumns+afterUID, statesAtOnce, s.scanState)
}

// State returns the last state of an object. The error is NotFound if there is none, and Corrupt if its content is damaged: the
// rest of it is returned then.
func (s *Store) State(ctx context.Context, kind schema.GroupResource, uid types.UID) (change.State, error) {
	return s.oneState(ctx, kind, `SELECT `+stateColumns+ofKind+`uid = ?`, storedUID(uid))
}

// StateNamed is State of the object that has a name.
func (s *Store) StateNamed(ctx context.Context, kind schema.GroupResource, namespace, name string) (change.State, error) {
	return s.oneState(ctx, kind, `SELECT `+stateColumns+ofKind+`name = ? AND namespace = ? ORDER BY id DESC LIMIT 1`, name, namespace)
}

func (s *Store) oneState(ctx context.Context, kind schema.GroupResource, query string, args ...any) (state change.State, err error) {
	found := false
	var damage error
	err = s.readState(ctx, "reading the state of an object", query, append([]any{kind.Group, kind.Resource}, args...), func(row scanner) error {
		found = true
		var err error
		state, _, damage, err = s.scanState(row)
		return err
	})
	if err == nil && !found {
		err = &Error{Trouble: NotFound, What: "the state of an object of " + kind.String()}
	}
	if err == nil {
		err = damage
	}
	return state, err
}

// scanState reads a row. The damage is that of the content, and err of everything else.
func (s *Store) scanState(row scanner) (state change.State, uid any, damage, err error) {
	var rv any
	var hash, managers, body []byte
	var reading int64
	err = row.Scan(&uid, &rv, &hash, &state.Namespace, &state.Name, &state.Generation, &reading, &state.Redacted, &state.Reason, &managers, &body)
	if err != nil {
		return state, nil, nil, err
	}
	if state.UID, state.ResourceVersion, state.Hash, err = readMark(uid, rv, hash); err != nil {
		return state, nil, nil, err
	}
	state.MetadataOnly, state.Definition = reading&1 != 0, reading>>1
	state.Body, damage = s.unpack(body)
	state.Created = change.CreatedIn(state.Body)
	if damage == nil {
		managers, damage = s.unpack(managers)
		splitTimes(&state, managers)
	}
	if damage != nil {
		state.Body, state.Managers, state.Times = nil, nil, nil
		damage = &Error{Trouble: Corrupt, File: stateFile, What: "reading the state of " + state.Name, Err: damage}
	}
	return state, uid, damage, nil
}

// readingOf says how a state was read, for the column metadata: whether it has the metadata only, and by which definition.
func readingOf(state *change.State) int64 {
	return state.Definition<<1 | boolNumber(state.MetadataOnly)
}

// The times of a state stand behind its managers, which are JSON and have no byte 0.
const behindManagers = 0

func joinTimes(state *change.State) []byte {
	if len(state.Times) == 0 {
		return state.Managers
	}
	joined := append(make([]byte, 0, len(state.Managers)+1+len(state.Times)), state.Managers...)
	return append(append(joined, behindManagers), state.Times...)
}

func splitTimes(state *change.State, joined []byte) {
	managers, times, found := bytes.Cut(joined, []byte{behindManagers})
	if found {
		state.Times = times
	}
	if len(managers) > 0 {
		state.Managers = managers
	}
}

// unpack is the opposite of pack.
func (s *Store) unpack(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, nil
	}
	return decompress(s.decoder, data)
}

// pages reads the rows of a kind in the order of their UIDs, some at a time: who takes long with one holds no transaction open.
func pages[T any](ctx context.Context, s *Store, kind schema.GroupResource, query string, limit int,
	scan func(scanner) (item T, uid any, damage, err error),
) iter.Seq2[T, error] {
	type entry struct {
		item   T
		damage error
	}
	return func(yield func(T, error) bool) {
		// A UID is a text or bytes, which are both greater than any number.
		after := any(int64(0))
		for {
			page := make([]entry, 0, limit)
			err := s.readState(ctx, "reading the states of a kind", query, []any{kind.Group, kind.Resource, after, limit}, func(row scanner) error {
				item, uid, damage, err := scan(row)
				if err != nil {
					return err
				}
				after = uid
				page = append(page, entry{item, damage})
				return nil
			})
			for _, e := range page {
				if !yield(e.item, e.damage) {
					return
				}
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if len(page) < limit {
				return
			}
		}
	}
}
