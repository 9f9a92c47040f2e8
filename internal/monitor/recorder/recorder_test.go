package recorder

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// playAll runs a history to its end, and returns what is wrong then.
func playAll(t *testing.T, h history, dir string, random *rand.Rand, more func(*Options)) []string {
	t.Helper()
	ctx := t.Context()
	r, s := open(ctx, t, dir, more)
	if err := h.play(ctx, r, random, func(int) {}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	problems := h.check(ctx, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return problems
}

func TestAnyHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		h := newHistory(seed, 300)
		for _, problem := range playAll(t, h, t.TempDir(), rand.New(rand.NewPCG(seed, 2)), nil) {
			t.Errorf("seed %d: %s", seed, problem)
		}
	}
}

// A recorder that forgets an event is found out: it is not told of it here.
func TestADropIsFound(t *testing.T) {
	t.Parallel()
	h := newHistory(7, 200)
	reported := h
	reported.events = slices.DeleteFunc(slices.Clone(h.events), func(e event) bool { return e.Object.ResourceVersion == "100" })
	ctx := t.Context()
	r, s := open(ctx, t, t.TempDir(), nil)
	reported.playOnce(ctx, t, r)
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if problems := h.check(ctx, s); len(problems) == 0 {
		t.Error("nothing is found")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// With a commit interval, a change after a pause is committed at once, and those that follow together. Who waits for all to be stored waits for
// no time to pass.
func TestChangesGatherBetweenCommits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHistory(8, 50)
	commits := make(chan struct{}, len(h.events)+10)
	r, s := open(ctx, t, t.TempDir(), func(o *Options) {
		o.CommitInterval = time.Hour
		o.Committed = func(time.Duration, int) { commits <- struct{}{} }
	})
	history{}.playOnce(ctx, t, r)
	j := r.journal(widgets.GroupResource())
	if err := j.pipe.drain(ctx); err != nil {
		t.Fatal(err)
	}
	for len(commits) > 0 {
		<-commits
	}
	for i, e := range h.events {
		if err := j.Event(ctx, e.Event); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-commits
		}
	}
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if len(commits) != 1 {
		t.Errorf("%d events after the first one took %d commits", len(h.events)-1, len(commits))
	}
	if problems := h.check(ctx, s); len(problems) > 0 {
		t.Error(problems)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A reader gets what is stored, and one that is slow is told how much it missed.
func TestLive(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, s := open(ctx, t, t.TempDir(), nil)
	defer func() { _ = s.Close() }()
	all, slow := r.Subscribe(1000, nil), r.Subscribe(3, nil)
	h := newHistory(3, 50)
	if err := h.play(ctx, r, rand.New(rand.NewPCG(1, 100)), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	got, missed, err := all.Next(ctx)
	if err != nil || missed != 0 || len(got) == 0 {
		t.Fatalf("%d updates, %d missed, %v", len(got), missed, err)
	}
	few, lost, err := slow.Next(ctx)
	if err != nil || len(few) != 3 || int(lost)+3 != len(got) {
		t.Errorf("a slow reader got %d, missed %d (%v), and there were %d", len(few), lost, err, len(got))
	}
	if _, _, err := slow.Next(ctx); err == nil {
		t.Error("a reader of a recorder that has ended waits")
	}
}

// All objects go with their definition.
func TestGone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, s := open(ctx, t, t.TempDir(), nil)
	h := newHistory(4, 40)
	if err := h.play(ctx, r, rand.New(rand.NewPCG(1, 5)), func(int) {}); err != nil {
		t.Fatal(err)
	}
	lives := len(h.at(40))
	if err := r.Gone(ctx, widgets, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if kinds, err := s.Kinds(ctx); err != nil || len(kinds) != 0 {
		t.Errorf("%v are stored (%v)", kinds, err)
	}
	if healths, err := Healths(ctx, s, widgets.GroupResource()); err != nil || len(healths) != 0 {
		t.Errorf("%d verdicts are stored (%v)", len(healths), err)
	}
	page, err := s.Changes(ctx, store.Query{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	with := 0
	for _, c := range page.Changes {
		if c.WithDefinition {
			with++
		}
	}
	if with != lives {
		t.Errorf("%d objects went with the definition, and there were %d", with, lives)
	}
	if err := r.Close(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
}
