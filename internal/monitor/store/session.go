package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// session is both files open for writing, and what the writer remembers of them. After any error it is thrown away: what is on
// the disk is the truth, and the next session reads it.
type session struct {
	store  *Store
	writer *writer
	ctx    context.Context
	state  *database
	day    *database
	// stateIdentity and dayIdentity report whether the files are still those that were opened.
	stateIdentity, dayIdentity identity
	// file is what is known of the file of changes.
	file dayInfo
	// kinds are numbers in the state.
	kinds  map[schema.GroupResource]int64
	intern intern
	// dictionaries are those that the file has.
	dictionaries map[uint32]bool
	// shares are what the namespaces have in the file, by their numbers there, and fair is as in usage.
	shares map[int64]portion
	fair   bool
	// usages are what they have in the other files, as far as it was read, and free is how much of the file holds nothing.
	usages map[dayName]*usage
	free   int64
	// held is how many bytes the contents of the last states of each namespace have, nil if they were not counted yet, and heldAll how
	// many all have.
	held    map[string]int64
	heldAll int64
	// waiting is how many messages wait for each output, nil if they were not counted yet, and refused how many were refused since the
	// last group.
	waiting map[string]int64
	refused int64
}

// ready sees to it that there is a session with files that are still there.
func (w *writer) ready() error {
	var err error
	for range 6 { // each round deals with one file at most, and there are few
		if err = w.look(); err == nil {
			return nil
		}
		if !w.recover(err) {
			return err
		}
	}
	return err
}

func (w *writer) look() error {
	if err := w.checkSuspects(); err != nil {
		return err
	}
	if w.session != nil {
		if !w.session.vanished() {
			return nil
		}
		w.rescue()
	}
	session, err := w.open()
	if err != nil {
		return err
	}
	w.session = session
	return nil
}

// endSession closes the files. What it was writing is not on the disk, or is undone when they are opened.
func (w *writer) endSession() {
	if w.session == nil {
		return
	}
	w.session.close()
	w.session = nil
}

func (se *session) close() {
	for _, db := range []*database{se.day, se.state} {
		if db != nil {
			_ = db.close()
		}
	}
}

// open opens both files and makes them agree: changes that were written and not acknowledged go, and what is missing is noted.
func (w *writer) open() (*session, error) {
	s := w.store
	se := &session{store: s, writer: w, ctx: s.background, kinds: map[schema.GroupResource]int64{}, usages: map[dayName]*usage{}}
	err := se.openState()
	if err == nil {
		err = se.reconcile()
	}
	if err == nil {
		err = se.openDay()
	}
	if err != nil {
		se.close()
		return nil, err
	}
	w.suspicious = false
	se.countRemoved()
	return se, nil
}

func (se *session) openState() error {
	s := se.store
	path := s.path(stateFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := se.writer.buildState(path); err != nil {
			return s.explain(err, stateFile, "making the file of the last states")
		}
	}
	db, err := se.store.openDatabase(path, "rw")
	if err != nil {
		return s.explain(err, stateFile, "opening the last states")
	}
	se.state = db
	empty, err := checkSchema(se.ctx, db, stateSchema)
	if err == nil && empty {
		err = fmt.Errorf("%w: it is empty", errDamaged)
	}
	if err == nil {
		err = se.quickCheck(db)
	}
	if err == nil && se.writer.suspicious {
		err = se.removeBadStates()
	}
	if err != nil {
		return s.explain(err, stateFile, "opening the last states")
	}
	se.stateIdentity = identify(path)
	return nil
}

// quickCheck reads a whole file, after something that should not happen has happened.
func (se *session) quickCheck(db *database) error {
	if !se.writer.suspicious {
		return nil
	}
	var verdict string
	if err := db.one(se.ctx, `PRAGMA quick_check(1)`, nil, &verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, verdict)
	}
	return nil
}

// removeBadStates removes rows that the check of the database takes, and nobody can read. Then every kind is listed again.
func (se *session) removeBadStates() error {
	return se.state.transaction(se.ctx, func() error {
		gone, err := se.state.affect(se.ctx, `DELETE FROM states WHERE length(hash) <> 16 OR typeof(rv) NOT IN ('integer', 'text')
			OR typeof(uid) NOT IN ('blob', 'text') OR (typeof(uid) = 'blob' AND length(uid) <> 16) OR kind NOT IN (SELECT id FROM kinds)`)
		if err != nil || gone == 0 {
			return err
		}
		loss := Loss{File: stateFile, Cause: Corrupt, Checkpoints: true}
		err = se.state.one(se.ctx, `SELECT count(*) FROM states`, nil, &loss.States)
		if err == nil {
			err = se.state.exec(se.ctx, `UPDATE kinds SET checkpoint = ''`)
		}
		if err != nil {
			return err
		}
		return se.writer.noteLoss(se.state, loss)
	})
}

// openDay opens the file of changes that reconcile has chosen.
func (se *session) openDay() error {
	s := se.store
	name := se.file.name.String()
	if err := se.openDayFile(s.path(name)); err != nil {
		return s.explain(err, name, "opening a file of changes")
	}
	se.dayIdentity = identify(s.path(name))
	se.publish()
	return nil
}

