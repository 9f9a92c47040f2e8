package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// testClock tells the time that a test sets, and waits in real time.
type testClock struct {
	clock.RealClock
	mu  sync.Mutex
	now time.Time
}

func newClock() *testClock { return &testClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Step(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// open opens a store that is closed at the end of the test.
func open(t testing.TB, options Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), withTestDefaults(t, options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

func withTestDefaults(t testing.TB, options Options) Options {
	if options.Dir == "" {
		options.Dir = filepath.Join(t.TempDir(), "store")
	}
	if options.Clock == nil {
		options.Clock = newClock()
	}
	if options.Patch == nil {
		options.Patch = flatPatch
	}
	options.hasty = true
	if options.Logger.GetSink() == nil {
		options.Logger = logr.Discard()
		if v, ok := t.(*testing.T); ok && testing.Verbose() {
			options.Logger = testr.New(v)
		}
	}
	return options
}

func reopen(t testing.TB, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), s.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	return again
}

func commit(t testing.TB, s *Store, b Batch) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

var widgets = change.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true, Definition: "5f1f9f10-0000-4000-8000-000000000001"}

func uidOf(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n)) }

// flatPatch applies fields to an object of one level.
func flatPatch(body []byte, fields []change.Field) ([]byte, error) {
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	for _, f := range fields {
		key := strings.TrimPrefix(f.Path, ".")
		old, there := object[key]
		if (f.Op == change.Added) == there || (there && string(old) != string(f.Old)) {
			return nil, fmt.Errorf("%s of %s does not fit to %s", f.Op, f.Path, body)
		}
		if f.Op == change.Removed {
			delete(object, key)
		} else {
			object[key] = f.New
		}
	}
	return json.Marshal(object)
}

// edit returns the record and the state after one field of an object was set.
func edit(kind change.Kind, n, rv int, before []byte, at time.Time) (change.Record, change.State) {
	object := map[string]json.RawMessage{}
	_ = json.Unmarshal(before, &object)
	key, value := fmt.Sprintf("field%d", rv%7), json.RawMessage(fmt.Sprint(rv))
	field := change.Field{Path: "." + key, Op: change.Added, New: value}
	if old, ok := object[key]; ok {
		field.Op, field.Old = change.Changed, old
	}
	object[key] = value
	body, _ := json.Marshal(object)
	record := change.Record{
		Kind: kind, Namespace: fmt.Sprintf("ns-%d", n%5), Name: fmt.Sprintf("object-%d", n), UID: uidOf(n), ResourceVersion: fmt.Sprint(rv),
		Generation: int64(rv), Type: change.Updated, Time: at, Fields: []change.Field{field},
		Actor: change.Actor{Name: fmt.Sprintf("manager-%d", rv%3), Operation: "Apply", Confidence: change.Likely, Source: "managedFields"},
	}
	if before == nil {
		record.Type = change.Created
		record.Fields = nil
	}
	state := change.State{
		Namespace: record.Namespace, Name: record.Name, UID: record.UID, ResourceVersion: record.ResourceVersion, Generation: record.Generation,
		Hash: change.Hash{byte(rv), byte(rv >> 8), byte(n)}, Body: body, Managers: []byte(`[{"manager":"x"}]`),
	}
	return record, state
}

// history is a store with changes of some objects, and what must be in it.
type history struct {
	records []change.Record
	bodies  map[int][]byte
	rv      int
}

func newHistory() *history { return &history{bodies: map[int][]byte{}} }

// batch makes changes of objects, in turn.
func (h *history) batch(at time.Time, changes, objects int) Batch {
	b := Batch{Kind: widgets}
	for range changes {
		h.rv++
		n := h.rv % objects
		record, state := edit(widgets, n, h.rv, h.bodies[n], at)
		h.bodies[n] = state.Body
		b.Records = append(b.Records, record)
		b.Put = append(b.Put, state)
	}
	b.Checkpoint = fmt.Sprint(h.rv)
	h.records = append(h.records, b.Records...)
	return b
}

