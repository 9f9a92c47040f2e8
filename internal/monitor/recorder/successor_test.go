package recorder

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// The API server answers for a kind with objects of the next definition of that name before anybody knows that there is one.
func TestObjectsOfTheNextDefinitionDoNotGoWithTheOneBefore(t *testing.T) {
	ctx := t.Context()
	r, s := open(ctx, t, t.TempDir(), nil)
	defer func() { _ = s.Close() }()
	made := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	next := widgets
	next.Definition = "11111111-0000-0000-0000-000000000002"
	old, other := madeAt(object("old", "uid-old", 2, "x"), made.Add(-time.Second)), madeAt(object("other", "uid-other", 3, "x"), made)

	j, err := r.Open(ctx, widgets, supervisor.Schema{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		j.BeginList(ctx, supervisor.Gap{}), j.EndList(ctx, "1", true),
		j.Event(ctx, supervisor.Event{Type: supervisor.Added, Object: old}),
		j.Event(ctx, supervisor.Event{Type: supervisor.Added, Object: other}),
		r.Gone(ctx, widgets, made),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if j, err = r.Open(ctx, next, supervisor.Schema{Made: made}); err != nil {
		t.Fatal(err)
	}
	if j.Resume() != "" {
		t.Errorf("it goes on at %s, and the objects were not listed", j.Resume())
	}
	for _, err := range []error{
		j.BeginList(ctx, supervisor.Gap{}), j.Listed(ctx, other), j.EndList(ctx, "4", true), r.Close(ctx),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.Changes(ctx, store.Query{OldestFirst: true, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range page.Changes {
		if c.Type != change.Gap {
			got = append(got, fmt.Sprintf("%s %s", c.Name, c.Type))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"old Created", "old Deleted", "other Created"}, got); diff != "" {
		t.Errorf("what is recorded (-want +got):\n%s", diff)
	}
}

// madeAt returns an object that was made then.
func madeAt(o supervisor.Object, then time.Time) supervisor.Object {
	o.Raw = bytes.Replace(o.Raw, []byte(`"metadata":{`), fmt.Appendf(nil, `"metadata":{"creationTimestamp":%q,`, then.Format(time.RFC3339)), 1)
	return o
}
