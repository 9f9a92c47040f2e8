package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"

	"modernc.org/sqlite" // the driver "sqlite", too
)

const (
	// busyMillis is how long a connection waits for another one's lock.
	busyMillis = 5000
	// walPages is with how many pages of 4 KiB the log of a database is copied into it.
	walPages = 512
	// journalBytes is to what the log shrinks when it is used again.
	journalBytes = 2 * mebibyte
	// cacheKiB is how much of a database each connection holds in memory.
	writerCacheKiB = 4096
	readerCacheKiB = 1024
	// readersPerFile is how many connections read a file at a time.
	readersPerFile = 4
)

// dsn returns how a file is opened. A file from elsewhere may be hostile: no functions in its schema, cells are checked.
func dsn(path, mode string, hasty bool) string {
	query := url.Values{
		"mode":          {mode},
		"_busy_timeout": {strconv.Itoa(busyMillis)},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_auto_vacuum":  {"INCREMENTAL"}, // a file that is there stays as it is
		"_pragma": {
			"trusted_schema(0)", "cell_size_check(1)", fmt.Sprintf("cache_size(-%d)", writerCacheKiB), "temp_store(memory)",
			fmt.Sprintf("wal_autocheckpoint(%d)", walPages), fmt.Sprintf("journal_size_limit(%d)", journalBytes),
		},
	}
	if hasty {
		query.Set("_synchronous", "OFF")
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// openReaders returns connections that only read. The mode is rw, because reading a log needs its index, which is a file; a
// statement that writes is refused.
func openReaders(path string) (*sql.DB, error) {
	query := url.Values{
		"mode":          {"rw"},
		"_busy_timeout": {strconv.Itoa(busyMillis)},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_query_only":   {"1"},
		"_pragma":       {"trusted_schema(0)", "cell_size_check(1)", fmt.Sprintf("cache_size(-%d)", readerCacheKiB), "temp_store(memory)"},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(readersPerFile)
	db.SetMaxIdleConns(readersPerFile)
	return db, nil
}

// scanner is a row.
type scanner interface {
	Scan(into ...any) error
}

// database is the one connection that writes a file, with its prepared statements. One goroutine uses it.
type database struct {
	name       string
	db         *sql.DB
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

// openDatabase opens a file for writing. The mode is rw for one that must be there, and rwc for one that may be made.
func (s *Store) openDatabase(path, mode string) (*database, error) {
	ctx := s.background
	db, err := sql.Open("sqlite", dsn(path, mode, s.options.hasty))
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{name: filepath.Base(path), db: db, conn: conn, statements: map[string]*sql.Stmt{}}, nil
}

// openReading opens a file of the store once more, to look at it.
func (s *Store) openReading(name string) (*database, error) {
	db, err := openReaders(s.path(name))
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(s.background)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{name: name, db: db, conn: conn, statements: map[string]*sql.Stmt{}}, nil
}

func (d *database) close() error {
	for _, statement := range d.statements {
		_ = statement.Close()
	}
	return errors.Join(d.conn.Close(), d.db.Close())
}

func (d *database) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if statement := d.statements[query]; statement != nil {
		return statement, nil
	}
	statement, err := d.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	d.statements[query] = statement
	return statement, nil
}

// exec runs a statement. It is prepared once, so a query is one of a few constant texts.
func (d *database) exec(ctx context.Context, query string, args ...any) error {
	_, err := d.affect(ctx, query, args...)
	return err
}

// affect runs a statement and returns how many rows it changed.
func (d *database) affect(ctx context.Context, query string, args ...any) (int64, error) {
	statement, err := d.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	result, err := statement.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insert runs a statement and returns the number of the row that it inserted.
func (d *database) insert(ctx context.Context, query string, args ...any) (int64, error) {
	statement, err := d.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	result, err := statement.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// one reads the only row of a query. No row is sql.ErrNoRows.
func (d *database) one(ctx context.Context, query string, args []any, into ...any) error {
	statement, err := d.prepare(ctx, query)
	if err != nil {
		return err
	}
	return rowError(statement.QueryRowContext(ctx, args...).Scan(into...))
}

// each calls f for every row of a query.
func (d *database) each(ctx context.Context, query string, args []any, f func(scanner) error) error {
	statement, err := d.prepare(ctx, query)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, f)
}

func eachRow(rows *sql.Rows, f func(scanner) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return rowError(err)
		}
	}
	return rows.Err()
}

// rowError recognizes what Scan returns for a value that does not fit: the tables are strict, so that is damage. All else stays.
func rowError(err error) error {
	var known *Error
	var db *sqlite.Error
	switch {
	case err == nil, errors.As(err, &known), errors.As(err, &db), noRow(err), errors.Is(err, errDamaged), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return fmt.Errorf("%w: %w", errBadRow, err)
	}
}

// transaction runs f between BEGIN and COMMIT. When it returns nil, what f did is on the disk.
func (d *database) transaction(ctx context.Context, f func() error) error {
	if err := d.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = d.exec(ctx, `COMMIT`)
	}
	if err != nil {
		// The database has rolled back by itself after some errors, and then there is nothing to roll back.
		_ = d.exec(ctx, `ROLLBACK`)
	}
	return err
}
