package supervisor

import (
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// tardyClock runs what is to be done later when the test says so, also when it was stopped: as a timer that has just expired does.
type tardyClock struct {
	clock.RealClock

	due []func()
}

func (c *tardyClock) AfterFunc(_ time.Duration, do func()) clock.Timer {
	c.due = append(c.due, do)
	return c.NewTimer(time.Hour)
}

// A timer may expire just as the answer comes. Then the answer counts: a kind that is live would be Failing until its watch ends.
func TestNothingIsLateOnceTheAnswerHasCome(t *testing.T) {
	for name, during := range map[string]bool{"while it waits": true, "when the answer has come": false} {
		t.Run(name, func(t *testing.T) {
			c := &tardyClock{}
			late, cancelled := false, false
			g := &guard{
				clock: c, cancel: func(error) { cancelled = true }, idle: time.Second,
				late: func() { late = true }, lateAfter: time.Second,
			}
			expire := func() {
				for _, do := range c.due {
					do()
				}
			}
			err := g.watched(func() error {
				if during {
					expire()
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !during {
				expire()
			}
			if late != during || cancelled != during {
				t.Errorf("late: %v, cancelled: %v, want %v", late, cancelled, during)
			}
		})
	}
}
