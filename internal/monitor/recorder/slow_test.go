//go:build monitortest

package recorder

import (
	"testing"
	"time"
)

// A change is durable soon, and many are at a time.
func TestThroughput(t *testing.T) {
	ctx := t.Context()
	r, s := open(ctx, t, t.TempDir(), nil)
	h := newHistory(11, 4000)
	begin := time.Now()
	h.playOnce(ctx, t, r)
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	t.Logf("%d changes in %s: %.0f/s", len(h.events), took, float64(len(h.events))/took.Seconds())
	if got := s.Stats().Changes; got < int64(len(h.events)) {
		t.Errorf("%d changes are stored, and there were %d", got, len(h.events))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
