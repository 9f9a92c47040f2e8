package store

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Share is how much of the history of a kind in a namespace may be seen. The zero value is nothing.
type Share struct {
	// All is everything, of whatever namespace that had the name.
	All bool
	// Of is what belongs to the namespace as it is now.
	Of *change.Tenure
}

// allowKey are the numbers of a kind and a namespace in a file. No namespace is 0.
type allowKey struct{ kind, namespace int64 }

// allowance knows which changes of a file may be seen. It asks once for each kind and namespace, and looks once at each object.
type allowance struct {
	run     *queryRun
	file    *reader
	shares  map[allowKey]Share
	objects map[int64]bool
}

// fits reports whether a change of an object may be seen. The object of a change without one is 0.
func (a *allowance) fits(ctx context.Context, key allowKey, object, id int64) (bool, error) {
	if a.run.q.Allow == nil {
		return true, nil
	}
	share, known := a.shares[key]
	if !known {
		kind, namespace, err := a.names(ctx, key)
		if err != nil {
			return false, err
		}
		share = a.run.q.Allow(kind, namespace)
		a.shares[key] = share
	}
	if share.All || share.Of == nil || object == 0 {
		return share.All, nil
	}
	belongs, known := a.objects[object]
	if known {
		return belongs, nil
	}
	belongs, err := a.belongs(ctx, share.Of, object, id)
	a.objects[object] = belongs
	return belongs, err
}

// names returns the kind and the namespace that have numbers in the file.
func (a *allowance) names(ctx context.Context, key allowKey) (kind schema.GroupResource, namespace string, err error) {
	err = a.file.db.QueryRowContext(ctx, `SELECT grp, resource, coalesce((SELECT value FROM names WHERE id = ?), '') FROM kinds WHERE id = ?`,
		key.namespace, key.kind).Scan(&kind.Group, &kind.Resource, &namespace)
	if noRow(err) {
		return kind, namespace, errDamaged
	}
	return kind, namespace, err
}

// belongs reports whether an object belongs to a namespace. When the object was made stands in each of its changes; of those that were
// stored by a version that did not write it down, the last state may say so. A change that is damaged says nothing, so it is not seen.
func (a *allowance) belongs(ctx context.Context, tenure *change.Tenure, object, id int64) (bool, error) {
	var payload []byte
	if err := a.file.db.QueryRowContext(ctx, `SELECT payload FROM changes WHERE id = ?`, id).Scan(&payload); err != nil {
		return false, rowError(err)
	}
	record := change.Record{}
	if raw, err := a.file.unpack(ctx, payload); err != nil || decodePayload(raw, &record) != nil {
		return false, ctx.Err()
	}
	origin := change.Origin{Created: record.ObjectCreated}
	if !origin.Created.IsZero() && origin.Created.Unix() != tenure.Created.Unix() {
		return tenure.Has(origin), nil
	}
	var latest int64
	err := a.file.db.QueryRowContext(ctx, `SELECT coalesce(max(rv), 0) FROM changes WHERE object = ? AND typeof(rv) = 'integer'`, object).Scan(&latest)
	if err != nil {
		return false, err
	}
	origin.Versions = []string{strconv.FormatInt(latest, 10)}
	last, err := a.lastState(ctx, object)
	if err != nil {
		return false, err
	}
	origin.Versions = append(origin.Versions, last.Versions...)
	if origin.Created.IsZero() {
		origin.Created = last.Created
	}
	return tenure.Has(origin), nil
}

// lastState says what the last state of an object knows of its origin. An object that has a state was there at the checkpoint of its
// kind, up to which everything is stored.
func (a *allowance) lastState(ctx context.Context, object int64) (change.Origin, error) {
	var uid any
	var group, resource string
	err := a.file.db.QueryRowContext(ctx, `SELECT o.uid, k.grp, k.resource FROM objects o JOIN kinds k ON k.id = o.kind WHERE o.id = ?`, object).
		Scan(&uid, &group, &resource)
	if err != nil {
		return change.Origin{}, rowError(err)
	}
	s := a.run.store
	// Not Store.read: this runs inside of one. Who reads the last states waits for nobody who reads changes.
	file, err := s.readers.use(ctx, stateFile)
	if err != nil {
		return change.Origin{}, ctx.Err() // what is not known does not belong; the next reader of the state says what is wrong
	}
	defer s.readers.release(file)
	var checkpoint string
	var version any
	var body []byte
	err = file.db.QueryRowContext(ctx, `SELECT k.checkpoint, s.rv, s.body FROM states s JOIN kinds k ON k.id = s.kind
		WHERE k.grp = ? AND k.resource = ? AND s.uid = ?`, group, resource, uid).Scan(&checkpoint, &version, &body)
	if err != nil {
		return change.Origin{}, ctx.Err()
	}
	last := change.Origin{Versions: []string{checkpoint}}
	if text, err := readVersion(version); err == nil {
		last.Versions = append(last.Versions, text)
	}
	if raw, err := s.unpack(body); err == nil {
		last.Created = change.CreatedIn(raw)
	}
	return last, nil
}
