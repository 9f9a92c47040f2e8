package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Query asks for changes. What is empty does not matter; all that is set must be true of a change.
type Query struct {
	// Since and Until are times of changes: at Since or later, and before Until.
	Since, Until time.Time
	// Resource is the plural of a kind, in Group. Group alone is all kinds of a group.
	Group, Resource string
	// Namespace, Name and UID are those of the object.
	Namespace, Name string
	UID             types.UID
	// Actor is who made the change, by its name.
	Actor string
	// Types are what happened.
	Types []change.Type
	// Allow tells which changes of a kind in a namespace (empty for objects without one) may be seen. It is asked once for
	// each of them in a file, and must not use the store. Nil: everything.
	Allow func(kind schema.GroupResource, namespace string) Share
	// Limit is how many changes are returned at most. Default 100, at most 1,000.
	Limit int
	// OldestFirst turns the order around.
	OldestFirst bool
	// Cursor is Page.Next of the page before, or the Position of a change after which to go on.
	Cursor string
}

// Page is a part of an answer.
type Page struct {
	Changes []Change
	// Next is the cursor of the next page, empty if there is none. With Query.Allow a page may have less than Limit changes, even
	// none, and a next one: then most of what was looked at was not allowed.
	Next string
	// Unreadable are files that are damaged, and whose changes are not in the answer.
	Unreadable []string
}

// Change is a record, and where it is.
type Change struct {
	change.Record
	// Position identifies the change in the history, and never changes. Positions are in the order in which changes were stored.
	Position string
}

const (
	standardLimit = 100
	maxLimit      = 1000
	// maxScan is how many changes are looked at for a page. A request for what is very rare comes back for more.
	maxScan = 20_000
)

// Changes returns changes, the newest first, in the order in which they were stored. For an object that is the order in which
// they happened.
func (s *Store) Changes(ctx context.Context, q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = standardLimit
	}
	if q.Limit < 0 || q.Limit > maxLimit {
		return Page{}, invalid("a limit of %d, and it must be between 1 and %d", q.Limit, maxLimit)
	}
	if !storable(q.Since) || !storable(q.Until) {
		return Page{}, invalid("a time that cannot be stored")
	}
	run := &queryRun{store: s, q: q, left: maxScan}
	start, err := parsePosition(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	days := s.days()
	if q.OldestFirst {
		for _, day := range days {
			if err := run.day(ctx, day, start); err != nil || run.full {
				return run.page, err
			}
		}
		return run.page, nil
	}
	for i := len(days) - 1; i >= 0; i-- {
		if err := run.day(ctx, days[i], start); err != nil || run.full {
			return run.page, err
		}
	}
	return run.page, nil
}

// position is a place in the history.
type position struct {
	name dayName
	id   int64
}

func (p position) String() string { return fmt.Sprintf("%s.%d.%d", p.name.day, p.name.number, p.id) }

// parsePosition reads a cursor, which comes from outside. Empty is none.
func parsePosition(text string) (*position, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) == 3 {
		number, err1 := strconv.Atoi(parts[1])
		id, err2 := strconv.ParseInt(parts[2], 10, 64)
		_, err3 := time.Parse(time.DateOnly, parts[0])
		p := &position{dayName{parts[0], number}, id}
		if errors.Join(err1, err2, err3) == nil && number >= 0 && id >= 0 && p.String() == text {
			return p, nil
		}
	}
	return nil, invalid("the cursor %q is not one that this store gave", text)
}

// queryRun is a query on its way through the files.
type queryRun struct {
	store *Store
	q     Query
	page  Page
	// left is how many changes may still be looked at, where the caller decides about each.
	left int
	// full reports whether there is more than fits, and last is the last one that was looked at.
	full bool
	last string
}

