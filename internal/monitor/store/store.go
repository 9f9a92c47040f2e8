package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gofrs/flock"
	"github.com/klauspost/compress/zstd"
)

// Store is the history and the last known state of everything that is watched. Any number of goroutines may use it.
type Store struct {
	dir     string
	options Options
	// background is the context of what has to be finished once it was begun.
	background context.Context
	lock       *flock.Flock
	plain      *dictionary
	decoder    *zstd.Decoder // of what was compressed without a dictionary
	// dictionary is with what payloads are compressed at present.
	dictionary atomic.Pointer[dictionary]

	requests chan *request
	closing  chan struct{}
	closed   chan struct{}
	end      sync.Once
	lost     chan struct{}

	readers readers
	// reading is held by who reads, so that Close waits for them.
	reading sync.RWMutex

	// Below mu is what the one who writes tells the others.
	mu       sync.Mutex
	files    []dayInfo // oldest first; the last one is written
	suspects map[string]Trouble
	stats    Stats

	// writer is used by one goroutine only.
	writer writer

	// fault is set by tests: it fails at a point of a commit.
	fault func(point string) error
}

// dayInfo is what is known of a file of changes without opening it.
type dayInfo struct {
	name dayName
	// tail is the number of the last change that is acknowledged. What comes after it does not exist for a query.
	tail int64
	// first and last are the times of its changes, in nanoseconds since 1970.
	first, last int64
	bytes       int64
	// removed is how many of its changes were taken out to make room.
	removed int64
}

// Open opens a store, and makes one in an empty folder. What was not acknowledged before a crash is gone, and all else is there.
//
// A damaged file is moved aside, and what can be read of the last states is kept: see Losses. The error is an Error: InUse when
// another process has the folder open, NoSpace and ReadOnly when it cannot be written (try again later), Newer when a later
// version of the program has written it.
//
// The values of the context are used, its end is not: Close ends the store.
func Open(ctx context.Context, options Options) (*Store, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir: dir, options: options, background: context.WithoutCancel(ctx),
		requests: make(chan *request), closing: make(chan struct{}), closed: make(chan struct{}), lost: make(chan struct{}, 1),
		suspects: map[string]Trouble{},
	}
	s.readers.store = s
	s.writer.store = s
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) start() (err error) {
	if s.plain, err = newDictionary(nil); err != nil {
		return err
	}
	if s.decoder, err = newDecoder(nil); err != nil {
		return err
	}
	s.dictionary.Store(s.plain)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s.explain(err, "", "making the folder of the store")
	}
	s.lock = flock.New(filepath.Join(s.dir, lockFile))
	locked, err := s.lock.TryLock()
	if err != nil {
		return s.explain(err, lockFile, "locking the folder of the store")
	}
	if !locked {
		return &Error{Trouble: InUse, File: lockFile, What: "another process has the store open"}
	}
	if err := s.writer.ready(); err != nil {
		s.writer.endSession()
		return errors.Join(err, s.lock.Close())
	}
	go s.writer.run()
	return nil
}

// Close writes what was taken, and lets go of the folder. Calls that come later return Closed.
func (s *Store) Close() error {
	s.end.Do(func() { close(s.closing) })
	<-s.closed
	s.reading.Lock()
	defer s.reading.Unlock()
	s.readers.close()
	s.decoder.Close()
	return s.lock.Close()
}

// Lost receives after something was lost. Losses says what.
func (s *Store) Lost() <-chan struct{} { return s.lost }

// Stats are figures about the store.
type Stats struct {
	// Bytes is the size of all files, as it was after the last commit. StateBytes is the part of the last states, and OtherBytes
	// that of files that were moved aside.
	Bytes, StateBytes, OtherBytes int64
	// Changes is how many changes can be asked for, in Files files.
	Changes, Files int64
	// Oldest is the time of the oldest change in nanoseconds since 1970, 0 if there is none.
	Oldest int64
	// Since the store was opened: groups of commits, changes, changes that were there already, bytes of whole contents that were
	// stored beside changes, bytes of payloads, changes that went to make room or because they were too old, and those of them that
	// were taken out of a file because their namespace had the most. Refused is how many messages were refused: see MaxWaiting.
	Commits, Written, Duplicates, SnapshotBytes, PayloadBytes, Dropped, Thinned, Refused int64
}

// Stats returns figures about the store.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Bytes = stats.StateBytes + stats.OtherBytes
	stats.Files = int64(len(s.files))
	for i, file := range s.files {
		stats.Changes += file.tail - file.removed
		stats.Bytes += file.bytes
		if file.tail > 0 && (stats.Oldest == 0 || file.first < stats.Oldest) {
			stats.Oldest = s.files[i].first
		}
	}
	return stats
}

// suspect remembers that a file could not be read. Who writes looks at it before the next commit.
func (s *Store) suspect(name string, trouble Trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspects[name] = trouble
}

// days returns the files of changes, oldest first.
func (s *Store) days() []dayInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.files)
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// at runs the fault that a test has planted.
func (s *Store) at(point string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(point)
}
