package guard

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/web/signin"
)

func TestOneUserTakesAShareOfTheRoom(t *testing.T) {
	l := NewLimits(&Options{Rate: 100, Burst: 100, Parallel: 8, Streams: 10, Clock: testingclock.NewFakeClock(time.Now())})
	now := time.Now()
	one, other := signin.UserID{1}, signin.UserID{2}
	leave, err := l.Enter(one, false, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Enter(one, false, now); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Enter(one, false, now); err == nil {
		t.Error("a user gets more than a fourth")
	}
	if _, err := l.Enter(other, false, now); err != nil {
		t.Error(err)
	}
	if _, err := l.Enter(one, true, now); err != nil {
		t.Error("a stream is counted among the answers")
	}
	leave()
	if _, err := l.Enter(one, false, now); err != nil {
		t.Error(err)
	}
}
