package livetest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (r *Record) add(s Sighting) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.sightings = append(r.sightings, s)
}

func sighting(at time.Time, event watch.EventType, name string) Sighting {
	return Sighting{At: at, Event: event, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

func called(name string) func(client.Object) bool {
	return func(o client.Object) bool { return o.GetName() == name }
}

func TestEarliestWaitsForAWatchThatIsBehind(t *testing.T) {
	f := &Fixture{T: t, Patience: time.Minute}
	begun := time.Now()
	ahead, behind := &Record{f: f}, &Record{f: f}
	ahead.add(sighting(begun, watch.Added, "other"))
	asked, shown := make(chan struct{}), begun.Add(time.Second)
	go func() {
		<-asked
		behind.add(sighting(shown, watch.Added, "pod"))
	}()
	looks := 0
	matches := func(o client.Object) bool {
		if looks++; looks == 1 {
			close(asked) // it has been looked for once, in vain
		}
		return o.GetName() == "pod"
	}
	if at := f.Earliest(begun, "the pod", matches, ahead, behind); !at.Equal(shown) {
		t.Errorf("it was shown at %v, want %v", at, shown)
	}
}

func TestEarliestIsTheFirstOfAllRecords(t *testing.T) {
	f := &Fixture{T: t, Patience: time.Minute}
	begun := time.Now()
	one, two := &Record{f: f}, &Record{f: f}
	one.add(sighting(begun.Add(2*time.Second), watch.Added, "pod"))
	two.add(sighting(begun.Add(-time.Second), watch.Added, "pod"))         // too early
	two.add(sighting(begun.Add(time.Millisecond), watch.Deleted, "pod"))   // not there
	two.add(sighting(begun.Add(500*time.Millisecond), watch.Added, "pod")) // this one
	two.add(sighting(begun.Add(time.Second), watch.Modified, "pod"))       // not the first
	if at := f.Earliest(begun, "the pod", called("pod"), one, two).Sub(begun); at != 500*time.Millisecond {
		t.Errorf("it was shown after %v, want 500ms", at)
	}
}

func TestShowsWhatWasLastSeen(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		events []watch.EventType
		want   bool
	}{
		"nothing":         {nil, false},
		"there":           {[]watch.EventType{watch.Added, watch.Modified}, true},
		"gone":            {[]watch.EventType{watch.Added, watch.Deleted}, false},
		"gone and back":   {[]watch.EventType{watch.Added, watch.Deleted, watch.Added}, true},
		"gone from there": {[]watch.EventType{watch.Deleted}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Record{}
			for _, event := range tc.events {
				r.add(sighting(now, event, "pod"))
			}
			r.add(sighting(now, watch.Added, "other"))
			if got := Shows(called("pod"), r); got != tc.want {
				t.Errorf("Shows is %t, want %t", got, tc.want)
			}
		})
	}
}
