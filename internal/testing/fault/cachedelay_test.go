package fault

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

func object(name, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, ResourceVersion: version}}
}

// reported is what of an event is compared.
func reported(event watch.Event) string {
	o, ok := event.Object.(metav1.Object)
	if !ok {
		return string(event.Type)
	}
	return string(event.Type) + " " + o.GetName() + o.GetResourceVersion()
}

func TestSquashedEventsCancelOut(t *testing.T) {
	add, modify, remove := watch.Added, watch.Modified, watch.Deleted
	tests := map[string]struct {
		events []watch.Event
		want   []string
	}{
		"made and deleted":     {[]watch.Event{{Type: add, Object: object("a", "1")}, {Type: remove, Object: object("a", "2")}}, nil},
		"made and changed":     {[]watch.Event{{Type: add, Object: object("a", "1")}, {Type: modify, Object: object("a", "2")}}, []string{"ADDED a2"}},
		"changed twice":        {[]watch.Event{{Type: modify, Object: object("a", "1")}, {Type: modify, Object: object("a", "2")}}, []string{"MODIFIED a2"}},
		"changed and deleted":  {[]watch.Event{{Type: modify, Object: object("a", "1")}, {Type: remove, Object: object("a", "2")}}, []string{"DELETED a2"}},
		"deleted and made":     {[]watch.Event{{Type: remove, Object: object("a", "1")}, {Type: add, Object: object("a", "2")}}, []string{"MODIFIED a2"}},
		"of different objects": {[]watch.Event{{Type: add, Object: object("a", "1")}, {Type: remove, Object: object("b", "2")}}, []string{"ADDED a1", "DELETED b2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var queue []held
			for _, event := range tc.events {
				queue = squash(queue, held{Event: event})
			}
			var got []string
			for _, h := range queue {
				got = append(got, reported(h.Event))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// through watches a source of Secrets through a cache delay.
func through(t *testing.T, delay *CacheDelay) (source *watch.FakeWatcher, seen watch.Interface, options func() metav1.ListOptions) {
	t.Helper()
	source = watch.NewFake()
	var asked metav1.ListOptions
	lister := delay.through(&toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			asked = o
			return &corev1.SecretList{}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return source, nil },
	}, "Secret").(listFirst)
	if _, err := lister.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	seen, err := lister.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(seen.Stop)
	return source, seen, func() metav1.ListOptions { return asked }
}

func TestALateKindIsSeenLateAndInOrder(t *testing.T) {
	const late = 50 * time.Millisecond
	source, seen, _ := through(t, NewCacheDelay(map[string]View{"Secret": {Late: late}}))
	start := time.Now()
	source.Add(object("a", "1"))
	source.Modify(object("a", "2"))
	got := []string{reported(<-seen.ResultChan()), reported(<-seen.ResultChan())}
	if took := time.Since(start); took < late {
		t.Errorf("seen after %v, want %v at least", took, late)
	}
	if diff := cmp.Diff([]string{"ADDED a1", "MODIFIED a2"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOtherKindsAreSeenAsTheyAre(t *testing.T) {
	delay := NewCacheDelay(map[string]View{"ConfigMap": {Late: time.Hour}})
	source, seen, options := through(t, delay)
	source.Add(object("a", "1"))
	if got := reported(<-seen.ResultChan()); got != "ADDED a1" {
		t.Errorf("got %s", got)
	}
	if options().ResourceVersionMatch != "" {
		t.Errorf("the list was asked for with %+v", options())
	}
}

func TestARecorderRemembersWhatCameBy(t *testing.T) {
	delay := NewTimedCacheDelay()
	source, seen, _ := through(t, delay)
	source.Add(object("a", "1"))
	if got := reported(<-seen.ResultChan()); got != "ADDED a1" {
		t.Errorf("got %s", got)
	}
	if seen := delay.Seen(); len(seen) != 1 || len(seen["Secret"]) != 1 {
		t.Errorf("seen: %v, want one event of a Secret", seen)
	}
}

func TestThePastIsShownFirst(t *testing.T) {
	const stale = 50 * time.Millisecond
	source, seen, options := through(t, NewCacheDelay(map[string]View{"Secret": {Past: "7", PastFor: stale}}))
	start := time.Now()
	if got := options(); got.ResourceVersion != "7" || got.ResourceVersionMatch != metav1.ResourceVersionMatchExact {
		t.Errorf("the list was asked for with %+v, want exactly version 7", got)
	}
	source.Add(object("a", "8"))
	<-seen.ResultChan()
	if took := time.Since(start); took < stale-10*time.Millisecond {
		t.Errorf("what came later was shown after %v, want %v", took, stale)
	}
}

func TestAStoppedWatchEnds(t *testing.T) {
	source, seen, _ := through(t, NewCacheDelayForAll(View{Late: time.Hour}))
	source.Add(object("a", "1"))
	seen.Stop()
	if event, open := <-seen.ResultChan(); open {
		t.Errorf("still told %s", reported(event))
	}
	if !source.IsStopped() {
		t.Error("the source goes on")
	}
}

func TestACacheDelayKnowsWhatItWithholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := NewCacheDelay(map[string]View{"Secret": {Late: time.Hour}})
		source, seen, _ := through(t, delay)
		withholds := func(want bool, when string) {
			t.Helper()
			if synctest.Wait(); delay.Withholds() != want {
				t.Errorf("%s it withholds something: %t, want %t", when, !want, want)
			}
		}
		withholds(false, "before anything has happened")
		source.Add(object("a", "1"))
		withholds(true, "after an event")
		<-time.After(time.Hour)
		withholds(false, "when the event may be shown, though nobody looks,")
		source.Modify(object("a", "2"))
		withholds(true, "after another event")
		seen.Stop()
		withholds(false, "after the end of the watch")
	})
}

func TestWhatIsDueIsNotWithheldThoughNobodyLooks(t *testing.T) {
	now := time.Now()
	queue := []held{
		{Event: watch.Event{Type: watch.Added}, due: now},
		{Event: watch.Event{Type: watch.Bookmark}, due: now.Add(time.Second)},
		{Event: watch.Event{Type: watch.Added}, due: now.Add(2 * time.Second)},
		{Event: watch.Event{Type: watch.Modified}, due: now.Add(2 * time.Second)},
	}
	if count, earliest := notDue(queue, now); count != 2 || !earliest.Equal(now.Add(time.Second)) {
		t.Errorf("%d are withheld, the first is due at %v, want 2 and %v", count, earliest, now.Add(time.Second))
	}
	if count, earliest := notDue(queue, now.Add(2*time.Second)); count != 0 || !earliest.IsZero() {
		t.Errorf("%d are withheld, the first is due at %v, want none", count, earliest)
	}
}

func TestACacheDelayIsBlindWhileAWatchIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := NewCacheDelay(nil)
		var source *watch.FakeWatcher
		lister := delay.through(&toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.SecretList{}, nil },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				source = watch.NewFake()
				return source, nil
			},
		}, "Secret").(listFirst)
		operator, end := context.WithCancel(t.Context())
		open := func() {
			t.Helper()
			if _, err := lister.WatchWithContext(operator, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		blind := func(want bool, when string) {
			t.Helper()
			if synctest.Wait(); delay.Blind() != want {
				t.Errorf("%s it is blind: %t, want %t", when, !want, want)
			}
		}
		blind(false, "before anything is watched")
		open()
		blind(false, "while the watch is open")
		source.Stop()
		blind(true, "when the watch is broken")
		open()
		blind(false, "when it is open again")
		source.Stop()
		blind(true, "when it is broken again")
		end()
		blind(false, "when nobody watches any more")
	})
}
