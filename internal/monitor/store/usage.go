package store

import (
	"context"
	"strconv"
	"strings"
	"time"
)

const (
	// rowBytes and objectBytes are about how many bytes a change needs beside its payload and its content, and an object beside its
	// changes: their rows, and those of the indexes.
	rowBytes    = 160
	objectBytes = 120

	// In the table meta of a file of changes: how many bytes each namespace has in it, how many of those are whole contents, and how
	// many changes have been taken out of the file. Namespaces are numbers of names there, and 0 for objects without one.
	metaBytes     = "bytes/"
	metaSnapshots = "snapshots/"
	metaRemoved   = "removed"
	// metaEnd is there too, when changes were taken out: the number of the last change that the file had then.
	metaEnd = "end"

	// valueRemoved is in the values of the state, before the name of a namespace: up to when changes of it were taken out.
	valueRemoved = "store/removed/"

	// fullShares is of how many namespaces a file holds its full part before it is full: one that writes much does not fill it alone.
	// fullAge is after how long it is full all the same.
	fullShares = 16
	fullAge    = 6 * time.Hour
	// fullTimes is at how many times the size of a file it is full whatever is in it: packing one takes so long, and needs so much.
	fullTimes = 2
	// snapshotShares is how many namespaces find room for whole contents in a file, before the size of what they have beside counts.
	snapshotShares = 8
)

// portion is what one namespace has in a file of changes, in bytes.
type portion struct{ bytes, snapshots int64 }

func (s portion) plus(more portion) portion {
	return portion{bytes: s.bytes + more.bytes, snapshots: s.snapshots + more.snapshots}
}

// usage is what the namespaces have in a file of changes.
type usage struct {
	// fair reports whether the file says it, and gives back pages: files of older versions do not, and go as a whole.
	fair bool
	// shares are by the names of namespaces, and numbers the same by their numbers. removed is how many changes were taken out.
	shares  map[string]portion
	numbers map[int64]portion
	removed int64
	// loose is how many bytes packing the file frees: see pack.
	loose int64
}

func (u *usage) bytes() (sum int64) {
	for _, one := range u.shares {
		sum += one.bytes
	}
	return sum
}

