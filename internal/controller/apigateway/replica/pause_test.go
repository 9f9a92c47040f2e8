package replica

import (
	"testing"
	"time"
)

func TestAPodThatAnswersAllTheTimeIsAskedLessOften(t *testing.T) {
	pause := pauseMin
	for _, step := range []struct {
		name          string
		answeredAfter time.Duration
		want          time.Duration
	}{
		{"at once", 0, 40 * time.Millisecond},
		{"sooner than the pause was", 39 * time.Millisecond, 80 * time.Millisecond},
		{"at once again", 0, 160 * time.Millisecond},
		{"and again", 0, 320 * time.Millisecond},
		{"and again", 0, 640 * time.Millisecond},
		{"no more than a second", 0, time.Second},
		{"still", 0, time.Second},
		{"held back", 3 * time.Second, pauseMin},
		{"held back for as long as the pause", pauseMin, pauseMin},
	} {
		if pause = nextPause(pause, step.answeredAfter); pause != step.want {
			t.Errorf("%s: %v, want %v", step.name, pause, step.want)
		}
	}
}
