package exchange

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWatchCutsTheCallThatTakesTooLongAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cuts atomic.Int64
		w := &watch{timeout: time.Second, cut: func() { cuts.Add(1) }}
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		for _, step := range []struct {
			what  string
			takes time.Duration
			cuts  int64
		}{{"in time", 900 * time.Millisecond, 0}, {"in time again", 900 * time.Millisecond, 0}, {"late", 1100 * time.Millisecond, 1}, {"in time after that", 900 * time.Millisecond, 1}} {
			w.begin()
			pass(step.takes)
			w.end()
			want(t, step.what, cuts.Load(), step.cuts)
		}
		pass(time.Hour)
		want(t, "between calls", cuts.Load(), int64(1))
		w.begin()
		w.lift()
		pass(time.Hour)
		w.end()
		want(t, "without a bound", cuts.Load(), int64(1))

		// The timer fires just when the call returns.
		w = &watch{timeout: time.Second, cut: func() { cuts.Add(1) }}
		w.begin()
		w.mu.Lock()
		<-time.After(time.Second)
		w.stop()
		w.mu.Unlock()
		w.begin()
		synctest.Wait()
		want(t, "of the next call", cuts.Load(), int64(1))
		pass(2 * time.Second)
		want(t, "of the next call, when it is late", cuts.Load(), int64(2))
		w.end()
	})
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
