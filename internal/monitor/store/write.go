package store

import (
	"database/sql"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// write stores a group. First the changes, in the file of the day, then everything else, in the state, together with the number
// of the last change. A transaction is atomic in one file only: what happens between the two is that changes are on the disk
// which the state does not know. They are not acknowledged, no query sees them, and the next session removes them.
func (se *session) write(group []*request) error {
	s := se.store
	day, err := se.writeDay(group)
	if err != nil {
		return s.explain(err, se.day.name, "writing changes")
	}
	if err := s.at("between"); err != nil {
		return s.explain(err, stateFile, "writing the last states")
	}
	if err := se.writeState(group, day.file); err != nil {
		return s.explain(err, stateFile, "writing the last states")
	}
	se.file = day.file
	for number, one := range day.shares {
		se.shares[number] = se.shares[number].plus(one)
	}
	se.publish()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Commits++
	s.stats.Written += day.written
	s.stats.Duplicates += day.duplicates
	s.stats.SnapshotBytes += day.snapshotBytes
	s.stats.PayloadBytes += day.payloadBytes
	s.stats.Refused += se.refused
	se.refused = 0
	return nil
}

// publish tells readers how far the file goes, and how large everything is.
func (se *session) publish() {
	s := se.store
	se.file.bytes = size(s.path(se.file.name.String()))
	stateBytes := size(s.path(stateFile))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[len(s.files)-1] = se.file
	s.stats.StateBytes = stateBytes
}

// dayWrite is a transaction in the file of changes.
type dayWrite struct {
	se                                               *session
	file                                             dayInfo
	minutes                                          map[int64]*minuteCount
	shares                                           map[int64]portion
	written, duplicates, snapshotBytes, payloadBytes int64
}

type minuteCount struct{ n, lo, hi int64 }

func (se *session) writeDay(group []*request) (*dayWrite, error) {
	w := &dayWrite{se: se, file: se.file, minutes: map[int64]*minuteCount{}, shares: map[int64]portion{}}
	changes := 0
	for _, r := range group {
		changes += r.size()
	}
	if changes == 0 {
		return w, nil
	}
	err := se.day.transaction(se.ctx, func() error {
		for _, r := range group {
			if r.batch == nil {
				continue
			}
			for i := range r.batch.records {
				if err := w.record(&r.batch.records[i]); err != nil {
					return err
				}
			}
		}
		return w.finish()
	})
	return w, err
}

// insertChange leaves out what is there already.
const insertChange = `INSERT INTO changes(id, time, kind, variant, namespace, object, actor, type, flags, rv, payload)
	VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

func (w *dayWrite) record(p *preparedRecord) error {
	se, r := w.se, p.record
	kind, err := se.intern.kind(r.Kind)
	if err != nil {
		return err
	}
	variant, err := se.intern.variant(r.Kind)
	if err != nil {
		return err
	}
	namespace, err := se.intern.name(useNamespace, r.Namespace)
	if err != nil {
		return err
	}
	actor, err := se.intern.name(useActor, r.Actor.Name)
	if err != nil {
		return err
	}
	flags, known, object := flagsOf(r), (*knownObject)(nil), any(nil)
	if r.UID != "" {
		var made bool
		if known, made, err = se.intern.object(r, kind, namespace); err != nil {
			return err
		}
		if made {
			w.took(namespace, portion{bytes: objectBytes})
		}
		object = known.id
		if w.wantsSnapshot(p, known, namespace) {
			flags |= flagSnapshot
		}
	}
	payload, err := w.payload(p)
	if err != nil {
		return err
	}
	id, nanoseconds := w.file.tail+1, storedTime(r.Time)
	inserted, err := se.day.affect(se.ctx, insertChange, id, nanoseconds, kind, variant, namespace, object, actor, typeNumbers[r.Type], flags,
		storedVersion(r.ResourceVersion), payload)
	if err != nil {
		return err
	}
	if inserted == 0 {
		w.duplicates++
		se.intern.uncount(kind, namespace, actor)
		return nil
	}
	w.account(id, nanoseconds, len(payload))
	w.took(namespace, portion{bytes: rowBytes + int64(len(payload))})
	return w.snapshot(p, known, namespace, id, flags)
}

// uncount takes back the count of a change that was there already.
func (i *intern) uncount(kind int64, names ...any) {
	i.kindCounts[kind]--
	for _, name := range names {
		if id, ok := name.(int64); ok {
			i.nameCounts[id]--
		}
	}
}

// wantsSnapshot reports whether the whole content belongs beside a change: it is time for it, or the fields do not tell all. Those
// of an object that is there again do not: a restored etcd brings back its UID.
func (w *dayWrite) wantsSnapshot(p *preparedRecord, known *knownObject, namespace any) bool {
	if p.body == nil || p.record.Type == change.Deleted || !w.hasRoom(namespace, int64(len(p.body))) {
		return false
	}
	incomplete := p.record.Truncated || p.record.MetadataOnly || p.record.Type == change.Created || p.record.Type == change.Baseline
	return incomplete || known.since >= w.se.store.options.SnapshotEvery-1
}

// hasRoom reports whether whole contents may take so many more bytes of what a namespace has in the file: a part of the file, or a part
// of what the namespace has there. What one has changes nothing for another.
func (w *dayWrite) hasRoom(namespace any, body int64) bool {
	options, number := w.se.store.options, numberOf(namespace)
	had, more := w.se.shares[number], w.shares[number]
	snapshots, bytes := had.snapshots+more.snapshots+body, had.bytes+more.bytes+body
	return snapshots <= max(options.snapshotBytes()/snapshotShares, bytes*int64(options.SnapshotShare)/100)
}

// numberOf is the number of a namespace that may be none.
func numberOf(namespace any) int64 {
	number, _ := namespace.(int64)
	return number
}

func (w *dayWrite) snapshot(p *preparedRecord, known *knownObject, namespace any, id, flags int64) error {
	if flags&flagSnapshot == 0 {
		if known != nil {
			known.since++
		}
		return nil
	}
	known.since = 0
	w.snapshotBytes += int64(len(p.body))
	w.took(namespace, portion{bytes: int64(len(p.body)), snapshots: int64(len(p.body))})
	return w.se.day.exec(w.se.ctx, `INSERT INTO bodies VALUES(?, ?)`, id, p.body)
}

// payload returns what is stored of a record beside the columns. A dictionary comes into the file before it is used there.
func (w *dayWrite) payload(p *preparedRecord) ([]byte, error) {
	se := w.se
	se.writer.samples.add(p.raw)
	id := p.dictionary.id
	if id == 0 || se.dictionaries[id] {
		return p.packed, nil
	}
	if len(se.dictionaries) >= maxDictionaries {
		return se.store.plain.compress(p.raw), nil
	}
	if err := se.day.exec(se.ctx, `INSERT INTO dictionaries(content) VALUES(?)`, p.dictionary.content); err != nil {
		return nil, err
	}
	se.dictionaries[id] = true
	return p.packed, nil
}

func (w *dayWrite) account(id, nanoseconds int64, bytes int) {
	if w.file.tail == 0 || nanoseconds < w.file.first {
		w.file.first = nanoseconds
	}
	if w.file.tail == 0 || nanoseconds > w.file.last {
		w.file.last = nanoseconds
	}
	w.file.tail = id
	w.written++
	w.payloadBytes += int64(bytes)
	count := w.minutes[minuteOf(nanoseconds)]
	if count == nil {
		count = &minuteCount{lo: id}
		w.minutes[minuteOf(nanoseconds)] = count
	}
	count.n++
	count.hi = id
}

// finish writes the counts of the transaction.
func (w *dayWrite) finish() error {
	se := w.se
	for minute, count := range w.minutes {
		err := se.day.exec(se.ctx, `INSERT INTO minutes VALUES(?, ?, ?, ?) ON CONFLICT(minute) DO UPDATE
			SET n = n + excluded.n, lo = min(lo, excluded.lo), hi = max(hi, excluded.hi)`, minute, count.n, count.lo, count.hi)
		if err != nil {
			return err
		}
	}
	if err := se.intern.count(); err != nil {
		return err
	}
	for number, one := range w.shares {
		if err := se.day.exec(se.ctx, addToMeta, metaBytes+strconv.FormatInt(number, 10), one.bytes); err != nil {
			return err
		}
		if one.snapshots == 0 {
			continue
		}
		if err := se.day.exec(se.ctx, addToMeta, metaSnapshots+strconv.FormatInt(number, 10), one.snapshots); err != nil {
			return err
		}
	}
	return se.measureFree()
}

// took counts what a namespace gets in the file.
func (w *dayWrite) took(namespace any, more portion) {
	number := numberOf(namespace)
	w.shares[number] = w.shares[number].plus(more)
}

// writeState stores everything of a group but the changes, and how far the file of changes goes with it.
func (se *session) writeState(group []*request, file dayInfo) error {
	return se.state.transaction(se.ctx, func() error {
		for _, r := range group {
			if r.batch != nil {
				if err := se.putBatch(r.batch); err != nil {
					return err
				}
			}
			if r.state != nil {
				if err := r.state(se); err != nil {
					return err
				}
			}
		}
		if file.tail == se.file.tail {
			return nil
		}
		return se.state.exec(se.ctx, `UPDATE files SET tail = ?, first = ?, last = ? WHERE name = ?`, file.tail, file.first, file.last, file.name.String())
	})
}

func (se *session) putBatch(p *prepared) error {
	if p.batch.Kind.Resource != "" {
		kind, err := se.putKind(p.batch)
		if err != nil {
			return err
		}
		for i := range p.states {
			if err := se.putState(kind, &p.states[i]); err != nil {
				return err
			}
		}
		for _, uid := range p.batch.Drop {
			if err := se.dropState(kind, uid); err != nil {
				return err
			}
		}
	}
	return se.putRest(p.batch)
}

func (se *session) putKind(b *Batch) (int64, error) {
	kind, checkpoint := b.Kind, b.Checkpoint
	key := kind.GroupResource()
	reached := storedTime(b.Reached)
	if reached == 0 {
		reached = storedTime(se.store.options.Clock.Now())
	}
	id, ok := se.kinds[key]
	if !ok {
		err := se.state.one(se.ctx, `SELECT id FROM kinds WHERE grp = ? AND resource = ?`, []any{key.Group, key.Resource}, &id)
		if noRow(err) {
			id, err = se.state.insert(se.ctx, `INSERT INTO kinds(grp, resource, version, kind, namespaced, definition, checkpoint, time)
				VALUES(?, ?, '', '', 0, '', '', 0)`, key.Group, key.Resource)
		}
		if err != nil {
			return 0, err
		}
		se.kinds[key] = id
	}
	err := se.state.exec(se.ctx, `UPDATE kinds SET version = ?, kind = ?, namespaced = ?, definition = ?,
		time = CASE ?6 WHEN '' THEN time ELSE ?5 END, checkpoint = CASE ?6 WHEN '' THEN checkpoint ELSE ?6 END WHERE id = ?7`,
		kind.Version, kind.Kind, boolNumber(kind.Namespaced), string(kind.Definition), reached, checkpoint, id)
	return id, err
}

func (se *session) putRest(b *Batch) error {
	now := storedTime(se.store.options.Clock.Now())
	for i := range b.Outbox {
		if err := se.putMessage(&b.Outbox[i], now); err != nil {
			return err
		}
	}
	for _, v := range b.Values {
		query, args := `DELETE FROM vals WHERE key = ?`, []any{v.Key}
		if v.Data != nil {
			query, args = `INSERT INTO vals VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = ?2`, []any{v.Key, v.Data}
		}
		if err := se.state.exec(se.ctx, query, args...); err != nil {
			return err
		}
	}
	for i := range b.Definitions {
		if err := se.putDefinition(&b.Definitions[i], now); err != nil {
			return err
		}
	}
	for _, id := range b.Reported {
		if err := se.state.exec(se.ctx, `DELETE FROM losses WHERE id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}

// putDefinition stores a version that differs from the one before, and forgets the oldest when there are too many.
func (se *session) putDefinition(d *Definition, now int64) error {
	packed := se.store.pack(d.Content)
	var last sql.RawBytes
	var uid string
	same := false
	err := se.state.each(se.ctx, `SELECT uid, content FROM definitions WHERE name = ? ORDER BY id DESC LIMIT 1`, []any{d.Name}, func(row scanner) error {
		err := row.Scan(&uid, &last)
		same = types.UID(uid) == d.UID && string(last) == string(packed)
		return err
	})
	if err != nil || same {
		return err
	}
	if !d.Time.IsZero() {
		now = storedTime(d.Time)
	}
	err = se.state.exec(se.ctx, `INSERT INTO definitions(name, uid, generation, time, content) VALUES(?, ?, ?, ?, ?)`, d.Name, string(d.UID), d.Generation, now, packed)
	if err != nil {
		return err
	}
	return se.state.exec(se.ctx, `DELETE FROM definitions WHERE name = ?1 AND id NOT IN
		(SELECT id FROM definitions WHERE name = ?1 ORDER BY id DESC LIMIT ?2)`, d.Name, se.store.options.DefinitionVersions)
}
