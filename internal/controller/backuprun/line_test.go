package backuprun

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/testing/property"
)

// who is namespace/name.
func who(namespace string, n int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}
}

// served lets all come, and then each that is called take the place of one that ends. It returns the order.
func served(l *line, comes []types.NamespacedName) []string {
	var order []string
	for _, key := range comes {
		if l.enter(key, false) {
			order = append(order, key.String())
		}
	}
	for len(l.placed) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Keys(l.placed)), func(a, b types.NamespacedName) int {
			return slices.Index(order, a.String()) - slices.Index(order, b.String())
		})
		l.leave(first)
		if key, ok := l.called(); ok && l.enter(key, false) {
			order = append(order, key.String())
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
		"as many as there are":       {3, []types.NamespacedName{who("a", 1), who("a", 2), who("b", 1), who("a", 3)}, []string{"a/1", "a/2", "b/1", "a/3"}},
		"who has a place has it":     {1, []types.NamespacedName{who("a", 1), who("b", 1), who("a", 1)}, []string{"a/1", "a/1", "b/1"}},
		"a namespace that came late": {1, []types.NamespacedName{who("a", 1), who("a", 2), who("a", 3), who("a", 4), who("z", 1)}, []string{"a/1", "a/2", "z/1", "a/3", "a/4"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLine(tc.limit)
			if diff := cmp.Diff(tc.want, served(l, tc.comes)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(l.placed)+len(l.waiting)+len(l.turns) > 0 {
				t.Errorf("something is left: %+v", l)
			}
		})
	}
}

func TestWhoWorksHasAPlaceWhateverTheLimitIs(t *testing.T) {
	l := newLine(1)
	if !l.enter(who("a", 1), true) || !l.enter(who("a", 2), true) || l.enter(who("a", 3), false) {
		t.Errorf("places are %+v", l)
	}
	l.leave(who("a", 1))
	if _, ok := l.called(); ok || l.enter(who("a", 3), false) {
		t.Error("a place is given that there is not")
	}
	if !l.enter(who("a", 3), true) || len(l.waiting) != 0 || len(l.turns) != 0 {
		t.Errorf("who works waits: %+v", l)
	}
}

// Whoever comes and goes, and however often: no more than the limit have a place, no place stays free while somebody waits who
// is called, and who waits is passed by nobody of its namespace and at most once by each other namespace for each that waits
// before it.
func TestNobodyWaitsForEverAndNoPlaceIsGivenTwice(t *testing.T) {
	count, source := property.Inputs(t, 5000, 500)
	random := source(11)
	for range count {
		limit := 1 + random.IntN(4)
		l := newLine(limit)
		namespaces := []string{"a", "b", "c", "d"}[:1+random.IntN(4)]
		// passed counts how many were admitted while one waited, and bound is how many may be.
		passed, bound := map[types.NamespacedName]int{}, map[types.NamespacedName]int{}
		enter := func(key types.NamespacedName) {
			waited := slices.Contains(l.waiting[key.Namespace], key)
			had := l.placed[key]
			entered := l.enter(key, false)
			switch {
			case entered && !had:
				delete(passed, key)
				for other := range passed {
					if passed[other]++; passed[other] > bound[other] {
						t.Fatalf("%s was passed %d times, and may be %d times: %+v", other, passed[other], bound[other], l)
					}
				}
			case !entered && !waited:
				passed[key], bound[key] = 0, len(l.waiting[key.Namespace])*len(namespaces)
			}
		}
		for range 200 {
			namespace := namespaces[random.IntN(len(namespaces))]
			if random.IntN(3) > 0 {
				namespace = namespaces[0] // the one with hundreds
			}
			key := who(namespace, random.IntN(20))
			switch random.IntN(5) {
			case 0, 1:
				enter(key)
			case 2:
				l.leave(key)
				delete(passed, key)
			default:
				if called, ok := l.called(); ok {
					if enter(called); !l.placed[called] {
						t.Fatalf("%s is called, and gets no place: %+v", called, l)
					}
				} else if len(l.turns) > 0 && len(l.placed) < limit {
					t.Fatalf("a place is free, somebody waits, and nobody is called: %+v", l)
				}
			}
			if len(l.placed) > limit {
				t.Fatalf("%d have a place of %d", len(l.placed), limit)
			}
			for _, namespace := range l.turns {
				if len(l.waiting[namespace]) == 0 {
					t.Fatalf("a namespace has a turn in which nobody waits: %+v", l)
				}
			}
			if len(l.turns) != len(l.waiting) {
				t.Fatalf("a namespace that waits has no turn: %+v", l)
			}
		}
	}
}
