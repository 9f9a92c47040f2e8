package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

const (
	// thinAtLeast is how many bytes are taken out of a file at once, if so many are too many, and thinAtMost the most: nobody waits
	// for long for the one goroutine that writes. It is at most one part in thinPart of what the namespace has, so that none falls
	// much below its equal share.
	thinAtLeast = mebibyte
	thinAtMost  = 4 * mebibyte
	thinPart    = 4
	thinRows    = 5000
)

// thinning is what is taken out of a file of one namespace.
type thinning struct {
	number                         int64   // of the namespace
	end                            int64   // the last change of the file
	last                           int64   // the change up to which they go
	until                          int64   // the time of the newest one
	portion                                // what goes
	left                           portion // what the namespace has in the file then
	changes                        int64
	kinds, actors, minutes, ofOnes map[int64]int64
}

// thinOrPack takes out the oldest changes, and packs a file when enough is loose, or nothing is left to take. It reports whether there
// was anything to do.
func (se *session) thinOrPack(excess int64) (bool, error) {
	if packed, err := se.pack(false); packed || err != nil {
		return packed, err
	}
	if thinner, err := se.thin(excess); thinner || err != nil {
		return thinner, err
	}
	return se.pack(true)
}

// thin takes the oldest changes of the namespace that has the most out of the oldest file that has any of it, about as many bytes
// as are too many. It reports whether there was anything to take. What other namespaces have stays, and so does the last change of
// the file that is written, and every gap.
//
// That changes were removed is noted before, so that a crash on the way leaves no history that is silently shorter.
func (se *session) thin(excess int64) (bool, error) {
	files := se.store.days()
	usages := make([]*usage, len(files))
	for i, file := range files {
		u, err := se.usageOf(file)
		if err != nil {
			return false, se.store.explain(err, file.name.String(), "measuring what namespaces have")
		}
		usages[i] = u
	}
	namespace, most := greediest(usages)
	if most == 0 {
		return false, nil
	}
	at := slices.IndexFunc(usages, func(u *usage) bool { return u.shares[namespace].bytes > 0 })
	file := files[at]
	err := se.inFile(file, func(db *database) error {
		t, err := se.choosePart(db, file, namespace, min(max(excess, thinAtLeast), thinAtMost, max(most/thinPart, 1)))
		if err != nil {
			return err
		}
		if t.changes > 0 {
			if err := se.noteRemoved(namespace, t.until); err != nil {
				return err
			}
		}
		if err := se.remove(db, t, usages[at].shares[namespace]); err != nil {
			return err
		}
		if err := se.store.at("thinned"); err != nil {
			return err
		}
		se.took(file, t)
		return se.giveBack(db, file)
	})
	delete(se.usages, file.name)
	if err != nil {
		return false, se.store.explain(err, file.name.String(), "removing the oldest changes of a namespace")
	}
	return true, nil
}

// choosePart looks for the oldest changes of a namespace in a file.
func (se *session) choosePart(db *database, file dayInfo, namespace string, want int64) (*thinning, error) {
	t := &thinning{end: file.tail, kinds: map[int64]int64{}, actors: map[int64]int64{}, minutes: map[int64]int64{}, ofOnes: map[int64]int64{}}
	if namespace != "" {
		err := db.one(se.ctx, `SELECT id FROM names WHERE use = ? AND value = ?`, []any{useNamespace, namespace}, &t.number)
		if err != nil {
			return nil, err
		}
	}
	query := `SELECT id, time, kind, coalesce(actor, 0), object, coalesce(length(payload), 0),
		coalesce((SELECT length(body) FROM bodies WHERE bodies.id = changes.id), 0)
		FROM changes WHERE ` + t.where() + ` ORDER BY id LIMIT ?3`
	until := file.tail
	if file.name == se.file.name {
		until--
	}
	err := db.each(se.ctx, query, []any{until, t.number, thinRows}, func(row scanner) error {
		var id, nanoseconds, kind, actor, object, payload, body int64
		if err := row.Scan(&id, &nanoseconds, &kind, &actor, &object, &payload, &body); err != nil {
			return err
		}
		if t.bytes >= want {
			return nil
		}
		t.last, t.until = id, max(t.until, nanoseconds)
		t.changes++
		t.bytes += rowBytes + payload + body
		t.snapshots += body
		t.kinds[kind]++
		t.minutes[minuteOf(nanoseconds)]++
		t.ofOnes[object]++
		if actor != 0 {
			t.actors[actor]++
		}
		return nil
	})
	return t, err
}

// where selects the changes of the namespace ?2 up to the change ?1. A gap is of no object.
func (t *thinning) where() string {
	if t.number == 0 {
		return `id <= ?1 AND namespace IS NULL AND ?2 = 0 AND object IS NOT NULL`
	}
	return `id <= ?1 AND namespace = ?2 AND object IS NOT NULL`
}

// noteRemoved notes up to when changes of a namespace are removed.
func (se *session) noteRemoved(namespace string, until int64) error {
	const note = `INSERT INTO vals VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = ?2
		WHERE CAST(CAST(value AS TEXT) AS INTEGER) < CAST(CAST(?2 AS TEXT) AS INTEGER)`
	return se.state.exec(se.ctx, note, valueRemoved+namespace, []byte(strconv.FormatInt(until, 10)))
}

