package alarm

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// TestKindsAreAskedForSeldom: many rules ask which kinds are known. The store is asked once in a while, and while it cannot be read, the
// answer is what was known.
func TestKindsAreAskedForSeldom(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := store.Open(ctx, store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	a, err := New(ctx, Options{Store: s, Clock: clock, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	know := func(kind change.Kind) {
		t.Helper()
		if err := s.Commit(ctx, store.Batch{Kind: kind, Checkpoint: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	asked := []slipwayv1alpha1.MonitoredKind{
		{Group: widgets.Group, Kind: widgets.Kind}, {Group: widgets.Group, Kind: "Gadget"}, {Group: "*", Kind: "Any"}, {Group: "example.com", Kind: "None"},
	}
	expect := func(when string, fails bool, want ...string) {
		t.Helper()
		unknown, err := a.UnknownKinds(ctx, asked)
		if !slices.Equal(unknown, want) || (err != nil) != fails {
			t.Errorf("%s: %q (%v), want %q", when, unknown, err, want)
		}
	}
	gadgets := widgets
	gadgets.Kind, gadgets.Resource = "Gadget", "gadgets"
	know(widgets)
	expect("at first", false, "Gadget.example.com", "None.example.com")
	know(gadgets)
	expect("at once", false, "Gadget.example.com", "None.example.com")
	clock.Step(kindsAge)
	expect("later", false, "None.example.com")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	expect("at once, with a store that cannot be read", false, "None.example.com")
	clock.Step(kindsAge)
	expect("later, with a store that cannot be read", true, "None.example.com")
}
