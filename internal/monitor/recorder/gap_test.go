package recorder

import (
	"errors"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// noon is when the tests of gaps begin.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// gapsOf returns the gaps that are stored.
func gapsOf(t *testing.T, s *store.Store) []store.Change {
	t.Helper()
	page, err := s.Changes(t.Context(), store.Query{Types: []change.Type{change.Gap}})
	if err != nil {
		t.Fatal(err)
	}
	return page.Changes
}

// What was seen last may be stored much later. Whatever happened in between is in the gap.
func TestAGapBeginsWhenTheLastThingWasHeard(t *testing.T) {
	for name, then := range map[string]func(r *Recorder, j supervisor.Journal) error{
		"objects are listed again": func(_ *Recorder, j supervisor.Journal) error {
			return errors.Join(j.BeginList(t.Context(), supervisor.Gap{Reason: "it is forgotten"}), j.EndList(t.Context(), "9", true))
		},
		"the definition is gone": func(r *Recorder, _ supervisor.Journal) error { return r.Gone(t.Context(), widgets, time.Time{}) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			clock := testclock.NewFakeClock(noon)
			set := func(o *Options) { o.Clock = clock }
			r, s := open(ctx, t, dir, set)
			j, err := r.Open(ctx, widgets, supervisor.Schema{})
			if err != nil {
				t.Fatal(err)
			}
			lastSeen := clock.Now().Add(time.Minute)
			for _, err := range []error{
				j.BeginList(ctx, supervisor.Gap{}), j.Listed(ctx, object("a", "uid-a", 1, "x")), j.EndList(ctx, "1", true),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			clock.SetTime(lastSeen)
			if err := j.Bookmark(ctx, "5", lastSeen); err != nil {
				t.Fatal(err)
			}
			clock.Step(time.Hour) // nothing is seen, and what waits is stored at the end
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
			if gaps := gapsOf(t, s); len(gaps) != 1 || !gaps[0].Since.Equal(lastSeen) {
				t.Errorf("the gaps are %+v, and one should begin at %s", gaps, lastSeen)
			}
		})
	}
}

// A list is asked for again and again while the API server is away. What happens meanwhile is in the gap, too.
func TestAGapLastsUntilTheListIsAnswered(t *testing.T) {
	ctx := t.Context()
	clock := testclock.NewFakeClock(noon)
	r, s := open(ctx, t, t.TempDir(), func(o *Options) { o.Clock = clock })
	defer func() { _ = s.Close() }()
	j, err := r.Open(ctx, widgets, supervisor.Schema{})
	if err != nil {
		t.Fatal(err)
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(j.BeginList(ctx, supervisor.Gap{}), j.Listed(ctx, object("a", "uid-a", 1, "x")), j.EndList(ctx, "1", true))
	since := clock.Now()
	gap := supervisor.Gap{Since: since, Reason: "it is forgotten"}
	for range 3 {
		must(j.BeginList(ctx, gap))
		clock.Step(time.Minute)
	}
	must(j.Listed(ctx, object("a", "uid-a", 9, "y")), j.EndList(ctx, "9", true), r.Close(ctx))
	gaps := gapsOf(t, s)
	if len(gaps) != 1 || !gaps[0].Since.Equal(since) || !gaps[0].Time.Equal(since.Add(3*time.Minute)) {
		t.Errorf("the gaps are %+v, want one from %s for 3 minutes", gaps, since)
	}
}

// While the watch is behind, a change is seen long after it happened. After a crash the gap begins with what was not seen yet.
func TestAGapBeginsWithWhatTheWatchWasBehind(t *testing.T) {
	ctx := t.Context()
	clock := testclock.NewFakeClock(noon)
	dir, set := t.TempDir(), func(o *Options) { o.Clock = clock }
	r, s := open(ctx, t, dir, set)
	j, err := r.Open(ctx, widgets, supervisor.Schema{})
	if err != nil {
		t.Fatal(err)
	}
	reported := clock.Now()
	clock.Step(time.Minute)
	late := supervisor.Event{Type: supervisor.Modified, Object: object("a", "uid-a", 5, "y"), Reached: reported}
	err = errors.Join(
		j.BeginList(ctx, supervisor.Gap{}), j.Listed(ctx, object("a", "uid-a", 1, "x")), j.EndList(ctx, "1", true),
		j.Event(ctx, late), r.Close(ctx), s.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	r, s = open(ctx, t, dir, set)
	defer func() { _ = s.Close() }()
	if _, err := r.Known(ctx); err != nil {
		t.Fatal(err)
	}
	if j, err = r.Open(ctx, widgets, supervisor.Schema{}); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(j.BeginList(ctx, supervisor.Gap{Reason: "it is forgotten"}), j.EndList(ctx, "9", false), r.Close(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if gaps := gapsOf(t, s); len(gaps) != 1 || !gaps[0].Since.Equal(reported) {
		t.Errorf("the gaps are %+v, and one should begin at %s", gaps, reported)
	}
}
