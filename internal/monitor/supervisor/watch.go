package supervisor

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/text"
)

// errShort is a watch that ended at once, with nothing.
var errShort = errors.New("the API server ended the watch at once")

// shortWatch is how long a watch must live to count as one.
const shortWatch = time.Second

// watch tells the journal of all changes until the watch ends. It returns nil when it ended as watches do.
func (f *follower) watch(ctx context.Context, journal Journal, at *place) error {
	// The request has a context of its own. What interrupts it does not interrupt the journal.
	request, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.mail.watching(cancel)
	defer f.mail.watching(nil)
	g := &guard{
		clock: f.clock, cancel: cancel, idle: f.timing.answer, status: f.status,
		lateAfter: f.timing.late, late: func() {
			if !f.mail.isLeaving() {
				f.status.set(Failing, "the API server does not answer the watch")
			}
		},
	}
	during := f.timing.watch + time.Duration(rand.Float64()*float64(f.timing.watch))
	err := g.open(request, func() (io.ReadCloser, error) { return f.client.watch(request, f.kind, at.resourceVersion, during) })
	if err != nil {
		return err
	}
	defer func() { _ = g.body.Close() }()
	g.idle, g.late = f.timing.silence, nil
	f.status.count(func(c *Counts) { c.Watches++ })
	f.status.reached(at.resourceVersion, func(*Counts) {})
	f.live()
	begin, frames := f.clock.Now(), newStream(g)
	at.since = begin
	defer func() {
		if f.clock.Since(begin) >= f.timing.calm {
			f.pace.calm()
		}
	}()
	for some := false; ; some = true {
		raw, cut, err := frames.value(f.maxObject)
		if errors.Is(err, io.EOF) {
			if !some && f.clock.Since(begin) < shortWatch {
				return errShort
			}
			return nil
		}
		if err != nil {
			return causeOf(request, err)
		}
		if err := f.take(ctx, journal, at, raw, cut); err != nil {
			return err
		}
		f.pace.reset()
		f.malformed = 0
	}
}

// take tells the journal what one frame of a watch says.
func (f *follower) take(ctx context.Context, journal Journal, at *place, raw []byte, cut bool) error {
	if cut {
		f.status.count(func(c *Counts) { c.Oversized++ })
	}
	said, object, err := readFrame(f.kind, raw, cut)
	at.blank = at.blank && err != nil && !errors.Is(err, errUnknown)
	if errors.Is(err, errUnknown) {
		return f.lost(ctx, journal, errUnknown.Error())
	}
	if err != nil {
		return err
	}
	// Versions that are no numbers cannot be compared. Then the order is believed.
	order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, at.resourceVersion)
	comparable := err == nil
	if comparable && order < 0 {
		return f.disorder(ctx, journal, at)
	}
	f.noteReported(at)
	if said == bookmark {
		if err := taken("take a bookmark", journal.Bookmark(ctx, object.ResourceVersion, f.reached)); err != nil {
			return err
		}
		at.resourceVersion = object.ResourceVersion
		f.status.reached(object.ResourceVersion, func(c *Counts) { c.Bookmarks++ })
		return nil
	}
	event := Event{Type: EventType(said), Object: object, Reached: f.reached}
	if comparable && order == 0 && at.last.Object.ResourceVersion == object.ResourceVersion {
		if at.last.Object.UID != object.UID || at.last.Type != event.Type {
			return f.disorder(ctx, journal, at)
		}
		f.status.count(func(c *Counts) { c.Duplicates++ })
		return nil
	}
	if err := taken("take a change", journal.Event(ctx, event)); err != nil {
		return err
	}
	at.resourceVersion, at.last = object.ResourceVersion, event
	at.last.Object.Raw = nil
	f.status.reached(object.ResourceVersion, func(c *Counts) { c.Events++ })
	return nil
}

// disorder tells the journal at once that a list is needed: the checkpoint is after what is missing, and whoever goes on from it, as after
// a restart, would not notice. Nobody knows when the disorder began.
func (f *follower) disorder(ctx context.Context, journal Journal, at *place) error {
	f.pending = Gap{Since: at.since, Reason: errDisorder.Error()}
	if err := taken("begin a list", journal.BeginList(ctx, f.pending)); err != nil {
		return err
	}
	return errDisorder
}

// noteReported notes since when nothing more is known, before a frame is reported. What was sent before the stream was last empty is
// reported. An API server that opens a watch has not said anything of the time before: it may still answer that it has forgotten it.
func (f *follower) noteReported(at *place) {
	if drained := f.status.lastDrained(); drained.After(at.since) {
		f.reached = drained
	}
}

// reasonOf makes a text that others have written fit for a line.
func reasonOf(written string) string {
	return text.Cut(text.Printable(redact.Clean(written)), maxReason)
}