// remove takes changes out of a file, and out of everything that counts them. Of what a namespace has, nothing is left to take
// when no change was found.
func (se *session) remove(db *database, t *thinning, had portion) error {
	return db.transaction(se.ctx, func() error {
		before, err := freeBytes(se.ctx, db)
		if err != nil {
			return err
		}
		if t.changes > 0 {
			for _, statement := range []string{
				`DELETE FROM bodies WHERE id IN (SELECT id FROM changes WHERE ` + t.where() + `)`,
				`DELETE FROM changes WHERE ` + t.where(),
			} {
				if err := db.exec(se.ctx, statement, t.last, t.number); err != nil {
					return err
				}
			}
			objects, err := se.removeObjects(db, t)
			if err != nil {
				return err
			}
			t.bytes += objects * objectBytes
			t.left = portion{bytes: max(1, had.bytes-t.bytes), snapshots: max(0, had.snapshots-t.snapshots)}
		}
		free, err := freeBytes(se.ctx, db)
		if err != nil {
			return err
		}
		return se.noteLeft(db, t, t.bytes-(free-before))
	})
}

// noteLeft writes down what is left of a namespace in a file, how many changes were taken out, and how many bytes that made loose.
func (se *session) noteLeft(db *database, t *thinning, loose int64) error {
	number := strconv.FormatInt(t.number, 10)
	for _, one := range []struct {
		statement, key string
		value          int64
	}{
		{setMeta, metaBytes + number, t.left.bytes},
		{setMeta, metaSnapshots + number, t.left.snapshots},
		{addToMeta, metaLoose, loose},
		{addToMeta, metaRemoved, t.changes},
		{setMeta, metaEnd, t.end},
	} {
		if err := db.exec(se.ctx, one.statement, one.key, one.value); err != nil {
			return err
		}
	}
	return db.exec(se.ctx, `UPDATE meta SET value = max(value, 0) WHERE key = ?`, metaLoose)
}

const (
	addToMeta = `INSERT INTO meta VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = value + ?2`
	setMeta   = `INSERT INTO meta VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = ?2`
)

// removeObjects removes objects that have no change any more, and counts what else is fewer.
func (se *session) removeObjects(db *database, t *thinning) (gone int64, err error) {
	for object := range t.ofOnes {
		n, err := db.affect(se.ctx, `DELETE FROM objects WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM changes WHERE object = ?1)`, object)
		if err != nil {
			return gone, err
		}
		gone += n
	}
	names := t.actors
	if t.number != 0 {
		names[t.number] += t.changes
	}
	for _, counted := range []struct {
		statement string
		counts    map[int64]int64
	}{
		{`UPDATE kinds SET n = n - ?2 WHERE id = ?1`, t.kinds},
		{`UPDATE names SET n = n - ?2 WHERE id = ?1`, names},
		{`UPDATE minutes SET n = n - ?2 WHERE minute = ?1`, t.minutes},
	} {
		for id, n := range counted.counts {
			if err := db.exec(se.ctx, counted.statement, id, n); err != nil {
				return gone, err
			}
		}
	}
	return gone, db.exec(se.ctx, `DELETE FROM minutes WHERE n <= 0`)
}

// took corrects what is known in memory.
func (se *session) took(file dayInfo, t *thinning) {
	s := se.store
	if file.name == se.file.name {
		se.intern.forgetObjects()
		se.shares[t.number] = t.left
	}
	s.options.Logger.V(1).Info("The oldest changes of the namespace that has the most go", "file", file.name.String(), "changes", t.changes,
		"until", readTime(t.until).Format(time.RFC3339), "why", "MaxBytes is reached")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Dropped += t.changes
	s.stats.Thinned += t.changes
	for i := range s.files {
		if s.files[i].name == file.name {
			s.files[i].removed += t.changes
		}
	}
	if file.name == se.file.name {
		se.file.removed += t.changes
	}
}

// giveBack shortens a file by the pages that hold nothing any more. The file that is written takes the next changes into them.
func (se *session) giveBack(db *database, file dayInfo) error {
	if file.name == se.file.name {
		return se.measureFree()
	}
	var busy, logged, copied, pages, page int64
	err := db.each(se.ctx, `PRAGMA incremental_vacuum`, nil, func(scanner) error { return nil })
	for _, question := range []struct {
		text string
		into []any
	}{
		// Only what is copied from the log makes the file smaller. While somebody reads it, that is done later.
		{`PRAGMA wal_checkpoint(TRUNCATE)`, []any{&busy, &logged, &copied}},
		{`PRAGMA page_count`, []any{&pages}},
		{`PRAGMA page_size`, []any{&page}},
	} {
		if err == nil {
			err = db.one(se.ctx, question.text, nil, question.into...)
		}
	}
	if err != nil {
		return fmt.Errorf("giving back free pages: %w", err)
	}
	s := se.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.files {
		if s.files[i].name == file.name {
			s.files[i].bytes = pages * page
		}
	}
	return nil
}

// measureFree finds out how much of the file that is written holds nothing.
func (se *session) measureFree() (err error) {
	se.free, err = freeBytes(se.ctx, se.day)
	return err
}

// freeBytes is how many bytes are in pages of a file that hold nothing.
func freeBytes(ctx context.Context, db *database) (int64, error) {
	var free, page int64
	err := db.one(ctx, `PRAGMA freelist_count`, nil, &free)
	if err == nil {
		err = db.one(ctx, `PRAGMA page_size`, nil, &page)
	}
	return free * page, err
}