func (se *session) openDayFile(path string) error {
	_, err := os.Stat(path)
	mode := "rw"
	if errors.Is(err, fs.ErrNotExist) && se.file.tail == 0 {
		mode = "rwc"
	}
	db, err := se.store.openDatabase(path, mode)
	if err != nil {
		return err
	}
	se.day = db
	empty, err := checkSchema(se.ctx, db, daySchema)
	if err != nil {
		return err
	}
	if empty {
		if se.file.tail > 0 {
			return fmt.Errorf("%w: it is empty", errDamaged)
		}
		if err := errors.Join(create(se.ctx, db, daySchema), syncDir(se.store.dir)); err != nil {
			return err
		}
	}
	if err := se.quickCheck(db); err != nil {
		return err
	}
	if err := se.agree(); err != nil {
		return err
	}
	return se.remember()
}

// agree makes the file end where the state says that it ends.
func (se *session) agree() error {
	var last int64
	if err := se.day.one(se.ctx, `SELECT `+endOfFile+` FROM changes`, nil, &last); err != nil {
		return err
	}
	switch {
	case last > se.file.tail:
		return trim(se.ctx, se.day, se.file.tail)
	case last < se.file.tail:
		return se.fallShort(last)
	default:
		return nil
	}
}

// endOfFile is the number of the last change of a file, even if it was taken out to make room.
const endOfFile = `max(coalesce(max(id), 0), coalesce((SELECT value FROM meta WHERE key = '` + metaEnd + `'), 0))`

// fallShort notes that acknowledged changes are not in the file: it was put back from an older copy, say.
func (se *session) fallShort(last int64) error {
	s := se.store
	var since int64
	if err := se.day.one(se.ctx, `SELECT coalesce(max(time), 0) FROM changes WHERE id = ?`, []any{last}, &since); err != nil {
		return err
	}
	name := se.file.name.String()
	loss := Loss{File: name, Cause: Corrupt, Records: se.file.tail - last, Since: readTime(since), Until: readTime(se.file.last)}
	se.file.tail = last
	err := se.state.transaction(se.ctx, func() error {
		if err := se.writer.noteLoss(se.state, loss); err != nil {
			return err
		}
		return se.state.exec(se.ctx, `UPDATE files SET tail = ? WHERE name = ?`, last, name)
	})
	return s.explain(err, stateFile, "noting a loss")
}

// trim removes the changes after tail, and everything that counts them. Objects and names that are left without a change harm
// nobody.
func trim(ctx context.Context, db *database, tail int64) error {
	return db.transaction(ctx, func() error {
		for _, statement := range []string{
			`UPDATE kinds SET n = n - (SELECT count(*) FROM changes WHERE id > ?1 AND kind = kinds.id)`,
			`UPDATE names SET n = n - (SELECT count(*) FROM changes WHERE id > ?1 AND (namespace = names.id OR actor = names.id))`,
			`UPDATE minutes SET hi = min(hi, ?1), n = n - (SELECT count(*) FROM changes
				WHERE id > ?1 AND time >= minutes.minute * 60000000000 AND time < (minutes.minute + 1) * 60000000000) WHERE hi > ?1`,
			`DELETE FROM minutes WHERE n <= 0 AND ?1 >= 0`,
			`DELETE FROM bodies WHERE id > ?1`,
			`DELETE FROM changes WHERE id > ?1`,
		} {
			if err := db.exec(ctx, statement, tail); err != nil {
				return err
			}
		}
		return countShares(ctx, db)
	})
}

// remember reads what the writer keeps in memory of a file of changes.
func (se *session) remember() error {
	se.intern = newIntern(se)
	se.dictionaries = map[uint32]bool{}
	var content []byte
	err := se.day.each(se.ctx, `SELECT content FROM dictionaries ORDER BY id LIMIT ?`, []any{maxDictionaries}, func(row scanner) error {
		content = nil
		if err := row.Scan(&content); err != nil {
			return err
		}
		se.dictionaries[dictionaryID(content)] = true
		return nil
	})
	if err != nil {
		return err
	}
	if err := errors.Join(se.readShares(), se.measureFree()); err != nil {
		return err
	}
	if len(content) < minDictionary || se.store.dictionary.Load() != se.store.plain {
		return nil
	}
	dictionary, err := newDictionary(content)
	if err != nil {
		return errors.Join(errDamaged, err)
	}
	se.store.dictionary.Store(dictionary)
	return nil
}

// identity is which files a path led to when they were opened.
type identity struct {
	path    string
	db, log os.FileInfo
}

func identify(path string) identity {
	id := identity{path: path}
	id.db, _ = os.Stat(path)
	id.log, _ = os.Stat(path + "-wal")
	return id
}

// vanished reports whether somebody has deleted or replaced a file that is open.
func (id identity) vanished() bool {
	now := identify(id.path)
	return now.db == nil || id.db == nil || !os.SameFile(now.db, id.db) ||
		(id.log != nil && (now.log == nil || !os.SameFile(now.log, id.log)))
}

func (se *session) vanished() bool { return se.stateIdentity.vanished() || se.dayIdentity.vanished() }
