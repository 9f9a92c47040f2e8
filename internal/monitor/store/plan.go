package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// plan is how a query reads one file: which numbers stand for what it asks for, between which changes that can be, and by which
// index it goes. The index is the one with the fewest changes.
type plan struct {
	q         *Query
	db        *sql.Conn
	low, high int64
	filters   []filter
	driver    int
}

// filter is a column that has one of some values, in n changes.
type filter struct {
	column, index string
	values        []int64
	n             int64
}

// maxBranches is how many values an index is read for side by side.
const maxBranches = 400

// make looks up what the query asks for, and reports whether the file can have any of it.
func (p *plan) make(ctx context.Context) (bool, error) {
	steps := []func(context.Context) error{p.times, p.object, p.kinds, p.names, p.types}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return false, err
		}
		if p.low > p.high {
			return false, nil
		}
	}
	p.driver = -1
	least := p.high - p.low + 1
	for i, f := range p.filters {
		if len(f.values) == 0 {
			return false, nil
		}
		// An index that has nearly everything is slower than reading one change after the other.
		if f.index != "" && f.n < least/2 && len(f.values) <= maxBranches {
			p.driver, least = i, f.n
		}
	}
	return true, nil
}

// times narrows the numbers of the changes down to those of the minutes.
func (p *plan) times(ctx context.Context) error {
	if p.q.Since.IsZero() && p.q.Until.IsZero() {
		return nil
	}
	since, until := int64(-1<<62), int64(1<<62)
	if !p.q.Since.IsZero() {
		since = minuteOf(storedTime(p.q.Since))
	}
	if !p.q.Until.IsZero() {
		until = minuteOf(storedTime(p.q.Until))
	}
	var low, high int64
	err := p.db.QueryRowContext(ctx, `SELECT coalesce(min(lo), 1), coalesce(max(hi), 0) FROM minutes WHERE minute BETWEEN ? AND ?`, since, until).Scan(&low, &high)
	p.low, p.high = max(p.low, low), min(p.high, high)
	return rowError(err)
}

// object finds the objects with a UID or a name. There may be several with a name: of several kinds, or made again.
func (p *plan) object(ctx context.Context) error {
	q := p.q
	if q.UID == "" && q.Name == "" {
		return nil
	}
	query, args := `SELECT o.id FROM objects o WHERE true`, []any{}
	if q.UID != "" {
		query, args = query+` AND o.uid = ?`, append(args, storedUID(q.UID))
	}
	if q.Name != "" {
		query, args = query+` AND o.name = ?`, append(args, q.Name)
	}
	if q.Namespace != "" {
		query += ` AND o.namespace = (SELECT id FROM names WHERE use = 1 AND value = ?)`
		args = append(args, q.Namespace)
	}
	if q.Resource != "" {
		query += ` AND o.kind = (SELECT id FROM kinds WHERE grp = ? AND resource = ?)`
		args = append(args, q.Group, q.Resource)
	}
	// An object has few changes of all, so this index is the best there is.
	return p.add(ctx, filter{column: "object", index: "changes_object"}, query, args...)
}

func (p *plan) kinds(ctx context.Context) error {
	q := p.q
	f := filter{column: "kind", index: "changes_kind"}
	if q.Resource != "" {
		return p.add(ctx, f, `SELECT id, n FROM kinds WHERE grp = ? AND resource = ?`, q.Group, q.Resource)
	}
	if q.Group != "" {
		return p.add(ctx, f, `SELECT id, n FROM kinds WHERE grp = ?`, q.Group)
	}
	return nil
}

func (p *plan) names(ctx context.Context) error {
	const query = `SELECT id, n FROM names WHERE use = ? AND value = ?`
	if p.q.Namespace != "" {
		if err := p.add(ctx, filter{column: "namespace", index: "changes_namespace"}, query, useNamespace, p.q.Namespace); err != nil {
			return err
		}
	}
	if p.q.Actor != "" {
		return p.add(ctx, filter{column: "actor", index: "changes_actor"}, query, useActor, p.q.Actor)
	}
	return nil
}

// types has an index of what is rare: everything but updates.
func (p *plan) types(context.Context) error {
	if len(p.q.Types) == 0 {
		return nil
	}
	f := filter{column: "type", index: "changes_type"}
	for _, name := range p.q.Types {
		if number := typeNumbers[name]; number != 0 && !slices.Contains(f.values, number) {
			f.values = append(f.values, number)
		}
	}
	if slices.Contains(p.q.Types, change.Updated) {
		f.index = ""
	}
	p.filters = append(p.filters, f)
	return nil
}

// add reads the numbers that stand for a value, and in how many changes they are if the query says so.
func (p *plan) add(ctx context.Context, f filter, query string, args ...any) error {
	rows, err := p.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	err = eachRow(rows, func(row scanner) error {
		var id, n int64
		into := []any{&id, &n}[:len(columns)]
		err := row.Scan(into...)
		f.values = append(f.values, id)
		f.n += n
		return err
	})
	p.filters = append(p.filters, f)
	return err
}

// sql returns the query of changes, with the numbers of their kinds, namespaces and objects. Where an index is read for several values it is read for each in order, and the rows are merged: sorting
// would mean reading all of them.
func (p *plan) sql(limit int) (query string, args []any) {
	order := ` ORDER BY id DESC`
	if p.q.OldestFirst {
		order = ` ORDER BY id`
	}
	var inner string
	if p.driver < 0 {
		where, values := p.where("NOT INDEXED", nil)
		inner, args = where, values
	} else {
		driver := p.filters[p.driver]
		var branches []string
		for _, value := range driver.values {
			where, values := p.where("INDEXED BY "+driver.index, &value)
			branches = append(branches, where)
			args = append(args, values...)
		}
		inner = strings.Join(branches, " UNION ALL ")
	}
	return inner + order + ` LIMIT ?`, append(args, limit)
}

// where returns the query of the numbers of changes. The value is that of the column whose index is read.
func (p *plan) where(index string, value *int64) (query string, args []any) {
	var b strings.Builder
	b.WriteString(`SELECT id, kind, coalesce(namespace, 0), coalesce(object, 0) FROM changes ` + index + ` WHERE id BETWEEN ? AND ?`)
	args = append(args, p.low, p.high)
	for i, f := range p.filters {
		values := f.values
		if value != nil && i == p.driver {
			values = []int64{*value}
			if f.index == "changes_type" {
				b.WriteString(` AND type <> 3`) // the words by which the database knows that the index has it
			}
		}
		b.WriteString(" AND " + f.column)
		if len(values) == 1 {
			fmt.Fprintf(&b, " = %d", values[0])
			continue
		}
		b.WriteString(" IN (" + numbers(values) + ")")
	}
	if !p.q.Since.IsZero() {
		b.WriteString(` AND time >= ?`)
		args = append(args, storedTime(p.q.Since))
	}
	if !p.q.Until.IsZero() {
		b.WriteString(` AND time < ?`)
		args = append(args, storedTime(p.q.Until))
	}
	return b.String(), args
}
