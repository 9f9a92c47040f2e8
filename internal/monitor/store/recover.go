package store

import (
	"errors"
	"os"
)

// attempt runs something that writes, and does what can be done when it fails.
func (w *writer) attempt(f func() error, cost int64) error {
	var err error
	for range 4 {
		if err = w.ready(); err != nil {
			return err
		}
		if err = w.session.makeRoom(cost); err == nil {
			err = f()
		}
		if err == nil {
			w.learn()
			return nil
		}
		if !w.recover(err) {
			return err
		}
	}
	return err
}

// recover throws the session away and reports whether it makes sense to try again at once.
func (w *writer) recover(err error) bool {
	s := w.store
	w.endSession()
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Trouble {
	case NoSpace:
		return w.sacrifice()
	case Corrupt:
		return w.setAside(e.File, Corrupt)
	case Failed:
		again := !w.suspicious
		w.suspicious = true
		s.options.Logger.Info("The store is looked through after an error", "error", err.Error())
		return again
	default:
		return false
	}
}

// setAside moves a damaged file aside, so that a new one can be made.
func (w *writer) setAside(name string, cause Trouble) bool {
	s := w.store
	if name == "" {
		return false
	}
	s.readers.forget(name)
	target, err := moveAside(s.dir, name)
	if err != nil {
		s.options.Logger.Error(err, "A damaged file could not be moved aside", "file", name)
		return false
	}
	s.options.Logger.Info("A damaged file was moved aside", "file", name, "to", target)
	if w.aside == nil {
		w.aside = map[string]Trouble{}
	}
	w.aside[name] = cause
	if name == stateFile {
		w.salvage = target
	}
	return s.measureAside() == nil
}

// checkSuspects looks at the files that could not be read. It is thorough, because all that is known is that something is wrong.
func (w *writer) checkSuspects() error {
	s := w.store
	s.mu.Lock()
	suspects := s.suspects
	if len(suspects) > 0 {
		s.suspects = map[string]Trouble{}
	}
	s.mu.Unlock()
	if len(suspects) == 0 {
		return nil
	}
	for name := range suspects {
		if w.session != nil && (name == stateFile || name == w.session.file.name.String()) {
			continue // the session's own files are checked when it opens them
		}
		if _, err := os.Stat(s.path(name)); err != nil {
			continue // reconcile finds that out
		}
		if err := w.inspect(name); err != nil {
			err = s.explain(err, name, "looking at a file that could not be read")
			if Is(err, Corrupt) {
				w.endSession()
				w.setAside(name, Corrupt)
			}
		}
	}
	w.suspicious = true
	w.endSession()
	return nil
}

// inspect reads a whole file.
func (w *writer) inspect(name string) error {
	s := w.store
	db, err := s.openDatabase(s.path(name), "rw")
	if err != nil {
		return err
	}
	defer func() { _ = db.close() }()
	if _, err := checkSchema(s.background, db, schemaOf(name)); err != nil {
		return err
	}
	return (&session{store: s, ctx: s.background, writer: &writer{suspicious: true}}).quickCheck(db)
}

// rescue puts back files that somebody deleted while they were open: the database still has them. It ends the session.
func (w *writer) rescue() {
	s, se := w.store, w.session
	for _, part := range []struct {
		db *database
		id identity
	}{{se.day, se.dayIdentity}, {se.state, se.stateIdentity}} {
		if part.db == nil || !part.id.vanished() {
			continue
		}
		build := part.id.path + buildSuffix
		err := remove(build)
		if err == nil {
			_, err = part.db.conn.ExecContext(s.background, `VACUUM INTO ?`, build)
		}
		if err != nil {
			s.options.Logger.Error(err, "A file that was deleted could not be put back", "file", part.db.name)
			_ = remove(build)
			continue
		}
		defer w.putBack(part.id.path, build, part.db.name)
	}
	w.endSession()
}

// putBack gives a copy its name, once nobody writes to the old file any more.
func (w *writer) putBack(path, build, name string) {
	s := w.store
	s.readers.forget(name)
	err := errors.Join(remove(path), os.Rename(build, path), syncDir(s.dir))
	if err != nil {
		s.options.Logger.Error(err, "A file that was deleted could not be put back", "file", name)
		return
	}
	s.options.Logger.Info("A file that was deleted while it was open was put back", "file", name)
}

// learn makes a new dictionary when there is enough to make it of.
func (w *writer) learn() {
	s := w.store
	current := s.dictionary.Load()
	if !w.samples.due(current != s.plain) {
		return
	}
	next, err := newDictionary(w.samples.take())
	if err != nil {
		s.options.Logger.Error(err, "No dictionary could be made, so changes need more space")
		return
	}
	s.dictionary.Store(next)
}

// tend looks after the files while nobody commits: what is too old goes.
func (w *writer) tend() {
	const many = 1024
	err := w.attempt(func() error {
		_, err := w.session.reclaim(many)
		return err
	}, 0)
	if err != nil {
		w.store.options.Logger.Error(err, "The store could not be looked after")
	}
}