// all reads every change, the oldest first.
func all(t testing.TB, s *Store, q Query) []change.Record {
	t.Helper()
	q.OldestFirst, q.Limit = true, maxLimit
	var records []change.Record
	for {
		page, err := s.Changes(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Unreadable) > 0 {
			t.Fatalf("unreadable: %v", page.Unreadable)
		}
		for _, c := range page.Changes {
			records = append(records, c.Record)
		}
		if page.Next == "" {
			return records
		}
		q.Cursor = page.Next
	}
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		if lines := strings.SplitAfter(diff, "\n"); len(lines) > 60 {
			diff = strings.Join(lines[:60], "") + "..."
		}
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func TestWhatIsCommittedIsReadAfterAnotherStart(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock})
	full := change.Record{
		Kind: widgets, Namespace: "shop", Name: "web", UID: "not-a-uuid", ResourceVersion: "0x12", Generation: 3, Type: change.Updated,
		Time: clock.Now().Add(123456789), InGap: true, SchemaDriven: true, WithDefinition: true, MetadataOnly: true, Truncated: true,
		Folded: 5, Redacted: 2, Reason: "why", Since: clock.Now().Add(-time.Hour),
		Fields: []change.Field{
			{Path: ".spec.a", Op: change.Changed, Old: json.RawMessage(`"x"`), New: json.RawMessage(`{"no`)},
			{Path: ".spec.b", Op: change.Added, New: json.RawMessage{}},
			{Path: ".spec.c", Op: change.Removed, Old: json.RawMessage(`null`)},
		},
		Actor: change.Actor{Name: "kubectl", Operation: "Apply", Subresource: "status", Confidence: change.Exact, Source: "audit", Others: []string{"a", "b"}},
	}
	gap := change.Record{Kind: widgets, Type: change.Gap, Time: clock.Now(), Since: clock.Now().Add(-time.Minute), Reason: "410", Actor: change.Actor{Confidence: change.Unknown}}
	state := change.State{
		Namespace: "shop", Name: "web", UID: "not-a-uuid", ResourceVersion: "0x12", Generation: 3, Hash: change.Hash{1, 2, 3}, Body: []byte(`{"a":1}`),
		Managers: []byte(`[]`), MetadataOnly: true, Reason: "why", Redacted: 7, Definition: 1<<46 - 1,
	}
	commit(t, s, Batch{Kind: widgets, Checkpoint: "17", Records: []change.Record{full, gap}, Put: []change.State{state}})
	for range 2 {
		same(t, "records", all(t, s, Query{}), []change.Record{full, gap})
		got, err := s.State(t.Context(), widgets.GroupResource(), "not-a-uuid")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "state", got, state)
		kinds, err := s.Kinds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, "kinds", kinds, []KindState{{Kind: widgets, Checkpoint: "17", Objects: 1, Committed: clock.Now()}})
		if kinds, err = s.KindsUncounted(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, "kinds without counts", kinds, []KindState{{Kind: widgets, Checkpoint: "17", Committed: clock.Now()}})
		s = reopen(t, s)
	}
}

func TestMarksAndStatesOfManyObjects(t *testing.T) {
	s := open(t, Options{})
	h := newHistory()
	const objects = 250 // more than a page of states
	for range 5 {
		commit(t, s, h.batch(s.options.Clock.Now(), 100, objects))
	}
	want := map[types.UID]string{}
	for _, r := range h.records {
		want[r.UID] = r.ResourceVersion
	}
	marks, states := map[types.UID]string{}, map[types.UID]string{}
	for mark, err := range s.Marks(t.Context(), widgets.GroupResource()) {
		if err != nil {
			t.Fatal(err)
		}
		marks[mark.UID] = mark.ResourceVersion
	}
	for state, err := range s.StatesOf(t.Context(), widgets.GroupResource()) {
		if err != nil {
			t.Fatal(err)
		}
		states[state.UID] = state.ResourceVersion
	}
	same(t, "marks", marks, want)
	same(t, "states", states, want)
	commit(t, s, Batch{Kind: widgets, Drop: []types.UID{uidOf(3), uidOf(4)}})
	if _, err := s.State(t.Context(), widgets.GroupResource(), uidOf(3)); !Is(err, NotFound) {
		t.Errorf("a dropped state gives %v", err)
	}
	named, err := s.StateNamed(t.Context(), widgets.GroupResource(), "ns-0", "object-5")
	if err != nil || named.UID != uidOf(5) {
		t.Errorf("by its name: %v, %v", named.UID, err)
	}
	if err := s.Forget(t.Context(), widgets.GroupResource()); err != nil {
		t.Fatal(err)
	}
	if kinds, err := s.Kinds(t.Context()); err != nil || len(kinds) != 0 {
		t.Errorf("after Forget: %v, %v", kinds, err)
	}
	if got := all(t, s, Query{}); len(got) != 500 {
		t.Errorf("Forget left %d changes, want 500", len(got))
	}
	commit(t, s, h.batch(s.options.Clock.Now(), 1, objects))
	if kinds, err := s.Kinds(t.Context()); err != nil || len(kinds) != 1 || kinds[0].Objects != 1 {
		t.Errorf("a kind that comes back: %v, %v", kinds, err)
	}
}

