package list

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/feature"
)

// Whoever forgets to say how a setting relates to that of another rule refuses too much, and lets nobody around it.
func TestOneOfWhichNobodySaysHowItRelatesIsTheStrictest(t *testing.T) {
	e := at(&feature.Setting[int64, int64]{}, func(s *Settings) *int64 { return &s.MaxBodyBytes }, func(c *Compiled) *int64 { return &c.MaxBodyBytes })
	if !e.Protects() || !e.Matters() || e.Covers("x", "") || e.Covers("", "x") || e.Covers("x", "y") || !e.Covers("x", "x") {
		t.Error("it lets something through")
	}
}
