package recorder

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// gapsOf returns the gaps that are stored.
func gapsOf(t *testing.T, s *store.Store) []store.Change {
	t.Helper()
	page, err := s.Changes(t.Context(), store.Query{Types: []change.Type{change.Gap}})
	if err != nil {
		t.Fatal(err)
	}
	return page.Changes
}

// What was heard last may be stored much later. Whatever happened in between is in the gap.
func TestAGapBeginsWhenTheLastThingWasHeard(t *testing.T) {
	for name, then := range map[string]func(r *Recorder, j supervisor.Journal) error{
		"objects are listed again": func(_ *Recorder, j supervisor.Journal) error {
			return j.BeginList(t.Context(), supervisor.Gap{Reason: "it is forgotten"})
		},
		"the definition is gone": func(r *Recorder, _ supervisor.Journal) error { return r.Gone(t.Context(), widgets, time.Time{}) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			clock := testclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
			set := func(o *Options) { o.Clock = clock }
			r, s := open(ctx, t, dir, set)
			j, err := r.Open(ctx, widgets, supervisor.Schema{})
			if err != nil {
				t.Fatal(err)
			}
			heard := clock.Now().Add(time.Minute)
			for _, err := range []error{
				j.BeginList(ctx, supervisor.Gap{}), j.Listed(ctx, object("a", "uid-a", 1, "x")), j.EndList(ctx, "1", true),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			clock.SetTime(heard)
			if err := j.Bookmark(ctx, "5"); err != nil {
				t.Fatal(err)
			}
			clock.Step(time.Hour) // nothing is heard, and what waits is stored at the end
			if err := r.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			r, s = open(ctx, t, dir, set)
			defer func() { _ = s.Close() }()
			if _, err := r.Known(ctx); err != nil {
				t.Fatal(err)
			}
			if name != "the definition is gone" {
				if j, err = r.Open(ctx, widgets, supervisor.Schema{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := then(r, j); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if gaps := gapsOf(t, s); len(gaps) != 1 || !gaps[0].Since.Equal(heard) {
				t.Errorf("the gaps are %+v, and one should begin at %s", gaps, heard)
			}
		})
	}
}
