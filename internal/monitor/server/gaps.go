package server

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

const (
	maxBuckets = 500
	// maxCounted is how many changes are counted one by one.
	maxCounted = 20_000
	countedAt  = 1000
)

// gaps answers with times in which changes may have been missed. A gap belongs to a kind: who may list the kind in the namespace
// that is asked for sees it.
func (s *server) gaps(r *request) (any, *api.View, error) {
	f, err := s.readFilter(r)
	if err != nil {
		return nil, nil, err
	}
	visible := map[schema.GroupResource]bool{}
	for _, name := range f.kinds {
		visible[name] = true
	}
	if f.Resource != "" {
		visible[f.kindAsked()] = true
	}
	f.Types = []change.Type{change.Gap}
	namespace := f.Namespace
	f.Namespace = ""
	// A gap belongs to no object, so it is not of one namespace or another.
	f.Allow = func(kind schema.GroupResource, _ string) store.Share {
		return store.Share{All: visible[kind] && r.maySee(kind, namespace)}
	}
	page, err := s.page(r, f)
	if err != nil {
		return nil, nil, err
	}
	answer := &api.Gaps{View: page.View, Gaps: []api.Gap{}, Losses: []api.Loss{}, Next: page.Next, Incomplete: page.Incomplete}
	for i := range page.Changes {
		one := &page.Changes[i]
		answer.Gaps = append(answer.Gaps,
			api.Gap{Kind: one.Kind.GroupResource().String(), Since: one.Since, Until: one.Time, Reason: one.Reason})
	}
	losses, err := s.options.Store.Losses(r.Context())
	if err != nil {
		return nil, nil, err
	}
	// How many changes were lost is left out: they were of all kinds.
	for _, loss := range losses {
		answer.Losses = append(answer.Losses, api.Loss{Found: loss.Time, Cause: string(loss.Cause), Since: loss.Since, Until: loss.Until})
	}
	return answer, &answer.View, nil
}

func (f *filter) kindAsked() schema.GroupResource {
	return schema.GroupResource{Group: f.Group, Resource: f.Resource}
}

// rate answers with how many changes there were in spans of time, of what the user may see.
func (s *server) rate(r *request) (any, *api.View, error) {
	f, err := s.readFilter(r)
	if err != nil {
		return nil, nil, err
	}
	buckets, err := r.params.number(paramBuckets, 60, maxBuckets)
	if err != nil {
		return nil, nil, err
	}
	now := s.options.Clock.Now()
	if f.Since.IsZero() {
		f.Since = now.Add(-time.Hour)
	}
	if !f.Since.Before(now) || now.Sub(f.Since) > 366*24*time.Hour {
		return nil, nil, failure.New(failure.BadRequest, "since is in the past, and a year ago at most")
	}
	answer := &api.Rate{View: s.viewOf(r.kinds, f.kinds...)}
	if f.Namespace == "" && f.Resource == "" && r.seesAll() {
		if err := rateOfAll(r.Context(), s.options.Store, answer, f.Since, buckets); err != nil {
			return nil, nil, err
		}
		return answer, &answer.View, nil
	}
	span := max(now.Sub(f.Since)/time.Duration(buckets), time.Second)
	answer.Width = int64((span + time.Second - 1) / time.Second)
	for i := range buckets {
		answer.Buckets = append(answer.Buckets, api.Bucket{Start: f.Since.Add(time.Duration(int64(i)*answer.Width) * time.Second).UTC()})
	}
	return answer, &answer.View, count(r.Context(), s.options.Store, f, answer)
}

// seesAll reports whether the user may list every kind of which the history may have changes. Only then the counts of all changes
// are shown. A kind that is gone is in the history and not among those that are known, so a right to all kinds is needed.
func (r *request) seesAll() bool {
	return r.rights.Everywhere(schema.GroupResource{Group: "*", Resource: "*"}) &&
		!slices.ContainsFunc(r.kinds.names(), func(name schema.GroupResource) bool { return !r.rights.Everywhere(name) })
}

func rateOfAll(ctx context.Context, from Store, answer *api.Rate, since time.Time, buckets int) error {
	counted, err := from.Rate(ctx, since, buckets)
	if err != nil {
		return err
	}
	for _, bucket := range counted {
		answer.Buckets = append(answer.Buckets, api.Bucket{Start: bucket.Start, Changes: bucket.Changes})
	}
	answer.Width = 60
	if len(counted) > 1 {
		answer.Width = int64(counted[1].Start.Sub(counted[0].Start) / time.Second)
	}
	return nil
}

// count counts changes one by one, the newest first.
func count(ctx context.Context, from Store, f *filter, answer *api.Rate) error {
	q := f.Query
	q.Limit, q.OldestFirst, q.Cursor = countedAt, false, ""
	for n := 0; n < maxCounted; {
		page, err := from.Changes(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Changes {
			countIn(answer, &page.Changes[i])
		}
		n += len(page.Changes)
		if page.Next == "" {
			return nil
		}
		q.Cursor = page.Next
	}
	answer.Incomplete = true
	return nil
}

func countIn(answer *api.Rate, c *store.Change) {
	n := int64(c.Time.Sub(answer.Buckets[0].Start)/time.Second) / answer.Width
	if n >= 0 && n < int64(len(answer.Buckets)) {
		answer.Buckets[n].Changes++
	}
}
