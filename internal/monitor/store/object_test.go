package store

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

func sameObject(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return cmp.Equal(x, y)
}

func TestAnObjectIsFoundAsItWasAtAnyTime(t *testing.T) {
	for name, options := range map[string]Options{
		"forwards, often":   {SnapshotEvery: 3},
		"forwards, seldom":  {SnapshotEvery: 1000},
		"without snapshots": {SnapshotShare: 1, MaxBytes: MinBytes},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			clock := newClock()
			options.Clock = clock
			s := open(t, options)
			if name == "without snapshots" {
				s.options.SnapshotShare = 0
			}
			type moment struct {
				at   time.Time
				body []byte
			}
			moments := map[int][]moment{}
			bodies := map[int][]byte{}
			start := clock.Now()
			const objects = 6
			for rv := 1; rv <= 400; rv++ {
				now := clock.Step(time.Duration(random.IntN(1800)) * time.Second)
				n := random.IntN(objects)
				record, state := edit(widgets, n, rv, bodies[n], now)
				b := Batch{Kind: widgets, Records: []change.Record{record}, Put: []change.State{state}}
				bodies[n] = state.Body
				if random.IntN(100) == 0 && record.Type == change.Updated && name != "without snapshots" {
					b.Records[0].Type, b.Records[0].Fields, b.Put, b.Drop = change.Deleted, nil, nil, []types.UID{record.UID}
					bodies[n] = nil
				}
				if random.IntN(30) == 0 && name != "without snapshots" && bodies[n] != nil {
					b.Records[0].Truncated, b.Records[0].Fields = true, nil
				}
				commit(t, s, b)
				moments[n] = append(moments[n], moment{now, bodies[n]})
				if rv == 200 {
					s = reopen(t, s)
				}
			}
			for range 300 {
				n := random.IntN(objects)
				at := start.Add(time.Duration(random.Int64N(int64(clock.Now().Sub(start)))))
				var want []byte
				for _, m := range moments[n] {
					if !m.at.After(at) {
						want = m.body
					}
				}
				past, err := s.Object(t.Context(), widgets.GroupResource(), uidOf(n), at)
				if err != nil {
					t.Fatalf("object %d at %s: %v", n, at, err)
				}
				if want == nil && past.Body == nil {
					continue
				}
				if !sameObject(past.Body, want) {
					t.Fatalf("object %d at %s: %s, want %s", n, at, past.Body, want)
				}
			}
		})
	}
}

func TestWhatTheHistoryDoesNotSayIsNotMadeUp(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock})
	s.options.SnapshotShare = 0
	at := clock.Now()
	kind := widgets.GroupResource()
	if _, err := s.Object(t.Context(), kind, uidOf(1), at); !Is(err, NotFound) {
		t.Errorf("an unknown object: %v", err)
	}
	record, state := edit(widgets, 1, 5, nil, clock.Step(time.Hour))
	record.Type = change.Baseline
	commit(t, s, Batch{Kind: widgets, Records: []change.Record{record}, Put: []change.State{state}})
	if _, err := s.Object(t.Context(), kind, uidOf(1), at); !Is(err, NotFound) {
		t.Errorf("before its baseline: %v", err)
	}
	record, state = edit(widgets, 1, 6, state.Body, clock.Step(time.Hour))
	record.Truncated, record.Fields = true, nil
	commit(t, s, Batch{Kind: widgets, Records: []change.Record{record}, Put: []change.State{state}})
	if _, err := s.Object(t.Context(), kind, uidOf(1), clock.Now().Add(-time.Minute)); !Is(err, NotFound) {
		t.Errorf("before a change that was cut: %v", err)
	}
	past, err := s.Object(t.Context(), kind, uidOf(1), clock.Now())
	if err != nil || !sameObject(past.Body, state.Body) {
		t.Errorf("now: %s, %v", past.Body, err)
	}
}
