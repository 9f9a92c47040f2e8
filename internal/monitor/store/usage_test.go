package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// ofNamespace is a batch of changes of one namespace, of as many bytes.
func ofNamespace(random *rand.Rand, rv *int, namespace string, at time.Time, changes, bytes int) Batch {
	b := Batch{Kind: widgets}
	for range changes {
		*rv++
		record, state := edit(widgets, len(namespace)*1000+random.IntN(3), *rv, nil, at)
		record.Namespace, state.Namespace = namespace, namespace
		record.Type = change.Updated
		record.Fields = []change.Field{{Path: ".x", Op: change.Changed, Old: noise(random, bytes), New: noise(random, bytes)}}
		state.Body = noise(random, bytes)
		b.Records, b.Put = append(b.Records, record), append(b.Put, state)
	}
	b.Checkpoint = fmt.Sprint(*rv)
	return b
}

// One namespace changes an object of 0.9 MB without an end. Whatever it writes, another namespace that has less than its share of
// the history keeps all of it, and who asks for the history of the one that writes is told what went.
func TestOneNamespaceDoesNotPushOutTheHistoryOfAnother(t *testing.T) {
	fills(t)
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(41, 2))
	rv, quiet := 0, 0
	for i := range 48 {
		if i%4 == 0 {
			commit(t, s, ofNamespace(random, &rv, "quiet", clock.Step(time.Minute), 5, 500))
			quiet += 5
		}
		commit(t, s, ofNamespace(random, &rv, "greedy", clock.Step(time.Second), 2, 450_000))
		if got := folderSize(s.dir); got > MinBytes+Slack {
			t.Fatalf("the files have %d bytes", got)
		}
	}
	written := 48 * 2
	kept := len(all(t, s, Query{Namespace: "greedy"}))
	t.Logf("of %d changes of 0.9 MB %d are kept in %d of %d MiB, %d files", written, kept, s.Stats().Bytes/mebibyte, MinBytes/mebibyte, s.Stats().Files)
	if got := len(all(t, s, Query{Namespace: "quiet"})); got != quiet {
		t.Errorf("of %d changes of the quiet namespace %d are left", quiet, got)
	}
	if kept == 0 || kept > written/2 {
		t.Errorf("of %d changes of the greedy namespace %d are left", written, kept)
	}
	records := all(t, s, Query{Namespace: "greedy"})
	if until, err := s.Removed(t.Context(), "greedy"); err != nil || until.IsZero() || until.After(records[0].Time) {
		t.Errorf("removed until %s (%v), and the oldest that is left is of %s", until, err, records[0].Time)
	}
	if until, err := s.Removed(t.Context(), "quiet"); err != nil || !until.IsZero() {
		t.Errorf("of the quiet namespace changes were removed until %s, %v", until, err)
	}
	stats := s.Stats()
	if stats.Thinned == 0 || stats.Changes != int64(quiet+kept) || stats.Changes+stats.Dropped != int64(rv) {
		t.Errorf("stats are %+v, of %d changes", stats, rv)
	}
	again := reopen(t, s)
	if got := again.Stats().Changes; got != int64(quiet+kept) {
		t.Errorf("after a restart it says %d changes, want %d", got, quiet+kept)
	}
	commit(t, again, ofNamespace(random, &rv, "quiet", clock.Step(time.Minute), 5, 500))
	if got := len(all(t, again, Query{Namespace: "quiet"})); got != quiet+5 {
		t.Errorf("after a restart %d changes of the quiet namespace are left", got)
	}
}

// Namespaces that write much share the history alike, over days, and each keeps its newest changes.
func TestNamespacesShareTheHistoryAlike(t *testing.T) {
	fills(t)
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(41, 3))
	rv := 0
	names := []string{"a", "bb", "ccc"}
	for range 90 {
		for _, name := range names {
			commit(t, s, ofNamespace(random, &rv, name, clock.Step(3*time.Minute), 1, 60_000))
		}
		// One writes five times as much.
		commit(t, s, ofNamespace(random, &rv, "dddd", clock.Step(time.Minute), 5, 60_000))
	}
	counts := map[string]int{}
	for _, name := range append(names, "dddd") {
		records := all(t, s, Query{Namespace: name})
		counts[name] = len(records)
		if !slices.IsSortedFunc(records, func(a, b change.Record) int { return a.Time.Compare(b.Time) }) {
			t.Errorf("the changes of %s are not in their order", name)
		}
		if newest := records[len(records)-1].Time; clock.Now().Sub(newest) > 20*time.Minute {
			t.Errorf("the newest change of %s is of %s", name, newest)
		}
	}
	t.Logf("of 90, 90, 90 and 450 changes %v are kept", counts)
	for _, name := range names {
		if counts[name]*2 < counts["dddd"] {
			t.Errorf("%s has %d changes, and dddd %d", name, counts[name], counts["dddd"])
		}
	}
	if got := folderSize(s.dir); got > MinBytes+Slack/4 {
		t.Errorf("the files have %d bytes", got)
	}
}

