package store

import (
	"context"
	"time"
)

// Bucket is how many changes there were in a span of time.
type Bucket struct {
	Start   time.Time
	Changes int64
}

const maxBuckets = 2000

// Rate returns how many changes there were since a time, in so many spans that are equally long: whole minutes, the last of which
// ends after now.
func (s *Store) Rate(ctx context.Context, since time.Time, buckets int) ([]Bucket, error) {
	now := s.options.Clock.Now()
	if buckets < 1 || buckets > maxBuckets || since.IsZero() || !storable(since) || !since.Before(now) {
		return nil, invalid("a rate since %s in %d spans; it must be in the past, and between 1 and %d spans", since, buckets, maxBuckets)
	}
	first, last := minuteOf(since.UnixNano()), minuteOf(now.UnixNano())
	width := (last-first)/int64(buckets) + 1
	rate := make([]Bucket, buckets)
	for i := range rate {
		rate[i].Start = time.Unix((first+int64(i)*width)*60, 0).UTC()
	}
	for _, day := range s.days() {
		if day.tail == 0 || minuteOf(day.last) < first {
			continue
		}
		err := s.read(ctx, day.name.String(), "counting changes", func(r *reader) error {
			rows, err := r.db.QueryContext(ctx, `SELECT (minute - ?1) / ?2, sum(n) FROM minutes WHERE minute >= ?1 GROUP BY 1`, first, width)
			if err != nil {
				return err
			}
			return eachRow(rows, func(row scanner) error {
				var bucket, n int64
				err := row.Scan(&bucket, &n)
				if err == nil && bucket >= 0 && bucket < int64(len(rate)) {
					rate[bucket].Changes += n
				}
				return err
			})
		})
		if err != nil && s.has(day.name) {
			return nil, err
		}
	}
	return rate, nil
}