func TestARecordIsThereOnce(t *testing.T) {
	s := open(t, Options{})
	h := newHistory()
	b := h.batch(s.options.Clock.Now(), 10, 3)
	commit(t, s, b)
	commit(t, s, b)
	same(t, "records", all(t, s, Query{}), h.records)
	if got := s.Stats(); got.Duplicates != 10 || got.Changes != 10 {
		t.Errorf("%d duplicates of %d changes, want 10 of 10", got.Duplicates, got.Changes)
	}
	rate, err := countByKind(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "counts", rate, []kindCount{{"example.com", "widgets", 10}})
	// Where nobody wrote the resource version stays, and all records count.
	driven := b.Records[0]
	driven.SchemaDriven = true
	for range 3 {
		commit(t, s, Batch{Kind: widgets, Records: []change.Record{driven}})
	}
	if got := len(all(t, s, Query{})); got != 13 {
		t.Errorf("%d records, want 13", got)
	}
}

// However many messages one output gets that nobody takes, they do not fill the disk, and another output gets all of its own.
func TestAnOutputHoldsSoManyMessages(t *testing.T) {
	s := open(t, Options{})
	fill := func(from, n int) {
		t.Helper()
		for end := from + n; from < end; {
			b := Batch{}
			for ; from < end && len(b.Outbox) < 1000; from++ {
				b.Outbox = append(b.Outbox, Message{Key: fmt.Sprint(from), Output: "webhook/a/greedy"})
			}
			commit(t, s, b)
		}
	}
	waiting := func(want, refused int64) {
		t.Helper()
		if n, err := s.Waiting(t.Context()); err != nil || n != want || s.Stats().Refused != refused {
			t.Fatalf("%d messages wait (%v), %d were refused, want %d and %d", n, err, s.Stats().Refused, want, refused)
		}
	}
	fill(0, MaxWaiting+300)
	waiting(MaxWaiting, 300)
	commit(t, s, Batch{Outbox: []Message{{Key: "0", Output: "webhook/a/greedy"}, {Key: "q", Output: "webhook/a/quiet"}}})
	waiting(MaxWaiting+1, 300) // one that waits already is not refused
	s = reopen(t, s)
	fill(MaxWaiting+300, 1)
	waiting(MaxWaiting+1, 1)
	messages, _, err := s.NextMessages(t.Context(), s.options.Clock.Now(), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := s.Delivered(t.Context(), m.ID, m.ID); err != nil {
			t.Fatal(err)
		}
	}
	fill(MaxWaiting+301, 12)
	waiting(MaxWaiting+1, 3)
}

func TestOutboxValuesAndDefinitions(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock, DefinitionVersions: 2})
	now := clock.Now()
	commit(t, s, Batch{
		Outbox: []Message{{Key: "a", Output: "hook", Body: []byte("1"), Next: now}, {Key: "b", Next: now.Add(time.Hour)}, {Key: "c", Next: now.Add(-time.Second)}},
		Values: []Value{{"timer/1", []byte("x")}, {"timer/2", []byte{}}, {"timeq", []byte("no")}, {KeyFingerprint, []byte("abc")}},
	})
	commit(t, s, Batch{Outbox: []Message{{Key: "a", Body: []byte("another")}}})
	s = reopen(t, s)
	messages, next, err := s.NextMessages(t.Context(), now, 10)
	if err != nil || len(messages) != 2 || messages[0].Key != "c" || messages[1].Key != "a" || string(messages[1].Body) != "1" || !next.Equal(now.Add(time.Hour)) {
		t.Fatalf("messages %+v, next %s, %v", messages, next, err)
	}
	messages, next, err = s.NextMessages(t.Context(), now, 10, "other", "")
	if err != nil || len(messages) != 1 || messages[0].Key != "a" || !next.IsZero() {
		t.Fatalf("without two outputs: messages %+v, next %s, %v", messages, next, err)
	}
	messages, _, err = s.NextMessages(t.Context(), now, 10)
	if err != nil || len(messages) != 2 {
		t.Fatalf("messages %+v, %v", messages, err)
	}
	if err := errors.Join(s.Delivered(t.Context(), messages[0].ID), s.Failed(t.Context(), messages[1].ID, now.Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	messages, next, err = s.NextMessages(t.Context(), now.Add(time.Minute), 10)
	if err != nil || len(messages) != 1 || messages[0].Attempts != 1 || !next.Equal(now.Add(time.Hour)) {
		t.Fatalf("after an attempt: %+v, next %s, %v", messages, next, err)
	}
	if n, err := s.Waiting(t.Context()); n != 2 || err != nil {
		t.Errorf("%d messages wait, %v", n, err)
	}
	commit(t, s, Batch{Values: []Value{{"timer/1", nil}, {"timer/3", []byte("y")}}})
	values, err := s.Values(t.Context(), "timer/")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "values", values, []Value{{"timer/2", []byte{}}, {"timer/3", []byte("y")}})
	for i, content := range []string{"one", "one", "two", "three"} {
		commit(t, s, Batch{Definitions: []Definition{{Name: "widgets.example.com", UID: "u", Generation: int64(i), Time: now, Content: []byte(content)}}})
	}
	definitions, err := s.Definitions(t.Context(), "widgets.example.com")
	if err != nil || len(definitions) != 2 || string(definitions[0].Content) != "three" || string(definitions[1].Content) != "two" {
		t.Fatalf("definitions %+v, %v", definitions, err)
	}
}

