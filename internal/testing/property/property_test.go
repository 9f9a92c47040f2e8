package property

import "testing"

func TestInputs(t *testing.T) {
	share, random := inputs(t, "a tree", false, 1000, 10)
	whole, again := inputs(t, "a tree", true, 1000, 10)
	_, other := inputs(t, "another tree", false, 1000, 10)
	if share != 10 || whole != 1000 {
		t.Errorf("a share is %d and the whole %d, want 10 and 1000", share, whole)
	}
	first := random(1).Uint64()
	if got := again(1).Uint64(); got != first {
		t.Errorf("the same seed and stream give %d and %d", first, got)
	}
	if got := random(2).Uint64(); got == first {
		t.Errorf("two streams of a seed both give %d", got)
	}
	if got := other(1).Uint64(); got == first {
		t.Errorf("two seeds both give %d", got)
	}
}
