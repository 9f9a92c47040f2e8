package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// format is the number of the layout of both kinds of files. A later one is refused, and left as it is.
const format = 1

// stateSchema is what is known now. All of it changes in one transaction per group.
var stateSchema = []string{
	`CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT`,
	`CREATE TABLE kinds(id INTEGER PRIMARY KEY, grp TEXT NOT NULL, resource TEXT NOT NULL, version TEXT NOT NULL, kind TEXT NOT NULL,
		namespaced INTEGER NOT NULL, definition TEXT NOT NULL, checkpoint TEXT NOT NULL, time INTEGER NOT NULL, UNIQUE(grp, resource)) STRICT`,
	`CREATE TABLE states(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, uid ANY NOT NULL, rv ANY NOT NULL, hash BLOB NOT NULL,
		namespace TEXT NOT NULL, name TEXT NOT NULL, generation INTEGER NOT NULL, metadata INTEGER NOT NULL, redacted INTEGER NOT NULL,
		reason TEXT NOT NULL, managers BLOB, body BLOB) STRICT`,
	`CREATE UNIQUE INDEX states_uid ON states(kind, uid)`,
	`CREATE INDEX states_name ON states(kind, name, namespace)`,
	// Of each file of changes: the number of the last change that is acknowledged, and the first and last time in it.
	`CREATE TABLE files(name TEXT PRIMARY KEY, tail INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
		dropping INTEGER NOT NULL) WITHOUT ROWID, STRICT`,
	`CREATE TABLE outbox(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, output TEXT NOT NULL, created INTEGER NOT NULL,
		next INTEGER NOT NULL, attempts INTEGER NOT NULL, body BLOB) STRICT`,
	`CREATE INDEX outbox_next ON outbox(next)`,
	`CREATE TABLE vals(key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID, STRICT`,
	`CREATE TABLE definitions(id INTEGER PRIMARY KEY, name TEXT NOT NULL, uid TEXT NOT NULL, generation INTEGER NOT NULL,
		time INTEGER NOT NULL, content BLOB) STRICT`,
	`CREATE INDEX definitions_name ON definitions(name)`,
	`CREATE TABLE losses(id INTEGER PRIMARY KEY AUTOINCREMENT, file TEXT NOT NULL, cause TEXT NOT NULL, time INTEGER NOT NULL,
		records INTEGER NOT NULL, states INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, checkpoints INTEGER NOT NULL) STRICT`,
}

// daySchema is the history of a part of a day. A file needs no other to be read.
var daySchema = []string{
	`CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT`,
	// What repeats is written once: kinds, variants of them (a version, a definition), names (of namespaces and of actors), objects.
	// The column n counts the changes, so that a query knows what is rare.
	`CREATE TABLE kinds(id INTEGER PRIMARY KEY, grp TEXT NOT NULL, resource TEXT NOT NULL, n INTEGER NOT NULL, UNIQUE(grp, resource)) STRICT`,
	`CREATE TABLE variants(id INTEGER PRIMARY KEY, version TEXT NOT NULL, kind TEXT NOT NULL, namespaced INTEGER NOT NULL,
		definition TEXT NOT NULL, UNIQUE(version, kind, namespaced, definition)) STRICT`,
	`CREATE TABLE names(id INTEGER PRIMARY KEY, use INTEGER NOT NULL, value TEXT NOT NULL, n INTEGER NOT NULL, UNIQUE(value, use)) STRICT`,
	`CREATE TABLE objects(id INTEGER PRIMARY KEY, uid ANY NOT NULL, kind INTEGER NOT NULL, namespace INTEGER, name TEXT NOT NULL) STRICT`,
	`CREATE UNIQUE INDEX objects_uid ON objects(uid, kind)`,
	`CREATE INDEX objects_name ON objects(name)`,
	`CREATE TABLE changes(id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind INTEGER NOT NULL, variant INTEGER NOT NULL,
		namespace INTEGER, object INTEGER, actor INTEGER, type INTEGER NOT NULL, flags INTEGER NOT NULL, rv ANY, payload BLOB) STRICT`,
	`CREATE INDEX changes_object ON changes(object) WHERE object IS NOT NULL`,
	`CREATE INDEX changes_kind ON changes(kind)`,
	`CREATE INDEX changes_namespace ON changes(namespace) WHERE namespace IS NOT NULL`,
	`CREATE INDEX changes_actor ON changes(actor) WHERE actor IS NOT NULL`,
	// Most changes are updates (3). The others are few and often asked for.
	`CREATE INDEX changes_type ON changes(type) WHERE type <> 3`,
	// There are no two records of a resource version, but where nobody wrote (flag 2) the version stays the same.
	`CREATE UNIQUE INDEX changes_once ON changes(object, rv, type) WHERE object IS NOT NULL AND flags & 2 = 0`,
	`CREATE TABLE bodies(id INTEGER PRIMARY KEY, body BLOB) STRICT`,
	// Of each minute: how many changes, and between which numbers they are. Changes are stored as they are committed, which is
	// nearly the order of their times, so a span of time is a short span of numbers.
	`CREATE TABLE minutes(minute INTEGER PRIMARY KEY, n INTEGER NOT NULL, lo INTEGER NOT NULL, hi INTEGER NOT NULL) STRICT`,
	`CREATE TABLE dictionaries(id INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT`,
}

// schemaOf returns the tables that a file of the store has.
func schemaOf(name string) []string {
	if name == stateFile {
		return stateSchema
	}
	return daySchema
}

// create makes the tables of an empty database.
func create(ctx context.Context, db *database, schema []string) error {
	return db.transaction(ctx, func() error {
		for _, statement := range schema {
			if err := db.exec(ctx, statement); err != nil {
				return err
			}
		}
		return db.exec(ctx, `INSERT INTO meta VALUES('format', ?)`, format)
	})
}

// checkSchema compares the tables of a file with what create makes. A file from elsewhere may have views or triggers under their
// names, so the words are compared. It reports whether there are no tables at all.
func checkSchema(ctx context.Context, db *database, schema []string) (empty bool, err error) {
	var found []string
	err = db.each(ctx, `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`, nil, func(row scanner) error {
		var statement string
		if err := row.Scan(&statement); err != nil {
			return errors.Join(errDamaged, err)
		}
		found = append(found, statement)
		if len(found) > len(schema) {
			return fmt.Errorf("%w: it has tables of others", errDamaged)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		return true, nil
	}
	var number int
	if err := db.one(ctx, `SELECT value FROM meta WHERE key = 'format'`, nil, &number); err != nil {
		return false, fmt.Errorf("%w: it does not say its format: %w", errDamaged, err)
	}
	if number > format {
		return false, &Error{Trouble: Newer, File: db.name, What: fmt.Sprintf("the file has the format %d, and this program knows %d", number, format)}
	}
	want := slices.Clone(schema)
	slices.Sort(want)
	slices.Sort(found)
	if !slices.EqualFunc(found, want, func(a, b string) bool { return strings.TrimSpace(a) == b }) {
		return false, fmt.Errorf("%w: its tables are not those of a store", errDamaged)
	}
	return false, nil
}
