package store

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// What a name in a file of changes is of.
const (
	useNamespace = 1
	useActor     = 2
)

const (
	// rememberedNames and rememberedObjects are how many numbers the writer holds in memory. When there are more it begins anew:
	// what is not held is asked for, which takes a few microseconds.
	rememberedNames   = 8192
	rememberedObjects = 16384
)

// intern gives what repeats in a file of changes a number, and counts it.
type intern struct {
	se       *session
	kinds    map[schema.GroupResource]int64
	variants map[change.Kind]int64
	names    map[usedName]int64
	objects  map[objectKey]*knownObject
	// kindCounts and nameCounts are by how many changes a number was used in the transaction that runs.
	kindCounts, nameCounts map[int64]int64
}

type usedName struct {
	use   int64
	value string
}

type objectKey struct {
	uid  types.UID
	kind int64
}

// knownObject is an object of the file. since is how many changes ago its whole content was stored.
type knownObject struct {
	id    int64
	since int
}

func newIntern(se *session) intern {
	return intern{
		se: se, kinds: map[schema.GroupResource]int64{}, variants: map[change.Kind]int64{}, names: map[usedName]int64{},
		objects: map[objectKey]*knownObject{}, kindCounts: map[int64]int64{}, nameCounts: map[int64]int64{},
	}
}

// number returns the number of a row, which it makes if there is none.
func (i *intern) number(find, insert string, args ...any) (int64, error) {
	var id int64
	err := i.se.day.one(i.se.ctx, find, args, &id)
	if noRow(err) {
		return i.se.day.insert(i.se.ctx, insert, args...)
	}
	return id, err
}

func (i *intern) kind(kind change.Kind) (int64, error) {
	key := kind.GroupResource()
	id, ok := i.kinds[key]
	if !ok {
		var err error
		id, err = i.number(`SELECT id FROM kinds WHERE grp = ? AND resource = ?`, `INSERT INTO kinds(grp, resource, n) VALUES(?, ?, 0)`, key.Group, key.Resource)
		if err != nil {
			return 0, err
		}
		i.kinds[key] = id
	}
	i.kindCounts[id]++
	return id, nil
}

func (i *intern) variant(kind change.Kind) (int64, error) {
	kind.Group, kind.Resource = "", ""
	if id, ok := i.variants[kind]; ok {
		return id, nil
	}
	id, err := i.number(`SELECT id FROM variants WHERE version = ? AND kind = ? AND namespaced = ? AND definition = ?`,
		`INSERT INTO variants(version, kind, namespaced, definition) VALUES(?, ?, ?, ?)`,
		kind.Version, kind.Kind, boolNumber(kind.Namespaced), string(kind.Definition))
	if err != nil {
		return 0, err
	}
	if len(i.variants) >= rememberedNames {
		clear(i.variants)
	}
	i.variants[kind] = id
	return id, nil
}

// name returns the number of a name, and nil for none.
func (i *intern) name(use int64, value string) (any, error) {
	if value == "" {
		return nil, nil
	}
	key := usedName{use, value}
	id, ok := i.names[key]
	if !ok {
		var err error
		id, err = i.number(`SELECT id FROM names WHERE use = ? AND value = ?`, `INSERT INTO names(use, value, n) VALUES(?, ?, 0)`, use, value)
		if err != nil {
			return nil, err
		}
		if len(i.names) >= rememberedNames {
			clear(i.names)
		}
		i.names[key] = id
	}
	i.nameCounts[id]++
	return id, nil
}

// object returns an object, and whether it is new in the file.
func (i *intern) object(r *change.Record, kind int64, namespace any) (object *knownObject, made bool, err error) {
	key := objectKey{r.UID, kind}
	if object := i.objects[key]; object != nil {
		return object, false, nil
	}
	if len(i.objects) >= rememberedObjects {
		clear(i.objects)
	}
	uid := storedUID(r.UID)
	// A new object has no content in this file, so its first change brings it.
	object = &knownObject{since: i.se.store.options.SnapshotEvery}
	err = i.se.day.one(i.se.ctx, `SELECT id FROM objects WHERE uid = ? AND kind = ?`, []any{uid, kind}, &object.id)
	switch {
	case noRow(err):
		made = true
		object.id, err = i.se.day.insert(i.se.ctx, `INSERT INTO objects(uid, kind, namespace, name) VALUES(?, ?, ?, ?)`, uid, kind, namespace, r.Name)
	case err == nil:
		object.since, err = i.since(object.id)
	}
	if err != nil {
		return nil, false, err
	}
	i.objects[key] = object
	return object, made, nil
}

// forgetObjects is called when changes were taken out of the file: an object may be gone, or its whole content.
func (i *intern) forgetObjects() { clear(i.objects) }

// since counts the changes of an object after the last one that has its whole content.
func (i *intern) since(object int64) (int, error) {
	every := i.se.store.options.SnapshotEvery
	n, found := 0, false
	err := i.se.day.each(i.se.ctx, `SELECT flags FROM changes WHERE object = ? ORDER BY id DESC LIMIT ?`, []any{object, every}, func(row scanner) error {
		var flags int64
		if err := row.Scan(&flags); err != nil {
			return err
		}
		found = found || flags&flagSnapshot != 0
		if !found {
			n++
		}
		return nil
	})
	if !found {
		n = every
	}
	return n, err
}

// count writes how often the numbers were used.
func (i *intern) count() error {
	for id, n := range i.kindCounts {
		if err := i.se.day.exec(i.se.ctx, `UPDATE kinds SET n = n + ? WHERE id = ?`, n, id); err != nil {
			return err
		}
	}
	for id, n := range i.nameCounts {
		if err := i.se.day.exec(i.se.ctx, `UPDATE names SET n = n + ? WHERE id = ?`, n, id); err != nil {
			return err
		}
	}
	clear(i.kindCounts)
	clear(i.nameCounts)
	return nil
}
