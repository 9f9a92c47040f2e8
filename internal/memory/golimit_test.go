package memory

import "testing"

func TestGoLeavesRoomForWhatItDoesNotCount(t *testing.T) {
	if got := GoLimit(100000000); got != 90000000 {
		t.Errorf("got %d, want 90000000", got)
	}
}
