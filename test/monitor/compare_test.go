//go:build monitororacle

package monitor

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// slack is by how much the clocks of a write and of a gap may differ.
const slack = 2 * time.Second

// story is what the store says of one object.
type story struct {
	versions map[int]bool
	first    change.Type
	lowest   int
	deleted  bool
}

// result is what is wrong.
type result struct {
	States, Deletes, Duplicates, Order, Revisions int
	// InGaps are revisions that are missing inside of a gap, and Gaps how many gaps there are.
	InGaps, Gaps, Records int
	// Returned are objects that outlived their definition: they were gone with it, and came back with the next one.
	Returned int
	Examples []string
}

func (r *result) wrong() bool { return r.States+r.Deletes+r.Duplicates+r.Order+r.Revisions > 0 }

func (r *result) fault(count *int, format string, args ...any) {
	*count++
	if len(r.Examples) < 20 {
		r.Examples = append(r.Examples, fmt.Sprintf(format, args...))
	}
}

type gapSpan struct{ since, until time.Time }

// compare opens the store and compares it with the truth.
func (g *generator) compare(ctx context.Context, folder string) (result, error) {
	r := result{}
	s, err := store.Open(ctx, store.Options{Dir: filepath.Join(folder, "history")})
	if err != nil {
		return r, err
	}
	defer func() { _ = s.Close() }()
	stories, gaps, begun := map[types.UID]*story{}, map[string][]gapSpan{}, map[types.UID]time.Time{}
	for cursor := ""; ; {
		page, err := s.Changes(ctx, store.Query{Group: g.group, OldestFirst: true, Limit: 1000, Cursor: cursor})
		if err != nil {
			return r, err
		}
		for i := range page.Changes {
			g.read(&r, &page.Changes[i].Record, stories, gaps, begun)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for uid, one := range g.truths {
		g.judge(&r, uid, one, stories[uid], gaps[one.resource], begun[one.definition])
	}
	return r, g.states(ctx, s, &r)
}

func (g *generator) read(r *result, c *change.Record, stories map[types.UID]*story, gaps map[string][]gapSpan, begun map[types.UID]time.Time) {
	r.Records++
	if c.Type == change.Gap {
		r.Gaps++
		gaps[c.Kind.Resource] = append(gaps[c.Kind.Resource], gapSpan{c.Since, c.Time})
		return
	}
	if begun[c.Kind.Definition].IsZero() {
		begun[c.Kind.Definition] = c.Time
	}
	one := stories[c.UID]
	if one == nil {
		one = &story{versions: map[int]bool{}, first: c.Type}
		stories[c.UID] = one
	}
	if one.deleted && c.Type == change.Baseline && g.outlived(c.UID, c.Kind.Definition) {
		r.Returned++
		*one = story{versions: map[int]bool{}, first: c.Type}
	}
	if one.deleted {
		r.fault(&r.Order, "%s %s has a record (%s) after it was deleted", c.Kind.Resource, c.Name, c.Type)
	}
	one.deleted = one.deleted || c.Type == change.Deleted
	if c.ResourceVersion == "" || c.SchemaDriven {
		return
	}
	number, _ := strconv.Atoi(c.ResourceVersion)
	if one.versions[number] {
		r.fault(&r.Duplicates, "%s %s is twice at %d", c.Kind.Resource, c.Name, number)
	}
	for known := range one.versions {
		if known > number {
			r.fault(&r.Order, "%s %s is at %d after %d", c.Kind.Resource, c.Name, number, known)
		}
	}
	if len(one.versions) == 0 {
		one.lowest = number
	}
	one.versions[number] = true
}

// outlived reports whether an object is older than a definition that serves it. It was written while the definition before was being
// deleted: the API server leaves it in etcd then, without a kind, and the next definition of the name brings it back.
func (g *generator) outlived(uid types.UID, definition types.UID) bool {
	one, made := g.truths[uid], g.made[definition]
	return one != nil && !made.IsZero() && one.created.Before(made)
}

// judge compares one object. What was before a kind was first listed nobody can know.
func (g *generator) judge(r *result, uid types.UID, one *truth, reported *story, gaps []gapSpan, begun time.Time) {
	inGap := func(at time.Time) bool {
		for _, gap := range gaps {
			if !at.Before(gap.since.Add(-slack)) && !at.After(gap.until.Add(slack)) {
				return true
			}
		}
		return false
	}
	if reported == nil {
		born := one.revisions[0].at
		never := begun.IsZero() || !one.gone.IsZero() && one.gone.Before(begun.Add(slack))
		if !never && (!inGap(born) || one.gone.IsZero()) {
			r.fault(&r.States, "%s %s (%s) is not known", one.resource, one.name, uid)
		}
		return
	}
	if !one.gone.IsZero() && !reported.deleted {
		r.fault(&r.Deletes, "the deletion of %s %s (%s) is missing", one.resource, one.name, uid)
	}
	for _, revision := range one.revisions {
		switch {
		case reported.versions[revision.version], reported.first == change.Baseline && revision.version < reported.lowest:
		case inGap(revision.at):
			r.InGaps++
		default:
			r.fault(&r.Revisions, "%s %s (%s) at %d is missing, and in no gap", one.resource, one.name, uid, revision.version)
		}
	}
}

// states compares the last states of all objects that are there.
func (g *generator) states(ctx context.Context, s *store.Store, r *result) error {
	left := map[types.UID]int{}
	kinds, err := s.Kinds(ctx)
	if err != nil {
		return err
	}
	for uid, one := range g.truths {
		if one.gone.IsZero() {
			left[uid] = one.revisions[len(one.revisions)-1].version
		}
	}
	for i := range kinds {
		if kinds[i].Group != g.group {
			continue
		}
		for state, err := range s.StatesOf(ctx, kinds[i].GroupResource()) {
			if err != nil {
				return err
			}
			want, found := left[state.UID]
			if !found || strconv.Itoa(want) != state.ResourceVersion {
				r.fault(&r.States, "%s %s is stored at %s, and is at %d", kinds[i].Resource, state.Name, state.ResourceVersion, want)
			}
			delete(left, state.UID)
		}
	}
	for uid := range left {
		r.fault(&r.States, "%s %s has no state", g.truths[uid].resource, g.truths[uid].name)
	}
	return nil
}
