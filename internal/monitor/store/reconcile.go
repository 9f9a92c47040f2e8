package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// buildState makes the file of the last states, with what can be read of the one that was moved aside. It gets its name when it
// is whole.
func (w *writer) buildState(path string) error {
	s := w.store
	days, err := listDays(s.dir)
	if err != nil {
		return err
	}
	build := path + buildSuffix
	if err := remove(build); err != nil {
		return err
	}
	db, err := s.openDatabase(build, "rwc")
	if err != nil {
		return err
	}
	err = create(s.background, db, stateSchema)
	if err == nil && (len(days) > 0 || movedAside(s.dir, stateFile)) {
		err = w.fillState(db)
	}
	if err := errors.Join(err, db.close()); err != nil {
		return errors.Join(err, remove(build))
	}
	if err := os.Rename(build, path); err != nil {
		return err
	}
	w.salvage = ""
	return syncDir(s.dir)
}

func (w *writer) fillState(db *database) error {
	s := w.store
	loss := Loss{File: stateFile, Cause: Missing, Checkpoints: true}
	if w.salvage != "" {
		loss.Cause = Corrupt
		if err := s.salvage(w.salvage, db); err != nil {
			return err
		}
		if err := db.one(s.background, `SELECT count(*) FROM states`, nil, &loss.States); err != nil {
			return err
		}
	}
	return w.noteLoss(db, loss)
}

// reconcile compares the files of changes that are there with those that the state knows, and chooses the one that is written.
func (se *session) reconcile() error {
	s := se.store
	onDisk, err := listDays(s.dir)
	if err != nil {
		return s.explain(err, "", "listing the folder of the store")
	}
	if err := removeCopies(s.dir); err != nil {
		return s.explain(err, "", "removing what is left of a copy")
	}
	known, dropping, err := se.knownDays()
	if err != nil {
		return s.explain(err, stateFile, "reading which files of changes there are")
	}
	for _, name := range dropping {
		if err := remove(s.path(name)); err != nil {
			return s.explain(err, name, "removing a file of changes")
		}
		onDisk = slices.DeleteFunc(onDisk, func(d dayName) bool { return d.String() == name })
	}
	err = se.state.transaction(se.ctx, func() error {
		if err := se.state.exec(se.ctx, `DELETE FROM files WHERE dropping <> 0`); err != nil {
			return err
		}
		return se.forgetMissing(known, onDisk)
	})
	if err != nil {
		return s.explain(err, stateFile, "comparing the files of changes")
	}
	se.writer.aside, se.writer.given = nil, nil // it is noted what became of them
	var files []dayInfo
	for _, name := range onDisk {
		info, ok := known[name.String()]
		if !ok {
			if info, err = se.adopt(name); err != nil {
				return err
			}
		}
		info.bytes = size(s.path(name.String()))
		files = append(files, info)
	}
	s.mu.Lock()
	s.files = files
	s.mu.Unlock()
	if err := s.measureAside(); err != nil {
		return err
	}
	return se.choose(files)
}

// knownDays reads which files the state knows, and which of them are to go. A row that cannot be is removed: the file it is about
// is taken in like a new one.
func (se *session) knownDays() (known map[string]dayInfo, dropping []string, err error) {
	var nonsense []string
	known = map[string]dayInfo{}
	err = se.state.each(se.ctx, `SELECT name, tail, first, last, dropping FROM files`, nil, func(row scanner) error {
		var name string
		var info dayInfo
		var gone int64
		if err := row.Scan(&name, &info.tail, &info.first, &info.last, &gone); err != nil {
			return err
		}
		day, ok := parseDay(name)
		if !ok || info.tail < 0 || info.tail > maxTail {
			nonsense = append(nonsense, name)
			return nil
		}
		if gone != 0 {
			dropping = append(dropping, name)
			return nil
		}
		info.name = day
		known[name] = info
		return nil
	})
	for _, name := range nonsense {
		if err == nil {
			err = se.state.exec(se.ctx, `DELETE FROM files WHERE name = ?`, name)
		}
	}
	return known, dropping, err
}

// maxTail is more changes than a file can have.
const maxTail = 1 << 40

// forgetMissing notes what is lost with files that are not there. One without a change is one that was not made yet.
func (se *session) forgetMissing(known map[string]dayInfo, onDisk []dayName) error { //nolint:gocognit // one comparison of two lists
	names := make([]string, 0, len(known))
	for name, info := range known {
		if !slices.Contains(onDisk, info.name) {
			names = append(names, name)
		}
	}
	for name := range se.writer.aside {
		if _, ok := known[name]; !ok && name != stateFile {
			names = append(names, name) // how many changes it had, nobody knows
		}
	}
	slices.Sort(names)
	for _, name := range names {
		info := known[name]
		given := slices.Contains(se.writer.given, name)
		if !given && (info.tail > 0 || se.writer.aside[name] != "") {
			cause := Missing
			if se.writer.aside[name] != "" || movedAside(se.store.dir, name) {
				cause = Corrupt
			}
			loss := Loss{File: name, Cause: cause, Records: info.tail, Since: readTime(info.first), Until: readTime(info.last)}
			if err := se.writer.noteLoss(se.state, loss); err != nil {
				return err
			}
		}
		if err := se.state.exec(se.ctx, `DELETE FROM files WHERE name = ?`, name); err != nil {
			return err
		}
		delete(known, name)
		se.store.readers.forget(name)
	}
	return nil
}

