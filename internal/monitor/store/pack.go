package store

import (
	"errors"
	"os"
)

const (
	// metaLoose is in the table meta of a file of changes: how many bytes were taken out of pages that still hold something else.
	// The database takes nothing else into them, so the file does not get smaller, and what comes finds no room.
	metaLoose = "loose"

	// loosePart is which part of a file may be loose before it is packed, and looseOfAll which part of MaxBytes in all files. So much
	// more than there must is taken out at most.
	loosePart  = 4
	looseOfAll = 16
)

// pack makes the file smaller of which the largest part is loose, if it is worth it or must be, and reports whether it did.
func (se *session) pack(must bool) (bool, error) {
	s := se.store
	files := s.days()
	at, loose, sum := -1, int64(0), int64(0)
	for i, file := range files {
		u, err := se.usageOf(file)
		if err != nil {
			return false, s.explain(err, file.name.String(), "measuring what is loose")
		}
		sum += u.loose
		if u.loose > 0 && (at < 0 || float64(u.loose)*float64(files[at].bytes) > float64(loose)*float64(file.bytes)) {
			at, loose = i, u.loose
		}
	}
	if at < 0 || !must && loose < files[at].bytes/loosePart && sum < s.options.MaxBytes/looseOfAll {
		return false, nil
	}
	file := files[at]
	if file.name == se.file.name {
		if err := se.rotate(se.file.name.next(s.options.Clock.Now())); err != nil {
			return false, err
		}
	}
	err := se.replaceByCopy(file)
	if Is(err, NoSpace) {
		return true, se.drop(files[0], "the disk has no space to pack it")
	}
	return err == nil, err
}

// replaceByCopy puts a copy of a file that is not written any more in its place, in which every page is full. The copy gets the
// name when it is whole. What a crash leaves of it is removed when the store is opened again: see reconcile.
func (se *session) replaceByCopy(file dayInfo) error {
	s := se.store
	name := file.name.String()
	path := s.path(name)
	build := path + buildSuffix
	err := se.copyPacked(file, build)
	if err == nil {
		err = s.at("packed")
	}
	if err == nil {
		err = s.readers.without(name, func() error { return se.putInPlace(file, build) })
	}
	if err != nil {
		return s.explain(errors.Join(err, remove(build)), name, "packing a file of changes")
	}
	delete(se.usages, file.name)
	after := size(path)
	s.options.Logger.V(1).Info("A file of changes was packed", "file", name, "bytes", file.bytes, "after", after)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.files {
		if s.files[i].name == file.name {
			s.files[i].bytes = after
		}
	}
	return nil
}

// copyPacked makes the copy, and sees to it that it is on the disk without a log.
func (se *session) copyPacked(file dayInfo, build string) error {
	s := se.store
	if err := remove(build); err != nil {
		return err
	}
	err := se.inFile(file, func(db *database) error { return db.exec(se.ctx, `VACUUM INTO ?`, build) })
	if err != nil {
		return err
	}
	db, err := s.openDatabase(build, "rw")
	if err != nil {
		return err
	}
	err = db.exec(se.ctx, setMeta, metaLoose, 0)
	if err == nil {
		err = emptyLog(se, db)
	}
	return errors.Join(err, db.close())
}

// putInPlace gives the copy the name of the file, while nobody reads that. The log has to be empty and gone before: it would be
// taken for one of the copy. What a crash leaves is one of the two, whole.
func (se *session) putInPlace(file dayInfo, build string) error {
	path := se.store.path(file.name.String())
	if err := se.inFile(file, func(db *database) error { return emptyLog(se, db) }); err != nil {
		return err
	}
	for _, sidecar := range sidecars(path)[1:] {
		if err := os.Remove(sidecar); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.Rename(build, path), syncDir(se.store.dir))
}

// emptyLog copies the log of a database into it.
func emptyLog(se *session, db *database) error {
	var busy, logged, copied int64
	err := db.one(se.ctx, `PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &logged, &copied)
	if err == nil && busy != 0 {
		err = &Error{Trouble: Failed, File: db.name, What: "copying the log into the database, which is being read"}
	}
	return err
}
