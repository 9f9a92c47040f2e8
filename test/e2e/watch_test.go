//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sighting is one event of a watch and when it arrived here.
type sighting struct {
	at     time.Time
	event  watch.EventType
	object client.Object
}

// record is everything that a watch has shown, in order.
type record struct {
	f    *fixture
	what string

	mutex     sync.Mutex
	sightings []sighting
}

// record watches the objects of a kind in the test's namespace. Each one that exists
// already is seen as added.
func (f *fixture) record(list client.ObjectList) *record {
	f.Helper()
	r := &record{f: f, what: fmt.Sprintf("%T", list)}
	watcher, err := cluster.Watch(f.Context(), list, client.InNamespace(f.namespace))
	if err != nil {
		f.Fatalf("watch %T: %v", list, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(client.Object)
			if !ok {
				continue
			}
			r.mutex.Lock()
			r.sightings = append(r.sightings, sighting{at: time.Now(), event: event.Type, object: object})
			r.mutex.Unlock()
		}
	}()
	f.Cleanup(func() { watcher.Stop(); <-done })
	return r
}

// first waits for the first sighting from the given time on that matches.
func (r *record) first(since time.Time, what string, matches func(sighting) bool) sighting {
	r.f.Helper()
	var found sighting
	r.f.eventually(func() error {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		for _, s := range r.sightings {
			if !s.at.Before(since) && matches(s) {
				found = s
				return nil
			}
		}
		return fmt.Errorf("none of %d events of %s was: %s", len(r.sightings), r.what, what)
	})
	return found
}

// all returns what has been seen up to now.
func (r *record) all() []sighting {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.sightings)
}

// percentile returns the p-th percentile (0 to 100) of durations.
func percentile(durations []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[(len(sorted)-1)*p/100].Round(100 * time.Microsecond)
}
