package store

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// A restored etcd brings objects back with the UIDs that they had. What such an object was is found before and after it was away.
func TestAnObjectThatIsThereAgainIsFoundAsItWas(t *testing.T) {
	clock := newClock()
	s := open(t, Options{Clock: clock, SnapshotEvery: 1000})
	write := func(rv int, body []byte) (time.Time, []byte) {
		now := clock.Step(time.Minute)
		record, state := edit(widgets, 1, rv, body, now)
		commit(t, s, Batch{Kind: widgets, Records: []change.Record{record}, Put: []change.State{state}})
		return now, state.Body
	}
	remove := func(rv int, body []byte) {
		record, _ := edit(widgets, 1, rv, body, clock.Step(time.Minute))
		record.Type, record.Fields = change.Deleted, nil
		commit(t, s, Batch{Kind: widgets, Records: []change.Record{record}, Drop: []types.UID{record.UID}})
	}
	first, was := write(1, nil)
	remove(2, was)
	second, is := write(3, nil)
	remove(4, is)
	for at, want := range map[time.Time][]byte{first: was, second: is} {
		past, err := s.Object(t.Context(), widgets.GroupResource(), uidOf(1), at)
		if err != nil || !sameObject(past.Body, want) {
			t.Errorf("at %s: %s, %v, want %s", at, past.Body, err, want)
		}
	}
}
