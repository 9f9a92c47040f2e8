package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/testing/property"
)

// served lets some wait who are written namespace/name, and serves all, each of which holds its place until holds others are served.
func served(waits []string, holds int) []string {
	line, held := Line[string]{}, map[string]int{}
	for _, each := range waits {
		line.Add(each[:1], each)
	}
	var order []string
	for line.Len() > 0 {
		namespace, _, _ := line.Next(func(namespace string) int { return held[namespace] }, nil)
		order = append(order, line.Take(namespace))
		held[namespace]++
		if ends := len(order) - 1 - holds; ends >= 0 {
			held[order[ends][:1]]--
		}
	}
	return order
}

func TestWhoIsServedNext(t *testing.T) {
	tests := map[string]struct {
		waits []string
		holds int
		want  []string
	}{
		"who came first in a namespace": {[]string{"a1", "a2", "a3"}, 0, []string{"a1", "a2", "a3"}},
		"round the namespaces":          {[]string{"a1", "a2", "a3", "b1", "b2", "c1"}, 0, []string{"a1", "b1", "c1", "a2", "b2", "a3"}},
		"who holds fewest":              {[]string{"a1", "a2", "a3", "a4", "b1", "b2"}, 2, []string{"a1", "b1", "a2", "b2", "a3", "a4"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, served(tc.waits, tc.holds)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDropTakesOneOut(t *testing.T) {
	line := Line[string]{}
	for _, each := range []string{"a1", "a2", "a3", "b1"} {
		line.Add(each[:1], each)
	}
	if !line.Drop("a", "a2") || line.Drop("a", "a2") || line.Has("a", "a2") || !line.Has("a", "a3") || line.Len() != 3 {
		t.Errorf("line is %+v", line)
	}
	if !line.Drop("b", "b1") || !slices.Equal(line.turns, []string{"a"}) {
		t.Errorf("a namespace that does not wait has a turn: %+v", line)
	}
}

// Places are held for ever, as by a dump that never ends. Whatever a namespace asks for, in whatever order they come: it holds at
// most half, and while k other namespaces ask for everything, the next one gets a place at once if there are 2^k places.
func TestAShareLeavesAPlaceForTheNext(t *testing.T) {
	for places := 1; places <= 64; places++ {
		free, namespaces := places, 0
		for ; free > 0; namespaces++ {
			held := 0
			for ; Share(held, free); held++ {
				free--
			}
			if held > (places+1)/2 {
				t.Errorf("one of %d namespaces holds %d of %d places", namespaces+1, held, places)
			}
		}
		if 1<<(namespaces-1) > places || 1<<namespaces <= places {
			t.Errorf("%d namespaces find a place of %d", namespaces, places)
		}
	}
}

// Whoever comes and goes: nobody is served while a namespace waits that holds fewer, and the first of a namespace is passed by
// another namespace at most once as long as that holds as many.
func TestNobodyIsPassedByWhoHoldsMore(t *testing.T) {
	count, source := property.Inputs(t, 2000, 200)
	random := source(21)
	for range count {
		m := &model{places: 1 + random.IntN(6), held: map[string]int{}, passed: map[string]map[string]int{}}
		for n := range 300 {
			m.step(t, random, n)
		}
	}
}

type model struct {
	line    Line[string]
	places  int
	held    map[string]int
	holders []string
	// passed is how often a namespace that waits was passed by another that held no fewer.
	passed map[string]map[string]int
}

func (m *model) step(t *testing.T, random *rand.Rand, n int) {
	t.Helper()
	namespace := string(rune('a' + random.IntN(4)))
	if random.IntN(2) > 0 {
		namespace = "a" // the one that floods
	}
	if random.IntN(3) > 0 {
		m.line.Add(namespace, fmt.Sprint(namespace, n))
		return
	}
	if len(m.holders) == m.places || m.line.Len() == 0 && len(m.holders) > 0 {
		i := random.IntN(len(m.holders))
		m.held[m.holders[i]]--
		m.holders = slices.Delete(m.holders, i, i+1)
	}
	next, item, ok := m.line.Next(func(namespace string) int { return m.held[namespace] }, nil)
	if ok != (m.line.Len() > 0) {
		t.Fatalf("%d wait, and one is next: %v", m.line.Len(), ok)
	}
	if !ok {
		return
	}
	for _, other := range m.line.turns {
		if m.held[other] < m.held[next] {
			t.Fatalf("%s is served, which holds %v, before %s: %+v", next, m.held, other, m.line)
		}
		if other == next || m.held[other] > m.held[next] {
			continue
		}
		if m.passed[other] == nil {
			m.passed[other] = map[string]int{}
		}
		if m.passed[other][next]++; m.passed[other][next] > m.places {
			t.Fatalf("%s was passed %d times by %s", other, m.passed[other][next], next)
		}
	}
	delete(m.passed, next)
	if got := m.line.Take(next); got != item {
		t.Fatalf("%s is next, and %s was taken", item, got)
	}
	m.held[next]++
	m.holders = append(m.holders, next)
}
