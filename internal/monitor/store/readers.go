package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// openFiles is how many files are open for reading at a time, those in use aside.
const openFiles = 8

// readers are the files that are open for reading.
type readers struct {
	store *Store
	mu    sync.Mutex
	open  map[string]*openFile
	turn  int64
	// held is the file that nobody may begin to read, and idle tells of one that nobody reads any more. It is made when it is needed.
	held string
	idle *sync.Cond
}

// openFile is a file that is open for reading. It is closed when nobody uses it and it is forgotten.
type openFile struct {
	name      string
	db        *sql.DB
	users     int
	used      int64
	forgotten bool

	mu           sync.Mutex
	decoder      *zstd.Decoder
	dictionaries int
}

// reader is one who reads a file, with one of its connections. All that is looked up on the way goes over that one: who holds a
// connection and waits for another one waits for those who do the same, and then nobody reads any more.
type reader struct {
	file *openFile
	db   *sql.Conn
}

// use opens a file, or takes one that is open, and waits for a connection to it. Who uses it calls release.
func (r *readers) use(ctx context.Context, name string) (*reader, error) {
	file, err := r.take(name)
	if err != nil {
		return nil, err
	}
	conn, err := file.db.Conn(ctx)
	if err != nil {
		r.leave(file)
		return nil, err
	}
	return &reader{file: file, db: conn}, nil
}

func (r *readers) release(used *reader) {
	_ = used.db.Close() // it goes back to the others
	r.leave(used.file)
}

func (r *readers) take(name string) (*openFile, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.held == name {
		r.idle.Wait()
	}
	r.turn++
	found := r.open[name]
	if found == nil {
		if _, err := os.Stat(r.store.path(name)); err != nil {
			return nil, err
		}
		db, err := openReaders(r.store.path(name))
		if err != nil {
			return nil, err
		}
		found = &openFile{name: name, db: db}
		if r.open == nil {
			r.open = map[string]*openFile{}
		}
		r.open[name] = found
	}
	found.users++
	found.used = r.turn
	r.shrink()
	return found, nil
}

func (r *readers) shrink() {
	for len(r.open) > openFiles {
		var oldest *openFile
		for _, candidate := range r.open {
			if candidate.users == 0 && (oldest == nil || candidate.used < oldest.used) {
				oldest = candidate
			}
		}
		if oldest == nil {
			return
		}
		delete(r.open, oldest.name)
		oldest.close()
	}
}

func (r *readers) leave(used *openFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	used.users--
	if used.users > 0 {
		return
	}
	if used.forgotten {
		used.close()
	}
	if r.held != "" {
		r.idle.Broadcast()
	}
}

// without calls f while nobody reads a file. Who asks for it meanwhile waits. Who reads a file of changes waits for no commit, and
// does not ask for the same file again.
func (r *readers) without(name string, f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle == nil {
		r.idle = sync.NewCond(&r.mu)
	}
	r.held = name
	defer func() {
		r.held = ""
		r.idle.Broadcast()
	}()
	for found := r.open[name]; found != nil; found = r.open[name] {
		if found.users == 0 {
			delete(r.open, name)
			found.close()
			break
		}
		r.idle.Wait()
	}
	return f()
}

// forget closes a file as soon as nobody reads it. Who asks for it again gets the file that has the name then.
func (r *readers) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.open[name]
	if found == nil {
		return
	}
	delete(r.open, name)
	found.forgotten = true
	if found.users == 0 {
		found.close()
	}
}

func (r *readers) close() {
	r.mu.Lock()
	names := make([]string, 0, len(r.open))
	for name := range r.open {
		names = append(names, name)
	}
	r.mu.Unlock()
	for _, name := range names {
		r.forget(name)
	}
}

func (r *openFile) close() {
	_ = r.db.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.decoder != nil {
		r.decoder.Close()
		r.decoder = nil
	}
}

// unpack decompresses what the file has. The file may have got a dictionary since it was last looked at.
func (r *reader) unpack(ctx context.Context, data []byte) ([]byte, error) {
	for {
		decoder, fresh, err := r.decoderNow(ctx, false)
		if err != nil {
			return nil, err
		}
		out, err := decompress(decoder, data)
		if err == nil || fresh {
			return out, err
		}
		before := decoder
		if decoder, _, err = r.decoderNow(ctx, true); err != nil {
			return nil, err
		}
		if decoder == before {
			return nil, errDamaged
		}
	}
}

// decoderNow returns what reads the file, and whether it was made just now.
func (r *reader) decoderNow(ctx context.Context, again bool) (decoder *zstd.Decoder, fresh bool, err error) {
	f := r.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.decoder != nil && !again {
		return f.decoder, false, nil
	}
	if f.decoder != nil {
		var n int
		if err := r.db.QueryRowContext(ctx, `SELECT count(*) FROM dictionaries`).Scan(&n); err != nil || n == f.dictionaries {
			return f.decoder, false, err
		}
	}
	rows, err := r.db.QueryContext(ctx, `SELECT content FROM dictionaries ORDER BY id LIMIT ?`, maxDictionaries)
	if err != nil {
		return nil, false, err
	}
	dictionaries := map[uint32][]byte{}
	err = eachRow(rows, func(row scanner) error {
		var content []byte
		if err := row.Scan(&content); err != nil {
			return errors.Join(errDamaged, err)
		}
		if len(content) >= minDictionary && len(content) <= maxBlob {
			dictionaries[dictionaryID(content)] = content
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	if decoder, err = newDecoder(dictionaries); err != nil {
		return nil, false, errors.Join(errDamaged, err)
	}
	// The one before may be in use. It holds memory only, which the garbage collector frees.
	f.decoder, f.dictionaries = decoder, len(dictionaries)
	return decoder, true, nil
}

// readState runs a query on the last states and calls f for each row.
func (s *Store) readState(ctx context.Context, what, query string, args []any, f func(scanner) error) error {
	return s.read(ctx, stateFile, what, func(r *reader) error {
		rows, err := r.db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		return eachRow(rows, f)
	})
}

// read calls f with a file that is open. A file that turns out to be damaged, or is not there, is looked at before the next
// commit.
func (s *Store) read(ctx context.Context, name, what string, f func(*reader) error) error {
	s.reading.RLock()
	defer s.reading.RUnlock()
	select {
	case <-s.closing:
		return &Error{Trouble: Closed, What: what + " of a store that was closed"}
	default:
	}
	used, err := s.readers.use(ctx, name)
	if err == nil {
		err = f(used)
		s.readers.release(used)
	}
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.suspect(name, Missing)
		return &Error{Trouble: Failed, File: name, What: what, Err: err}
	}
	err = s.explain(err, name, what)
	if Is(err, Corrupt) && (!errors.Is(err, errDamaged) || errors.Is(err, errBadRow)) {
		s.suspect(name, Corrupt)
	}
	return err
}
