package livetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sighting is one event of a watch and when it arrived here.
type Sighting struct {
	At     time.Time
	Event  watch.EventType
	Object client.Object
}

// Record is everything that a watch has shown, in order.
type Record struct {
	f    *Fixture
	what string

	mutex     sync.Mutex
	sightings []Sighting
}

// Record watches the objects of a kind in the test's namespace. Each one that exists
// already is seen as added.
func (f *Fixture) Record(list client.ObjectList) *Record {
	f.Helper()
	r := &Record{f: f, what: fmt.Sprintf("%T", list)}
	watcher, err := f.Cluster.Watch(f.Context(), list, client.InNamespace(f.Namespace))
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
			r.sightings = append(r.sightings, Sighting{At: time.Now(), Event: event.Type, Object: object})
			r.mutex.Unlock()
		}
	}()
	f.Cleanup(func() { watcher.Stop(); <-done })
	return r
}

// First waits for the first sighting from the given time on that matches.
func (r *Record) First(since time.Time, what string, matches func(Sighting) bool) Sighting {
	r.f.Helper()
	var found Sighting
	r.f.Eventually(func() error {
		for _, s := range r.All() {
			if !s.At.Before(since) && matches(s) {
				found = s
				return nil
			}
		}
		return fmt.Errorf("none of %d events of %s was: %s", len(r.All()), r.what, what)
	})
	return found
}

// All returns what has been seen up to now.
func (r *Record) All() []Sighting {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.sightings)
}

// Earliest waits until one of the records shows an object that matches, from the given time on, and returns when the first one
// did. What one watch has shown, another may show a little later: to look once is not enough.
func (f *Fixture) Earliest(since time.Time, what string, matches func(client.Object) bool, records ...*Record) time.Time {
	f.Helper()
	var first time.Time
	f.Eventually(func() error {
		if first = earliest(since, matches, records); first.IsZero() {
			return fmt.Errorf("no watch has shown: %s", what)
		}
		return nil
	})
	return first
}

func earliest(since time.Time, matches func(client.Object) bool, records []*Record) (first time.Time) {
	for _, r := range records {
		for _, s := range r.All() {
			if !s.At.Before(since) && s.Event != watch.Deleted && matches(s.Object) && (first.IsZero() || s.At.Before(first)) {
				first = s.At
			}
		}
	}
	return first
}

// Shows reports whether an object matches as one of the records has last shown it.
func Shows(matches func(client.Object) bool, records ...*Record) bool {
	for _, r := range records {
		matched := map[string]bool{}
		for _, s := range r.All() {
			matched[s.Object.GetName()] = s.Event != watch.Deleted && matches(s.Object)
		}
		for _, is := range matched {
			if is {
				return true
			}
		}
	}
	return false
}

// LatestBefore returns when one of the records last changed to an object that matches, of
// those between two times; the first of the times where none did.
func LatestBefore(since, until time.Time, matches func(client.Object) bool, records ...*Record) time.Time {
	last := since
	for _, r := range records {
		matched := map[string]bool{}
		for _, s := range r.All() {
			name := s.Object.GetName()
			now := s.Event != watch.Deleted && matches(s.Object)
			if now && !matched[name] && s.At.After(last) && s.At.Before(until) {
				last = s.At
			}
			matched[name] = now
		}
	}
	return last
}