// readUsage reads what the namespaces have in a file.
func readUsage(ctx context.Context, db *database) (*usage, error) {
	u := &usage{shares: map[string]portion{}, numbers: map[int64]portion{}}
	var vacuum int64
	if err := db.one(ctx, `PRAGMA auto_vacuum`, nil, &vacuum); err != nil {
		return nil, err
	}
	counted := false
	err := db.each(ctx, `SELECT key, value FROM meta`, nil, func(row scanner) error {
		var key string
		var value int64
		if err := row.Scan(&key, &value); err != nil {
			return err
		}
		kind, number, _ := strings.Cut(key, "/")
		id, _ := strconv.ParseInt(number, 10, 64)
		switch kind + "/" {
		case metaBytes:
			counted = true
			u.numbers[id] = u.numbers[id].plus(portion{bytes: max(0, value)})
		case metaSnapshots:
			u.numbers[id] = u.numbers[id].plus(portion{snapshots: max(0, value)})
		case metaRemoved + "/":
			u.removed = value
		case metaLoose + "/":
			u.loose = max(0, value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if none, ok := u.numbers[0]; ok {
		u.shares[""] = none
	}
	names := 0
	err = db.each(ctx, `SELECT id, value FROM names WHERE use = ?`, []any{useNamespace}, func(row scanner) error {
		var id int64
		var name string
		if err := row.Scan(&id, &name); err != nil {
			return err
		}
		names++
		if one, ok := u.numbers[id]; ok {
			u.shares[name] = one
		}
		return nil
	})
	u.fair = vacuum != 0 && (counted || names == 0)
	return u, err
}

// usageOf returns what the namespaces have in a file. That of a file which is not written any more is read once.
func (se *session) usageOf(file dayInfo) (*usage, error) {
	if file.name == se.file.name {
		return readUsage(se.ctx, se.day)
	}
	if known := se.usages[file.name]; known != nil {
		return known, nil
	}
	var read *usage
	err := se.inFile(file, func(db *database) (err error) {
		read, err = readUsage(se.ctx, db)
		return err
	})
	if err != nil {
		return nil, err
	}
	se.usages[file.name] = read
	return read, nil
}

// inFile calls f with a file of changes that is open for writing.
func (se *session) inFile(file dayInfo, f func(*database) error) error {
	if file.name == se.file.name {
		return f(se.day)
	}
	db, err := se.store.openDatabase(se.store.path(file.name.String()), "rw")
	if err != nil {
		return err
	}
	defer func() { _ = db.close() }()
	return f(db)
}

// greediest is the namespace that has the most bytes in some files, and how many.
func greediest(usages []*usage) (namespace string, most int64) {
	sums := map[string]int64{}
	for _, u := range usages {
		for name, one := range u.shares {
			sums[name] += one.bytes
		}
	}
	for name, sum := range sums {
		if sum > most || sum == most && name < namespace {
			namespace, most = name, sum
		}
	}
	return namespace, most
}

// isFull reports whether the next file is to be begun. A namespace that writes much does not fill a file by itself, because each file
// that is begun costs, and keeps what is left of the others: it fills it once the file is some hours old, or
// twice as large.
func (se *session) isFull(now time.Time) bool {
	most := se.store.options.fileBytes()
	if se.file.bytes < most {
		return false
	}
	if now.Sub(readTime(se.file.first)) >= fullAge || se.file.bytes-se.free >= fullTimes*most {
		return true
	}
	var sum int64
	for _, one := range se.shares {
		sum += min(one.bytes, most/fullShares)
	}
	return !se.fair || sum >= most
}

// Removed is up to when changes of a namespace were taken out to make room, zero if none were. Empty is that of objects without a
// namespace. What went with a whole file is not told.
func (s *Store) Removed(ctx context.Context, namespace string) (until time.Time, err error) {
	err = s.readState(ctx, "reading what was removed", `SELECT value FROM vals WHERE key = ?`, []any{valueRemoved + namespace}, func(row scanner) error {
		var data []byte
		if err := row.Scan(&data); err != nil {
			return err
		}
		nanoseconds, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil {
			return errBadRow
		}
		until = readTime(nanoseconds)
		return nil
	})
	return until, err
}

// readShares reads what the namespaces have in the file that is written.
func (se *session) readShares() error {
	u, err := readUsage(se.ctx, se.day)
	if err != nil {
		return err
	}
	se.shares, se.fair, se.file.removed = u.numbers, u.fair, u.removed
	return nil
}

// countRemoved finds out how many changes were taken out of the files that are not written any more. A file that cannot be read tells
// nothing: who asks for its changes finds out.
func (se *session) countRemoved() {
	for _, file := range se.store.days() {
		u, err := se.usageOf(file)
		if err != nil {
			continue
		}
		se.store.mu.Lock()
		for i := range se.store.files {
			if se.store.files[i].name == file.name {
				se.store.files[i].removed = u.removed
			}
		}
		se.store.mu.Unlock()
	}
}

// countShares counts anew what the namespaces have in a file, after changes that were not acknowledged were removed.
func countShares(ctx context.Context, db *database) error {
	for _, statement := range []string{
		`DELETE FROM meta WHERE key LIKE '` + metaBytes + `%' OR key LIKE '` + metaSnapshots + `%'`,
		`INSERT INTO meta SELECT '` + metaBytes + `' || coalesce(c.namespace, 0), sum(` + strconv.Itoa(rowBytes) + ` + coalesce(length(c.payload), 0)
			+ coalesce(length(b.body), 0)) FROM changes c LEFT JOIN bodies b ON b.id = c.id GROUP BY coalesce(c.namespace, 0)`,
		`INSERT INTO meta SELECT '` + metaSnapshots + `' || coalesce(c.namespace, 0), sum(coalesce(length(b.body), 0))
			FROM changes c JOIN bodies b ON b.id = c.id GROUP BY coalesce(c.namespace, 0)`,
	} {
		if err := db.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
