package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Trouble is what is wrong with the store.
type Trouble string

const (
	// NoSpace is a disk, a quota or MaxBytes that is full. The call may be tried again: it works as soon as there is space.
	NoSpace Trouble = "NoSpace"
	// Corrupt is a file that does not hold what was written to it. The store has moved it aside, or does so at the next Commit.
	Corrupt Trouble = "Corrupt"
	// Missing is a file that somebody deleted. It is the cause of a Loss, never of an Error.
	Missing Trouble = "Missing"
	// ReadOnly is a folder or a file that may not be written. The call may be tried again.
	ReadOnly Trouble = "ReadOnly"
	// InUse is a folder that another process has open.
	InUse Trouble = "InUse"
	// Newer is a folder that a later version of this program has written. It is left as it is.
	Newer Trouble = "Newer"
	// Invalid is a call that can never work.
	Invalid Trouble = "Invalid"
	// NotFound is something that the store does not have.
	NotFound Trouble = "NotFound"
	// Closed is a store that was closed.
	Closed Trouble = "Closed"
	// Failed is everything else, such as a disk that reports errors. The call may be tried again.
	Failed Trouble = "Failed"
)

// Error is what every function of the store returns when something is wrong, a context that ended aside.
type Error struct {
	Trouble Trouble
	// File is the name of the file in the folder of the store, empty if it is not about one.
	File string
	// What says in words what was tried.
	What string
	// Err is the cause, if there is one.
	Err error
}

// Error returns what was tried, with which file, what kind of trouble there is, and the cause.
func (e *Error) Error() string {
	text := e.What
	if e.File != "" {
		text = e.File + ": " + text
	}
	text += " (" + string(e.Trouble) + ")"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether an error of the store, anywhere in the chain, is of a kind.
func Is(err error, trouble Trouble) bool {
	var e *Error
	return errors.As(err, &e) && e.Trouble == trouble
}

func invalid(format string, args ...any) error {
	return &Error{Trouble: Invalid, What: fmt.Sprintf(format, args...)}
}

// explain turns what the database or the file system returned into an Error. An Error stays what it is, and so does the end of a
// context.
func (s *Store) explain(err error, file, what string) error {
	var known *Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Trouble: s.classify(err, file), File: file, What: what, Err: err}
}

func (s *Store) classify(err error, file string) Trouble {
	if errors.Is(err, errDamaged) {
		return Corrupt
	}
	var db *sqlite.Error
	if !errors.As(err, &db) {
		return classifySystem(err)
	}
	switch db.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return NoSpace
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		return Corrupt
	case sqlite3.SQLITE_ERROR:
		if s.isForeign(file) {
			return Corrupt
		}
		return Failed
	case sqlite3.SQLITE_IOERR:
		if db.Code() == sqlite3.SQLITE_IOERR_SHORT_READ || db.Code() == sqlite3.SQLITE_IOERR_CORRUPTFS {
			return Corrupt
		}
		return s.probe()
	case sqlite3.SQLITE_READONLY:
		if trouble := s.probe(); trouble != Failed || file == "" || !tooNewToWrite(s.path(file)) {
			return trouble
		}
		return Corrupt
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return s.probe()
	default:
		return Failed
	}
}

// isForeign recognizes damage for which SQLite has no code of its own: SQLITE_ERROR is all that it says of a header with a format that
// there is not, and of a table that is missing. The statements are constant, so the file is looked at, and not the message.
func (s *Store) isForeign(file string) bool {
	if file == "" {
		return false
	}
	db, err := s.openReading(file)
	if err != nil {
		return isPlainError(err)
	}
	defer func() { _ = db.close() }()
	empty, err := checkSchema(s.background, db, schemaOf(file))
	return empty || errors.Is(err, errDamaged) || isPlainError(err)
}

func isPlainError(err error) bool {
	var db *sqlite.Error
	return errors.As(err, &db) && db.Code()&0xff == sqlite3.SQLITE_ERROR
}

// tooNewToWrite reports whether the header of a file asks for a later version of SQLite to write it (its "file format write
// version"). SQLite only reads such a file. No version writes that, so it is damage.
func tooNewToWrite(path string) bool {
	const offset, wal = 18, 2
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	version := make([]byte, 1)
	_, err = file.ReadAt(version, offset)
	return err == nil && version[0] > wal
}

func classifySystem(err error) Trouble {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return NoSpace
	case errors.Is(err, syscall.EROFS), errors.Is(err, os.ErrPermission):
		return ReadOnly
	default:
		return Failed
	}
}

// probe finds out what the database does not say: it reports a quota, a limit of a file's size and a folder that became read-only
// all alike. So it writes a file, at a place where no other file ends later.
func (s *Store) probe() Trouble {
	name := filepath.Join(s.dir, probeName)
	defer func() { _ = os.Remove(name) }()
	if err := writeProbe(name, s.largest()); err != nil {
		return classifySystem(err)
	}
	return Failed
}

func (s *Store) largest() (bytes int64) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			bytes = max(bytes, info.Size())
		}
	}
	return bytes
}

func writeProbe(name string, offset int64) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(make([]byte, probeSize), offset)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
