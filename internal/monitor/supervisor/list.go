package supervisor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// list tells the journal of all objects. The place is then that of the list.
func (f *follower) list(ctx context.Context, journal Journal, at *place) error {
	leave, err := f.gate.enter(ctx, f.slow)
	if err != nil {
		return err
	}
	defer leave()
	if !f.status.is(Refused) && !f.status.is(Failing) {
		f.status.set(Listing, at.gap.Reason)
	}
	f.status.count(func(c *Counts) {
		c.Lists++
		if at.gap.Reason != "" {
			c.Gaps++
		}
	})
	if err := taken("begin a list", journal.BeginList(ctx, at.gap)); err != nil {
		return err
	}
	begin := f.clock.Now()
	l := lister{follower: f, journal: journal, leave: leave}
	resourceVersion, err := l.pages(ctx, at.resourceVersion)
	if err != nil {
		return err
	}
	if l.unknown > 0 {
		if err := f.lost(ctx, journal, errUnknown.Error()); err != nil {
			return err
		}
	}
	if err := taken("end a list", journal.EndList(ctx, resourceVersion, l.unknown == 0)); err != nil {
		return err
	}
	*at = place{resourceVersion: resourceVersion, blank: at.gap.Reason == "" && l.objects == 0}
	f.reached, f.pending = begin, Gap{}
	f.slow, f.limit = l.late.Load(), f.pageSize
	f.status.reached(resourceVersion, func(*Counts) {})
	return nil
}

// lost tells the journal of a gap that nothing closes.
func (f *follower) lost(ctx context.Context, journal Journal, reason string) error {
	f.status.count(func(c *Counts) { c.Gaps++ })
	return taken("note a gap", journal.Lost(ctx, Gap{Since: f.reached, Reason: reason}))
}

// lister is one list.
type lister struct {
	*follower

	journal Journal
	// leave gives the place in the gate back.
	leave func()
	// late reports whether a page has not come in time.
	late atomic.Bool
	// objects counts those that were listed, and unknown those of them that cannot be told.
	objects, unknown int
}

// pages reads all pages and returns the resource version of the list. before is that of what was known.
func (l *lister) pages(ctx context.Context, before string) (string, error) {
	first, err := l.page(ctx, "")
	if err != nil {
		return "", err
	}
	if order, err := resourceversion.CompareResourceVersion(first.ResourceVersion, before); err == nil && order < 0 {
		reason := "the API server is at an older state than before: it was perhaps restored from a backup"
		if err := l.lost(ctx, l.journal, reason); err != nil {
			return "", err
		}
	}
	for at := first; at.Continue != ""; {
		next, err := l.page(ctx, at.Continue)
		switch {
		case err != nil:
			return "", err
		case next.ResourceVersion != first.ResourceVersion:
			return "", garbage("the pages of a list are of different moments")
		case next.Continue == at.Continue:
			return "", garbage("a page of a list goes on with itself")
		}
		at = next
	}
	return first.ResourceVersion, nil
}

// page reads one page.
func (l *lister) page(ctx context.Context, from string) (listEnd, error) {
	request, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &guard{
		clock: l.clock, cancel: cancel, idle: l.timing.answer, total: 2 * l.timing.answer, status: l.status,
		lateAfter: l.timing.late, late: func() {
			l.late.Store(true)
			l.leave() // it may wait, but not in the way of others
			if !l.mail.isLeaving() {
				l.status.set(Failing, "the API server does not answer the list of its objects")
			}
		},
	}
	err := g.open(request, func() (io.ReadCloser, error) { return l.client.list(request, l.kind, l.limit, from) })
	if err != nil {
		return listEnd{}, err
	}
	defer func() { _ = g.body.Close() }()
	end, err := readPage(g, l.maxObject, func(raw []byte, cut bool) error { return l.give(ctx, raw, cut) })
	return end, causeOf(request, err)
}

// give tells the journal of one object.
func (l *lister) give(ctx context.Context, raw []byte, cut bool) error {
	l.objects++
	if cut {
		l.status.count(func(c *Counts) { c.Oversized++ })
	} else {
		raw = bytes.Clone(raw)
	}
	object, err := readObject(l.kind, raw, cut)
	if errors.Is(err, errUnknown) {
		l.unknown++
		return nil
	}
	if err != nil {
		return err
	}
	if err := taken("take an object of a list", l.journal.Listed(ctx, object)); err != nil {
		return err
	}
	l.status.count(func(c *Counts) { c.Listed++ })
	return nil
}
