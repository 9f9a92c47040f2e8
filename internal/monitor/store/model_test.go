package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

// model is what a store must hold, in memory.
type model struct {
	records  []change.Record
	lives    [crashKinds]*events
	values   map[string]string
	messages map[string]bool
}

func newModel() *model {
	m := &model{values: map[string]string{}, messages: map[string]bool{}}
	for k := range m.lives {
		m.lives[k] = &events{kind: crashKind(k), bodies: map[int][]byte{}}
	}
	return m
}

func (m *model) clone() *model {
	c := &model{records: m.records[:len(m.records):len(m.records)], values: maps.Clone(m.values), messages: maps.Clone(m.messages)}
	for k, life := range m.lives {
		c.lives[k] = &events{kind: life.kind, number: life.number, bodies: maps.Clone(life.bodies)}
	}
	return c
}

// batch makes a random batch, and notes what it does.
func (m *model) batch(random *rand.Rand, at time.Time) Batch {
	life := m.lives[random.IntN(crashKinds)]
	b := Batch{Kind: life.kind}
	for range random.IntN(20) {
		life.next(&b, at)
	}
	m.records = append(m.records, b.Records...)
	for range random.IntN(3) {
		key, data := fmt.Sprintf("value/%d", random.IntN(10)), []byte(fmt.Sprint(random.IntN(1000)))
		if random.IntN(3) == 0 {
			data = nil
			delete(m.values, key)
		} else {
			m.values[key] = string(data)
		}
		b.Values = append(b.Values, Value{key, data})
	}
	if random.IntN(3) == 0 {
		key := fmt.Sprintf("message/%d", random.IntN(50))
		m.messages[key] = true
		b.Outbox = append(b.Outbox, Message{Key: key})
	}
	return b
}

func (m *model) compare(t *testing.T, s *Store, random *rand.Rand) {
	t.Helper()
	for k, life := range m.lives {
		got := map[int]string{}
		for state, err := range s.StatesOf(t.Context(), life.kind.GroupResource()) {
			if err != nil {
				t.Fatal(err)
			}
			var n int
			_, _ = fmt.Sscanf(state.Name, "object-%d", &n)
			got[n] = string(state.Body)
		}
		want := map[int]string{}
		for n, body := range life.bodies {
			want[n] = string(body)
		}
		same(t, fmt.Sprintf("states of kind %d", k), got, want)
		checkpoint, err := s.Checkpoint(t.Context(), life.kind.GroupResource())
		if want := fmt.Sprint(life.number); err != nil || (checkpoint != want && life.number > 0) {
			t.Fatalf("kind %d has the checkpoint %q, want %s, %v", k, checkpoint, want, err)
		}
	}
	values := map[string]string{}
	stored, err := s.Values(t.Context(), "value/")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range stored {
		values[v.Key] = string(v.Data)
	}
	same(t, "values", values, m.values)
	messages := map[string]bool{}
	waiting, _, err := s.NextMessages(t.Context(), s.options.Clock.Now(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range waiting {
		messages[message.Key] = true
	}
	same(t, "messages", messages, m.messages)
	same(t, "records", all(t, s, Query{}), m.records)
	m.compareQuery(t, s, random)
}

func (m *model) compareQuery(t *testing.T, s *Store, random *rand.Rand) {
	t.Helper()
	q := Query{}
	if random.IntN(2) == 0 {
		q.Group, q.Resource = "example.com", fmt.Sprintf("kind%ds", random.IntN(crashKinds+1))
	}
	if random.IntN(2) == 0 {
		q.Actor = fmt.Sprintf("manager-%d", random.IntN(4))
	}
	if random.IntN(2) == 0 && len(m.records) > 0 {
		q.Since = m.records[random.IntN(len(m.records))].Time
	}
	if random.IntN(3) == 0 {
		q.Types = []change.Type{change.Deleted, change.Created}
	}
	var want []change.Record
	for _, r := range m.records {
		if fits(q, r) {
			want = append(want, r)
		}
	}
	same(t, fmt.Sprintf("%+v", q), all(t, s, q), want)
}

// TestAnyOrderOfEventsLeavesWhatTheModelHas does at random what happens in the life of a store: commits, commits that fail between
// the files, restarts, days that pass, files that are deleted while they are open, and copies that it goes on with.
func TestAnyOrderOfEventsLeavesWhatTheModelHas(t *testing.T) {
	count, source := property.Inputs(t, 100, 2)
	for stream := range count {
		random := source(uint64(stream))
		clock := newClock()
		s := open(t, Options{Clock: clock, SnapshotEvery: 1 + random.IntN(5), BatchWait: time.Microsecond})
		m := newModel()
		for range 60 {
			switch random.IntN(12) {
			case 0:
				s = reopen(t, s)
			case 1:
				clock.Step(time.Duration(random.IntN(40)) * time.Hour)
			case 2:
				broken := errors.New("planted")
				s.fault = func(string) error { return broken }
				if err := s.Commit(t.Context(), m.clone().batch(random, clock.Now())); !errors.Is(err, broken) {
					t.Fatalf("Commit: %v", err)
				}
				s.fault = nil
			case 3:
				commit(t, s, Batch{}) // after a commit that failed the files are not open
				days := s.days()
				name := []string{stateFile, days[len(days)-1].name.String()}[random.IntN(2)]
				if err := os.Remove(s.path(name)); err != nil {
					t.Fatal(err)
				}
				commit(t, s, Batch{}) // it is put back by the next commit, or is a loss when it is closed before
			case 4:
				var dir string
				if err := s.update(t.Context(), func(*session) error { dir = copied(t, s); return nil }); err != nil {
					t.Fatal(err)
				}
				options := s.options
				options.Dir = dir
				s = open(t, options)
			case 5:
				m.compare(t, s, random)
			default:
				commit(t, s, m.batch(random, clock.Now()))
			}
		}
		m.compare(t, s, random)
		if found := losses(t, s); len(found) > 0 {
			t.Fatalf("losses %+v", found)
		}
		if t.Failed() {
			return
		}
	}
}