// day adds what one file has.
func (run *queryRun) day(ctx context.Context, day dayInfo, start *position) error {
	low, high := int64(1), day.tail
	if start != nil {
		order := day.name.compare(start.name)
		switch {
		case order == 0 && run.q.OldestFirst:
			low = start.id + 1
		case order == 0:
			high = min(high, start.id-1)
		case (order > 0) != run.q.OldestFirst:
			return nil
		}
	}
	if low > high || (!run.q.Since.IsZero() && day.last < storedTime(run.q.Since)) || (!run.q.Until.IsZero() && day.first >= storedTime(run.q.Until)) {
		return nil
	}
	name := day.name.String()
	before, last := len(run.page.Changes), run.last
	err := run.store.read(ctx, name, "reading changes", func(r *reader) error { return run.file(ctx, r, day, low, high) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !run.store.has(day.name) {
		return nil // it was the oldest, and is gone
	}
	if !Is(err, Corrupt) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	run.store.options.Logger.Error(err, "A file of changes cannot be read", "file", name)
	run.page.Changes, run.page.Next, run.full, run.last = run.page.Changes[:before], "", false, last
	run.page.Unreadable = append(run.page.Unreadable, name)
	return nil
}

func (s *Store) has(name dayName) bool {
	for _, day := range s.days() {
		if day.name == name {
			return true
		}
	}
	return false
}

func (run *queryRun) file(ctx context.Context, r *reader, day dayInfo, low, high int64) error {
	plan := &plan{q: &run.q, db: r.db, low: low, high: high}
	found, err := plan.make(ctx)
	if err != nil || !found {
		return err
	}
	ids, err := run.pick(ctx, r, plan, day.name)
	if err != nil || len(ids) == 0 {
		return err
	}
	order := " DESC"
	if run.q.OldestFirst {
		order = ""
	}
	rows, err := r.db.QueryContext(ctx, selectChanges+` WHERE c.id IN (`+numbers(ids)+`) ORDER BY c.id`+order)
	if err != nil {
		return err
	}
	var changes []Change
	err = eachRow(rows, func(row scanner) error {
		c, err := scanChange(ctx, r, row, day.name)
		changes = append(changes, c)
		return err
	})
	run.page.Changes = append(run.page.Changes, changes...)
	return err
}

// pick finds the changes that belong to the page, in their order.
func (run *queryRun) pick(ctx context.Context, r *reader, plan *plan, day dayName) (ids []int64, err error) {
	wanted := run.q.Limit - len(run.page.Changes)
	look := wanted
	if run.q.Allow != nil {
		look = run.left
	}
	query, args := plan.sql(look + 1)
	rows, err := r.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	allowed := &allowance{run: run, file: r, shares: map[allowKey]Share{}, objects: map[int64]bool{}}
	for rows.Next() {
		var id, object int64
		var key allowKey
		if err := rows.Scan(&id, &key.kind, &key.namespace, &object); err != nil {
			return nil, rowError(err)
		}
		if len(ids) == wanted || look == 0 {
			run.full, run.page.Next = true, run.last
			return ids, nil
		}
		look--
		run.last = position{day, id}.String()
		fits, err := allowed.fits(ctx, key, object, id)
		if err != nil {
			return nil, err
		}
		if fits {
			ids = append(ids, id)
		}
	}
	if run.q.Allow != nil {
		run.left = look
	}
	return ids, rows.Err()
}

func numbers(values []int64) string {
	b := make([]byte, 0, 8*len(values))
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, v, 10)
	}
	return string(b)
}

const selectChanges = `SELECT c.id, c.time, c.type, c.flags, c.rv, c.payload, k.grp, k.resource, v.version, v.kind, coalesce(v.namespaced, 0),
	v.definition, ns.value, a.value, o.uid, o.name FROM changes c LEFT JOIN kinds k ON k.id = c.kind LEFT JOIN variants v ON v.id = c.variant
	LEFT JOIN names ns ON ns.id = c.namespace LEFT JOIN names a ON a.id = c.actor LEFT JOIN objects o ON o.id = c.object`

// scanChange reads a row. A payload that is damaged leaves a change without fields, which says so.
func scanChange(ctx context.Context, r *reader, row scanner, day dayName) (Change, error) {
	var id, nanoseconds, number, flags, namespaced int64
	var rv, uid any
	var namespace, actor, name, group, resource, version, kind, definition sql.NullString
	var payload []byte
	err := row.Scan(&id, &nanoseconds, &number, &flags, &rv, &payload, &group, &resource, &version, &kind, &namespaced, &definition, &namespace,
		&actor, &uid, &name)
	if err != nil {
		return Change{}, err
	}
	c := Change{Position: position{day, id}.String()}
	c.Kind = change.Kind{
		Group: group.String, Resource: resource.String, Version: version.String, Kind: kind.String, Namespaced: namespaced != 0,
		Definition: types.UID(definition.String),
	}
	c.Namespace, c.Name, c.Actor.Name = namespace.String, name.String, actor.String
	c.Time, c.Type = readTime(nanoseconds), typeOf(number)
	setFlags(&c.Record, flags)
	if uid != nil {
		c.UID, err = readUID(uid)
	}
	if err == nil {
		c.ResourceVersion, err = readVersion(rv)
	}
	var raw []byte
	if err == nil {
		raw, err = r.unpack(ctx, payload)
	}
	if err == nil {
		err = decodePayload(raw, &c.Record)
	}
	if errors.Is(err, errDamaged) {
		c.Fields, c.Truncated, c.Reason = nil, true, "what was stored of this change is damaged"
		c.Actor.Confidence = change.Unknown
		return c, nil
	}
	return c, err
}
