package store

import (
	"os"
	"time"
)

// makeRoom begins the next file when the day is over or the file is full, and removes the oldest history that is too old or for
// which there is no space. cost is about how many bytes come.
func (se *session) makeRoom(cost int64) error {
	s := se.store
	now := s.options.Clock.Now()
	next := se.file.name.next(now)
	if se.isFull(now) || next.day != se.file.name.day {
		if err := se.rotate(next); err != nil {
			return err
		}
	}
	if s.options.MaxAge > 0 {
		limit := now.Add(-s.options.MaxAge).UnixNano()
		for files := s.days(); len(files) > 1 && files[0].last < limit; files = s.days() {
			if err := se.drop(files[0], "it is too old"); err != nil {
				return err
			}
		}
	}
	return se.keepBelow(s.options.MaxBytes-cost, cost > 0)
}

// keepBelow removes what there is until all files together have at most so many bytes: first those that were moved aside, then
// the oldest history of the namespace that has the most. So a namespace that has less than its equal share of all the history
// keeps it, whatever another one writes. The last states stay. When they alone have more nothing may be added, and what takes
// away still may.
func (se *session) keepBelow(limit int64, growing bool) error { //nolint:gocognit // one loop, with every way to end it
	s := se.store
	for {
		stats := s.Stats()
		// What is free in the file that is written is for what comes.
		excess := stats.Bytes - se.free - limit
		if excess <= 0 {
			return nil
		}
		if stats.OtherBytes > 0 {
			if err := se.dropAside(); err != nil {
				return err
			}
			continue
		}
		if smaller, err := se.reclaim(1); err != nil {
			return err
		} else if smaller {
			continue
		}
		if gone, err := se.dropWhole(); err != nil {
			return err
		} else if gone {
			continue
		}
		if smaller, err := se.thinOrPack(excess); err != nil {
			return err
		} else if smaller {
			continue
		}
		files := s.days()
		if len(files) == 1 {
			if files[0].tail == 0 && !growing {
				return nil
			}
			if files[0].tail == 0 {
				return &Error{Trouble: NoSpace, File: stateFile, What: "the last states alone need more than MaxBytes"}
			}
			if err := se.rotate(se.file.name.next(s.options.Clock.Now())); err != nil {
				return err
			}
		}
		if err := se.drop(files[0], "MaxBytes is reached"); err != nil {
			return err
		}
	}
}

// dropWhole removes the oldest file, if it is not written any more and nothing is left in it, or if it was made by an older version
// and goes as a whole.
func (se *session) dropWhole() (bool, error) {
	files := se.store.days()
	if len(files) < 2 {
		return false, nil
	}
	u, err := se.usageOf(files[0])
	switch {
	case err != nil:
		return false, se.store.explain(err, files[0].name.String(), "measuring what namespaces have")
	case u.fair && u.bytes() > 0:
		return false, nil
	}
	return true, se.drop(files[0], "MaxBytes is reached")
}

// rotate ends the file of changes and begins another.
func (se *session) rotate(next dayName) error {
	if se.day != nil {
		if err := se.day.close(); err != nil {
			se.store.options.Logger.Info("A file of changes was not closed well", "file", se.day.name, "error", err.Error())
		}
		se.day = nil
		se.publish()
	}
	if err := se.begin(next); err != nil {
		return err
	}
	return se.openDay()
}

// drop removes a file of changes. It is noted before, so that a crash on the way does not look like a loss.
func (se *session) drop(file dayInfo, why string) error {
	s := se.store
	name := file.name.String()
	if err := se.state.exec(se.ctx, `UPDATE files SET dropping = 1 WHERE name = ?`, name); err != nil {
		return s.explain(err, stateFile, "dropping the oldest history")
	}
	s.readers.forget(name)
	if err := remove(s.path(name)); err != nil {
		return s.explain(err, name, "dropping the oldest history")
	}
	if err := se.state.exec(se.ctx, `DELETE FROM files WHERE name = ?`, name); err != nil {
		return s.explain(err, stateFile, "dropping the oldest history")
	}
	delete(se.usages, file.name)
	s.forgetDay(file, why)
	return nil
}

// forgetDay takes a file that is gone out of what is known.
func (s *Store) forgetDay(file dayInfo, why string) {
	s.options.Logger.Info("The oldest history goes", "file", file.name.String(), "changes", file.tail-file.removed, "why", why)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.files {
		if s.files[i].name == file.name {
			s.files = append(s.files[:i:i], s.files[i+1:]...)
			break
		}
	}
	s.stats.Dropped += file.tail - file.removed
}

// dropAside removes the oldest of the files that were moved aside.
func (se *session) dropAside() error {
	s := se.store
	files, numbers, err := corruptFiles(s.dir)
	if err != nil {
		return s.explain(err, "", "listing the folder of the store")
	}
	if len(numbers) > 0 {
		for _, path := range files[numbers[0]] {
			if err := os.Remove(path); err != nil {
				return s.explain(err, "", "removing a damaged file")
			}
		}
	}
	return s.measureAside()
}

// measureAside finds out how large the files are that were moved aside.
func (s *Store) measureAside() error {
	files, _, err := corruptFiles(s.dir)
	if err != nil {
		return s.explain(err, "", "listing the folder of the store")
	}
	var sum int64
	for _, paths := range files {
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil {
				sum += info.Size()
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.OtherBytes = sum
	return nil
}

// sacrificeEvery is how often history is given up for a disk that is full. Whatever fills it, a history does not go in seconds.
const sacrificeEvery = time.Minute

// sacrifice removes the oldest history because the disk is full, and reports whether it did. The database cannot note it before,
// because it has no space to write. There is no session.
func (w *writer) sacrifice() bool {
	s := w.store
	files := s.days()
	now := s.options.Clock.Now()
	if len(files) < 2 || (!w.dropped.IsZero() && now.Sub(w.dropped) < sacrificeEvery) {
		return false
	}
	w.dropped = now
	name := files[0].name.String()
	s.readers.forget(name)
	if err := remove(s.path(name)); err != nil {
		return false
	}
	s.forgetDay(files[0], "the disk is full")
	w.given = append(w.given, name)
	return true
}

// reclaim gives back pages of the state that hold nothing any more, such as those of messages that were delivered. It takes some
// at a time, and reports whether the file got smaller.
func (se *session) reclaim(least int64) (bool, error) {
	const atOnce = `PRAGMA incremental_vacuum(1024)`
	var free, busy, pages, copied int64
	err := se.state.one(se.ctx, `PRAGMA freelist_count`, nil, &free)
	if err != nil || free < least {
		return false, se.store.explain(err, stateFile, "giving back free pages")
	}
	before := size(se.store.path(stateFile))
	err = se.state.each(se.ctx, atOnce, nil, func(scanner) error { return nil })
	if err == nil {
		// Only what is copied from the log makes the file smaller.
		err = se.state.one(se.ctx, `PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &pages, &copied)
	}
	if err != nil {
		return false, se.store.explain(err, stateFile, "giving back free pages")
	}
	se.publish()
	return size(se.store.path(stateFile)) < before, nil
}
