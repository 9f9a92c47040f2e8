package store

import (
	"cmp"
	"context"
	"slices"
)

// kindCount is how many changes of a kind the history has.
type kindCount struct {
	Group, Resource string
	Changes         int64
}

// countByKind returns how many changes of each kind the history has, the most first.
func countByKind(ctx context.Context, s *Store) ([]kindCount, error) {
	type key struct{ group, resource string }
	sums := map[key]int64{}
	for _, day := range s.days() {
		if day.tail == 0 {
			continue
		}
		err := s.read(ctx, day.name.String(), "counting changes", func(r *reader) error {
			rows, err := r.db.QueryContext(ctx, `SELECT grp, resource, n FROM kinds WHERE n > 0`)
			if err != nil {
				return err
			}
			return eachRow(rows, func(row scanner) error {
				var k key
				var n int64
				err := row.Scan(&k.group, &k.resource, &n)
				sums[k] += n
				return err
			})
		})
		if err != nil && s.has(day.name) {
			return nil, err
		}
	}
	counts := make([]kindCount, 0, len(sums))
	for k, n := range sums {
		counts = append(counts, kindCount{k.group, k.resource, n})
	}
	slices.SortFunc(counts, func(a, b kindCount) int {
		return cmp.Or(cmp.Compare(b.Changes, a.Changes), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return counts, nil
}