// An object of which older changes were taken out is as it was, as far as its changes go back, and before that nothing is made up.
func TestAnObjectIsStillPutTogetherAfterItsOldestChangesWent(t *testing.T) {
	fills(t)
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxBytes: MinBytes, SnapshotEvery: 5})
	random := rand.New(rand.NewPCG(41, 4))
	bodies := map[string][]byte{}
	var last []byte
	for rv := 1; rv <= 2000; rv++ {
		record, state := edit(widgets, 1, rv, last, clock.Step(time.Second))
		record.Fields = append(record.Fields, change.Field{Path: ".noise", Op: change.Added, New: noise(random, 10_000)})
		state.Body = json.RawMessage(fmt.Sprintf(`{"n":%d,"noise":%s}`, rv, record.Fields[len(record.Fields)-1].New))
		if last != nil {
			var before map[string]json.RawMessage
			if err := json.Unmarshal(last, &before); err != nil {
				t.Fatal(err)
			}
			record.Fields = []change.Field{
				{Path: ".n", Op: change.Changed, Old: before["n"], New: json.RawMessage(fmt.Sprint(rv))},
				{Path: ".noise", Op: change.Changed, Old: before["noise"], New: record.Fields[len(record.Fields)-1].New},
			}
		}
		last = state.Body
		bodies[record.ResourceVersion] = last
		commit(t, s, Batch{Kind: widgets, Records: []change.Record{record}, Put: []change.State{state}})
	}
	records := all(t, s, Query{})
	if len(records) == 0 || len(records) > 1900 {
		t.Fatalf("%d changes are left", len(records))
	}
	for i := 0; i < len(records); i += 50 {
		past, err := s.Object(t.Context(), widgets.GroupResource(), records[i].UID, records[i].Time)
		if err != nil || !sameObject(past.Body, bodies[records[i].ResourceVersion]) {
			t.Errorf("change %d of %d: %v, and the object is another one", i, len(records), err)
		}
	}
	if past, err := s.Object(t.Context(), widgets.GroupResource(), records[0].UID, records[0].Time.Add(-time.Hour/6)); !Is(err, NotFound) {
		t.Errorf("before the oldest change: %v, %.40s", err, past.Body)
	}
}

// A crash at any moment while room is made leaves a history that is whole but for what it says that is not there.
func TestACrashWhileRoomIsMade(t *testing.T) {
	fills(t)
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(41, 5))
	rv, quiet := 0, 0
	for i := range 27 {
		commit(t, s, ofNamespace(random, &rv, "quiet", clock.Step(time.Second), 2, 200))
		quiet += 2
		crashed := i%3 == 0
		if crashed {
			s.fault = func(point string) error {
				if point == "thinned" || point == "between" {
					return &Error{Trouble: Failed, What: "a crash"}
				}
				return nil
			}
		}
		err := s.Commit(t.Context(), ofNamespace(random, &rv, "greedy", clock.Step(time.Second), 2, 450_000))
		s.fault = nil
		if crashed == (err == nil) {
			t.Fatalf("commit %d: %v", i, err)
		}
		if crashed {
			s = reopen(t, s)
		}
	}
	records := all(t, s, Query{Namespace: "greedy"})
	if got := len(all(t, s, Query{Namespace: "quiet"})); got != quiet {
		t.Errorf("of %d changes of the quiet namespace %d are left", quiet, got)
	}
	if until, err := s.Removed(t.Context(), "greedy"); err != nil || until.IsZero() || until.After(records[0].Time) {
		t.Errorf("removed until %s (%v), and the oldest that is left is of %s", until, err, records[0].Time)
	}
	if got, want := s.Stats().Changes, int64(len(records)+quiet); got != want {
		t.Errorf("it says %d changes, and %d are there", got, want)
	}
	if losses, err := s.Losses(t.Context()); err != nil || len(losses) > 0 {
		t.Errorf("losses: %v, %v", losses, err)
	}
}

// The files of an older version say nothing about namespaces. They go as a whole, as they did, and what is new is fair.
func TestFilesOfAnOlderVersionGoAsAWhole(t *testing.T) {
	fills(t)
	clock := newClock()
	s := open(t, Options{Clock: clock, MaxBytes: MinBytes})
	random := rand.New(rand.NewPCG(41, 6))
	rv := 0
	commit(t, s, ofNamespace(random, &rv, "quiet", clock.Step(time.Second), 20, 500))
	old := s.days()[0]
	if err := s.update(t.Context(), func(*session) error {
		return s.writer.session.day.exec(t.Context(), `DELETE FROM meta WHERE key <> 'format'`)
	}); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s)
	clock.Step(24 * time.Hour)
	for range 30 {
		commit(t, s, ofNamespace(random, &rv, "quiet", clock.Step(time.Second), 1, 500))
		commit(t, s, ofNamespace(random, &rv, "greedy", clock.Step(time.Second), 2, 450_000))
	}
	if files, err := filepath.Glob(filepath.Join(s.dir, old.name.String())); err != nil || len(files) > 0 {
		t.Errorf("the old file is there: %v, %v", files, err)
	}
	if got := len(all(t, s, Query{Namespace: "quiet"})); got != 30 {
		t.Errorf("of 30 new changes of the quiet namespace %d are left", got)
	}
}