func TestWhatCanNeverBeStoredIsRefused(t *testing.T) {
	s := open(t, Options{})
	good := change.Record{Kind: widgets, UID: "u", Type: change.Updated, Time: s.options.Clock.Now()}
	with := func(f func(*change.Record)) Batch {
		r := good
		f(&r)
		return Batch{Kind: widgets, Records: []change.Record{good, r}, Checkpoint: "1"}
	}
	for name, b := range map[string]Batch{
		"no kind":         {Checkpoint: "1"},
		"another kind":    with(func(r *change.Record) { r.Kind.Resource = "gadgets" }),
		"no type":         with(func(r *change.Record) { r.Type = "" }),
		"no UID":          with(func(r *change.Record) { r.UID = "" }),
		"no time":         with(func(r *change.Record) { r.Time = time.Time{} }),
		"a far time":      with(func(r *change.Record) { r.Time = time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC) }),
		"a long name":     with(func(r *change.Record) { r.Name = strings.Repeat("x", maxText+1) }),
		"a large payload": with(func(r *change.Record) { r.Reason = strings.Repeat("x", maxBlob) }),
		"a large body":    {Kind: widgets, Put: []change.State{{UID: "u", Body: make([]byte, maxBlob+1)}}},
		"no message key":  {Outbox: []Message{{}}},
		"no value key":    {Values: []Value{{}}},
		"too much":        {Values: make([]Value, maxParts+1)},
	} {
		if err := s.Commit(t.Context(), b); !Is(err, Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := all(t, s, Query{}); len(got) != 0 {
		t.Errorf("refused batches left %d records", len(got))
	}
	for name, options := range map[string]Options{
		"no folder": {}, "few bytes": {Dir: "x", MaxBytes: 1}, "a long wait": {Dir: "x", BatchWait: time.Hour}, "a short age": {Dir: "x", MaxAge: 1},
	} {
		if _, err := Open(t.Context(), options); !Is(err, Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneProcessAtATime(t *testing.T) {
	s := open(t, Options{})
	if _, err := Open(t.Context(), s.options); !Is(err, InUse) {
		t.Errorf("a second one gets %v", err)
	}
}

func TestALaterFormatIsLeftAsItIs(t *testing.T) {
	s := open(t, Options{})
	commit(t, s, newHistory().batch(s.options.Clock.Now(), 1, 1))
	if err := s.update(t.Context(), func(se *session) error { return se.state.exec(se.ctx, `UPDATE meta SET value = 99`) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), s.options); !Is(err, Newer) {
		t.Errorf("opening gives %v", err)
	}
	if _, numbers, _ := corruptFiles(s.dir); len(numbers) != 0 {
		t.Error("it was moved aside")
	}
}

func TestCommitsAfterTheEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	options := withTestDefaults(t, Options{})
	s, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory()
	var wg sync.WaitGroup
	var mu sync.Mutex
	stored := 0
	for range 8 {
		wg.Go(func() {
			for {
				mu.Lock()
				b := h.batch(options.Clock.Now(), 1, 10)
				mu.Unlock()
				if err := s.Commit(t.Context(), b); err != nil {
					if !Is(err, Closed) {
						t.Errorf("Commit: %v", err)
					}
					return
				}
				mu.Lock()
				stored++
				if stored == 50 {
					go func() { _ = s.Close() }()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Changes(t.Context(), Query{}); err == nil || Is(err, Corrupt) {
		t.Errorf("a query afterwards gives %v", err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > before {
		buffer := make([]byte, 1<<16)
		t.Errorf("%d goroutines before and %d after:\n%s", before, now, buffer[:runtime.Stack(buffer, true)])
	}
	again, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := len(all(t, again, Query{})); got != stored {
		t.Errorf("%d changes were acknowledged, and %d are there", stored, got)
	}
}

func TestRateCountsEveryChangeOnce(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock})
	h := newHistory()
	start := clock.Now()
	for range 300 {
		commit(t, s, h.batch(clock.Step(7*time.Minute), 3, 10)) // over midnight
	}
	since := start.Add(5 * time.Hour)
	rate, err := s.Rate(t.Context(), since, 40)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(rate)
	for i := range want {
		want[i].Changes = 0
		end := want[i].Start.Add(want[1].Start.Sub(want[0].Start))
		for _, r := range h.records {
			if !r.Time.Before(want[i].Start) && r.Time.Before(end) {
				want[i].Changes++
			}
		}
	}
	same(t, "rate", rate, want)
	if rate[0].Start.After(since) || rate[0].Changes == 0 {
		t.Errorf("the first bucket is %+v", rate[0])
	}
}
