package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// mixed fills a store with changes of some kinds, namespaces and actors over some days, in times that are not quite in order.
func mixed(t testing.TB, s *Store, clock *testClock, random *rand.Rand, changes int) []change.Record {
	t.Helper()
	kinds := []change.Kind{widgets, {Group: "example.com", Version: "v1", Kind: "Gadget", Resource: "gadgets"}, {Group: "other.io", Version: "v2", Kind: "Thing", Resource: "things"}}
	newer := widgets
	newer.Version = "v2"
	kinds = append(kinds, newer)
	types := []change.Type{change.Created, change.Updated, change.Updated, change.Updated, change.Updated, change.Deleted, change.Baseline}
	var records []change.Record
	for len(records) < changes {
		kind := kinds[random.IntN(len(kinds))]
		b := Batch{Kind: kind}
		for range 1 + random.IntN(30) {
			n := random.IntN(40)
			r := change.Record{
				Kind: kind, UID: uidOf(n), Name: fmt.Sprintf("object-%d", n/2), ResourceVersion: fmt.Sprint(len(records) + len(b.Records)),
				Type: types[random.IntN(len(types))], Time: clock.Now().Add(-time.Duration(random.IntN(90)) * time.Second),
				Actor: change.Actor{Confidence: change.Unknown},
			}
			if kind.Namespaced {
				r.Namespace = fmt.Sprintf("ns-%d", n%3)
			}
			if random.IntN(4) > 0 {
				r.Actor = change.Actor{Name: fmt.Sprintf("manager-%d", random.IntN(4)), Confidence: change.Likely}
			}
			if random.IntN(50) == 0 {
				r = change.Record{Kind: kind, Type: change.Gap, Time: r.Time, Actor: change.Actor{Confidence: change.Unknown}}
			}
			b.Records = append(b.Records, r)
		}
		commit(t, s, b)
		records = append(records, b.Records...)
		clock.Step(time.Duration(random.IntN(3600)) * time.Second)
	}
	return records
}

// fits reports whether a record belongs to an answer, in the plainest way.
func fits(q Query, r change.Record) bool {
	switch {
	case !q.Since.IsZero() && r.Time.Before(q.Since), !q.Until.IsZero() && !r.Time.Before(q.Until),
		q.Group != "" && r.Kind.Group != q.Group, q.Resource != "" && r.Kind.Resource != q.Resource,
		q.Namespace != "" && r.Namespace != q.Namespace, q.Name != "" && r.Name != q.Name, q.UID != "" && r.UID != q.UID,
		q.Actor != "" && r.Actor.Name != q.Actor, len(q.Types) > 0 && !slices.Contains(q.Types, r.Type),
		q.Allow != nil && !q.Allow(r.Kind.GroupResource(), r.Namespace).All:
		return false
	default:
		return true
	}
}

func randomQuery(random *rand.Rand, start, end time.Time) Query {
	var q Query
	maybe := func(odds int) bool { return random.IntN(odds) == 0 }
	when := func() time.Time { return start.Add(time.Duration(random.Int64N(int64(end.Sub(start))))) }
	if maybe(3) {
		q.Since = when()
	}
	if maybe(3) {
		q.Until = when()
	}
	if maybe(3) {
		q.Group = []string{"example.com", "other.io", "nobody.io"}[random.IntN(3)]
		if maybe(2) {
			q.Resource = []string{"widgets", "gadgets", "things"}[random.IntN(3)]
		}
	}
	if maybe(4) {
		q.Namespace = fmt.Sprintf("ns-%d", random.IntN(4))
	}
	if maybe(4) {
		q.Name = fmt.Sprintf("object-%d", random.IntN(22))
	}
	if maybe(5) {
		q.UID = uidOf(random.IntN(44))
	}
	if maybe(4) {
		q.Actor = fmt.Sprintf("manager-%d", random.IntN(5))
	}
	if maybe(4) {
		q.Types = [][]change.Type{{change.Deleted}, {change.Gap}, {change.Updated}, {change.Created, change.Baseline}, {change.Gap, change.Updated}, {"Nothing"}}[random.IntN(6)]
	}
	if maybe(4) {
		odd := random.IntN(2)
		q.Allow = func(kind schema.GroupResource, namespace string) Share {
			return Share{All: (len(kind.Resource)+len(namespace))%2 == odd}
		}
	}
	q.OldestFirst = maybe(2)
	q.Limit = 10 + random.IntN(60)
	return q
}

func TestEveryQueryFindsWhatFits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	clock := newClock()
	start := clock.Now()
	s := open(t, Options{Clock: clock})
	records := mixed(t, s, clock, random, queryChanges)
	if files := s.Stats().Files; files < 3 {
		t.Fatalf("it is all in %d files", files)
	}
	found := 0
	for range queries {
		q := randomQuery(random, start, clock.Now())
		var want []change.Record
		for _, r := range records {
			if fits(q, r) {
				want = append(want, r)
			}
		}
		if !q.OldestFirst {
			slices.Reverse(want)
		}
		got, pages := []change.Record(nil), 0
		asked := q
		for {
			page, err := s.Changes(t.Context(), q)
			if err != nil {
				t.Fatalf("%+v: %v", asked, err)
			}
			for _, c := range page.Changes {
				got = append(got, c.Record)
			}
			pages++
			if page.Next == "" {
				break
			}
			q.Cursor = page.Next
		}
		if len(got) != len(want) {
			t.Fatalf("%+v: %d changes, want %d", asked, len(got), len(want))
		}
		same(t, fmt.Sprintf("%+v", asked), got, want)
		if most := len(want)/q.Limit + 1; pages > most {
			t.Fatalf("%+v: %d pages, want %d at most", asked, pages, most)
		}
		found += len(want)
	}
	if found < 100*queries {
		t.Errorf("all queries together found %d changes, which says little", found)
	}
}

func TestACursorStaysWhereItIs(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock})
	h := newHistory()
	commit(t, s, h.batch(clock.Now(), 30, 7))
	first, err := s.Changes(t.Context(), Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	clock.Step(24 * time.Hour)
	commit(t, s, h.batch(clock.Now(), 30, 7))
	s = reopen(t, s)
	second, err := s.Changes(t.Context(), Query{Limit: 10, Cursor: first.Next})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range append(first.Changes, second.Changes...) {
		got = append(got, c.ResourceVersion)
	}
	var want []string
	for rv := 30; rv > 10; rv-- {
		want = append(want, fmt.Sprint(rv))
	}
	same(t, "two pages", got, want)
	// The position of a change is where to go on from it, in both directions.
	after, err := s.Changes(t.Context(), Query{Limit: 1, OldestFirst: true, Cursor: first.Changes[0].Position})
	if err != nil || len(after.Changes) != 1 || after.Changes[0].ResourceVersion != "31" {
		t.Errorf("after 30 comes %+v, %v", after.Changes, err)
	}
	for _, cursor := range []string{"x", "2026-11-20.0", "2026-11-20.0.-1", "2026-11-20.00.1", "2026-13-20.0.1", "../../etc.0.1", "2026-11-20.0.1 "} {
		if _, err := s.Changes(t.Context(), Query{Cursor: cursor}); !Is(err, Invalid) {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
}