// adopt takes in a file that the state does not know: the state was lost, or the file was put back.
func (se *session) adopt(name dayName) (dayInfo, error) {
	s := se.store
	info := dayInfo{name: name}
	err := se.measure(&info)
	if err != nil {
		return info, s.explain(err, name.String(), "taking in a file of changes")
	}
	err = se.state.exec(se.ctx, `INSERT INTO files VALUES(?, ?, ?, ?, 0)`, name.String(), info.tail, info.first, info.last)
	return info, s.explain(err, stateFile, "taking in a file of changes")
}

func (se *session) measure(info *dayInfo) error {
	db, err := se.store.openDatabase(se.store.path(info.name.String()), "rw")
	if err != nil {
		return err
	}
	defer func() { _ = db.close() }()
	empty, err := checkSchema(se.ctx, db, daySchema)
	if err != nil || empty {
		return err
	}
	err = db.one(se.ctx, `SELECT `+endOfFile+`, coalesce(min(time), 0), coalesce(max(time), 0) FROM changes`, nil,
		&info.tail, &info.first, &info.last)
	if err == nil && (info.tail < 0 || info.tail > maxTail) {
		err = errBadRow
	}
	return err
}

// choose picks the newest file if it may still be written, or names a new one.
func (se *session) choose(files []dayInfo) error {
	s := se.store
	now := s.options.Clock.Now()
	if len(files) > 0 {
		last := files[len(files)-1]
		if last.name.next(now).day == last.name.day {
			se.file = last
			return nil
		}
		return se.begin(last.name.next(now))
	}
	return se.begin(se.firstName())
}

// firstName is the name of the first file. A number that a file which was moved aside had on this day is not taken again.
func (se *session) firstName() dayName {
	name := dayName{}.next(se.store.options.Clock.Now())
	for movedAside(se.store.dir, name.String()) {
		name.number++
	}
	return name
}

// begin notes the next file before it is made, so that no file is on the disk without the state knowing it.
func (se *session) begin(name dayName) error {
	for movedAside(se.store.dir, name.String()) {
		name.number++
	}
	se.file = dayInfo{name: name}
	err := se.state.exec(se.ctx, `INSERT OR IGNORE INTO files VALUES(?, 0, 0, 0, 0)`, name.String())
	if err != nil {
		return se.store.explain(err, stateFile, "beginning a file of changes")
	}
	s := se.store
	s.mu.Lock()
	s.files = append(s.files, se.file)
	s.mu.Unlock()
	return nil
}

// salvageTables are read from a damaged file of the last states, each by its rows' numbers. Those without are read by their keys.
var salvageTables = []struct {
	name    string
	columns int
	keyed   bool
}{
	{"kinds", 9, false},
	{"states", 13, false},
	{"outbox", 7, false},
	{"definitions", 6, false},
	{"losses", 9, false},
	{"vals", 2, true},
	{"files", 5, true},
}

// salvage copies what can be read of a damaged file. What cannot is left out, so the checkpoints go: only a list tells what is
// missing.
func (s *Store) salvage(path string, into *database) error {
	ctx := s.background
	from, err := s.openDatabase(path, "rw")
	if err != nil {
		return nil // nothing of it can be read
	}
	defer func() { _ = from.close() }()
	return into.transaction(ctx, func() error {
		for _, table := range salvageTables {
			if err := salvageTable(ctx, from, into, table.name, table.columns, table.keyed); err != nil {
				return err
			}
		}
		if err := into.exec(ctx, `UPDATE kinds SET checkpoint = ''`); err != nil {
			return err
		}
		return into.exec(ctx, `DELETE FROM states WHERE kind NOT IN (SELECT id FROM kinds)`)
	})
}

func salvageTable(ctx context.Context, from, into *database, table string, columns int, keyed bool) error {
	insert := `INSERT OR IGNORE INTO ` + table + ` VALUES(?` + strings.Repeat(`, ?`, columns-1) + `)`
	store := func(values []any) error {
		err := into.exec(ctx, insert, values...)
		if isRefused(err) {
			return nil // the row is damaged
		}
		return err
	}
	if keyed {
		for _, order := range []string{"key", "key DESC"} {
			if table == "files" {
				order = "name" + order[len("key"):]
			}
			if _, err := salvageRows(ctx, from, `SELECT * FROM `+table+` ORDER BY `+order, nil, columns, store); err != nil {
				return err
			}
		}
		return nil
	}
	// After a row that cannot be read, the next ones are looked for further and further on.
	var next int64
	for step, left := int64(1), 200; left > 0; left-- {
		last, err := salvageRows(ctx, from, `SELECT * FROM `+table+` WHERE id > ? ORDER BY id`, []any{next}, columns, store)
		if err != nil {
			return err
		}
		if last < 0 {
			return nil // it was read to its end
		}
		if last > next {
			next, step = last, 1
			continue
		}
		next += step
		step *= 2
		if step > 1<<40 {
			return nil
		}
	}
	return nil
}

// salvageRows copies rows until one cannot be read, and returns the number of the last one. It is -1 after the last row of all.
func salvageRows(ctx context.Context, from *database, query string, args []any, columns int, store func([]any) error) (int64, error) {
	last := int64(0)
	if len(args) > 0 {
		last, _ = args[0].(int64)
	}
	rows, err := from.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return last, nil
	}
	defer rows.Close()
	values := make([]any, columns)
	into := make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return last, nil
		}
		if err := store(values); err != nil {
			return last, err
		}
		if id, ok := values[0].(int64); ok {
			if id <= last && len(args) > 0 {
				return last, nil // in a sound file they ascend
			}
			last = id
		}
	}
	if rows.Err() != nil {
		return last, nil
	}
	return -1, nil
}

// noRow reports whether a query found nothing.
func noRow(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// isRefused reports whether a row has values that its table does not take.
func isRefused(err error) bool {
	var db *sqlite.Error
	return errors.As(err, &db) && db.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}
