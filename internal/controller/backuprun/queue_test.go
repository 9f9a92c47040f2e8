package backuprun

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/testing/property"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// who is namespace/name.
func who(namespace string, n int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}
}

// served lets all come, and then each that is called take the place of the one that has it for the longest. It returns the order.
func served(l *queue, comes []types.NamespacedName) []string {
	var order []string
	var placed []types.NamespacedName
	enter := func(key types.NamespacedName) {
		if l.enter(key, false, noon) && !slices.Contains(placed, key) {
			order, placed = append(order, key.String()), append(placed, key)
		}
	}
	// No place beyond the limit, to see the order alone.
	l.beyond = noon
	for _, key := range comes {
		enter(key)
	}
	for len(placed) > 0 {
		l.leave(placed[0])
		placed = placed[1:]
		for key, after, ok := l.next(noon); ok && after == 0; key, after, ok = l.next(noon) {
			enter(key)
		}
	}
	return order
}

func TestPlacesGoRoundTheNamespaces(t *testing.T) {
	tests := map[string]struct {
		limit int
		comes []types.NamespacedName
		want  []string
	}{
		"who came first":             {1, []types.NamespacedName{who("a", 1), who("a", 2), who("a", 3)}, []string{"a/1", "a/2", "a/3"}},
		"one namespace after other":  {1, []types.NamespacedName{who("a", 1), who("a", 2), who("a", 3), who("b", 1), who("c", 1), who("b", 2)}, []string{"a/1", "a/2", "b/1", "c/1", "a/3", "b/2"}},
		"each may come twice":        {1, []types.NamespacedName{who("a", 1), who("a", 2), who("a", 2), who("b", 1), who("a", 2)}, []string{"a/1", "a/2", "b/1"}},
		"half of the places":         {4, []types.NamespacedName{who("a", 1), who("a", 2), who("a", 3), who("b", 1), who("c", 1)}, []string{"a/1", "a/2", "b/1", "c/1", "a/3"}},
		"who has none comes first":   {4, []types.NamespacedName{who("a", 1), who("a", 2), who("a", 3), who("b", 1), who("b", 2), who("c", 1), who("d", 1)}, []string{"a/1", "a/2", "b/1", "c/1", "d/1", "a/3", "b/2"}},
		"a namespace that came late": {1, []types.NamespacedName{who("a", 1), who("a", 2), who("a", 3), who("a", 4), who("z", 1)}, []string{"a/1", "a/2", "z/1", "a/3", "a/4"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newQueue(tc.limit)
			if diff := cmp.Diff(tc.want, served(l, tc.comes)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(l.placed)+len(l.held)+l.waiting.Len() > 0 {
				t.Errorf("something is left: %+v", l)
			}
		})
	}
}

func TestWhoWorksHasAPlaceWhateverTheLimitIs(t *testing.T) {
	l := newQueue(1)
	if !l.enter(who("a", 1), true, noon) || !l.enter(who("a", 2), true, noon) || l.enter(who("a", 3), false, noon) {
		t.Errorf("places are %+v", l)
	}
	l.leave(who("a", 1))
	if l.enter(who("a", 3), false, noon) {
		t.Error("a place is given that there is not")
	}
	if !l.enter(who("a", 3), true, noon) || l.waiting.Len() != 0 {
		t.Errorf("who works waits: %+v", l)
	}
}

// Twelve runs of one namespace, or of four, have dumps that never end. Nobody ever gives up a place.
func TestRunsThatNeverEndKeepNobodyWaiting(t *testing.T) {
	tests := map[string]struct{ hogs, limit int }{
		"one namespace": {1, 10}, "three": {3, 10}, "four": {4, 10}, "thirty": {30, 10}, "one place": {1, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l, now := newQueue(tc.limit), noon
			// The clock of the longest attack: a day.
			for ; now.Before(noon.Add(24 * time.Hour)); now = now.Add(firstEvery) {
				for n := range tc.hogs {
					for run := range 12 {
						l.enter(who(fmt.Sprint("hog", n), run), false, now)
					}
				}
			}
			if most := max(tc.limit, tc.hogs) + tc.limit; len(l.placed) > most {
				t.Errorf("%d runs have a place, want at most %d", len(l.placed), most)
			}
			for n := 1; n <= 3; n++ {
				came := now
				for key := who(fmt.Sprint("other", n), 1); !l.enter(key, false, now); {
					next, after, _ := l.next(now)
					if next != key || after <= 0 {
						t.Fatalf("%s waits, and after %v comes %s", key, after, next)
					}
					now = now.Add(after)
				}
				if waited := now.Sub(came); waited > firstEvery || tc.hogs*3 < tc.limit && n == 1 && waited > 0 {
					t.Errorf("other namespace %d begins after %v", n, waited)
				}
			}
		})
	}
}

// Whoever comes, goes, works already or never ends: a namespace has more than one place only of those that there are, and takes
// them only while more are free; none stays free that somebody may take who is told; nobody who has none waits for longer than a
// minute for each namespace that there is. The clock of the test moves by up to 30 s, so each of them may come so much later.
func TestNobodyWaitsForLongerThanTheBound(t *testing.T) {
	const namespaces, step = 5, 30 * time.Second
	count, source := property.Inputs(t, 2000, 200)
	random := source(11)
	for range count {
		l, now := newQueue(1+random.IntN(6)), noon
		since := map[string]time.Time{} // when a namespace without a place began to wait
		ask := func(key types.NamespacedName) {
			held, free := l.held[key.Namespace], l.limit-len(l.placed)
			had := l.placed[key]
			entered := l.enter(key, false, now)
			if entered && !had && held > 0 && free <= held {
				t.Fatalf("a namespace takes its place %d, and %d are free", held+1, free)
			}
			if _, waits := since[key.Namespace]; !entered && held == 0 && !waits {
				since[key.Namespace] = now
			}
		}
		for range 200 {
			namespace := string(rune('a' + random.IntN(namespaces)))
			if random.IntN(2) > 0 {
				namespace = "a" // the one with hundreds
			}
			switch key := who(namespace, random.IntN(20)); random.IntN(8) {
			case 0:
				l.leave(key)
			case 1:
				now = now.Add(time.Duration(random.Int64N(int64(step))))
			default:
				ask(key)
			}
			// Who is told asks, and so does who has waited for as long as it was told.
			for key, after, ok := l.next(now); ok && after == 0; key, after, ok = l.next(now) {
				if ask(key); !l.placed[key] {
					t.Fatalf("%s is told, and gets no place: %+v", key, l)
				}
			}
			for each, began := range since {
				if l.held[each] > 0 || !waits(l, each) {
					delete(since, each)
				} else if waited := now.Sub(began); waited > (firstEvery+step)*namespaces {
					t.Fatalf("%s waits for %v: %+v", each, waited, l)
				}
			}
		}
	}
}

// waits reports whether a run of a namespace waits.
func waits(l *queue, namespace string) bool {
	for n := range 20 {
		if l.waiting.Has(namespace, who(namespace, n)) {
			return true
		}
	}
	return false
}
