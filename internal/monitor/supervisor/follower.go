package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// tools are what all followers share.
type tools struct {
	client *client
	gate   *gate
	clock  Clock
	log    *slog.Logger
	// lines limits how many lines are logged about kinds that cannot be read. There may be thousands at a time.
	lines  flowcontrol.PassiveRateLimiter
	timing timing
	// maxObject is the limit of an object in bytes, pageSize how many objects a page of a list has.
	maxObject int
	pageSize  int64
	// allowed is called when a kind may be read that was refused before.
	allowed func()
}

// Clock is the time, and what happens later.
type Clock interface {
	clock.WithTicker
	clock.WithDelayedExecution
}

// timing is how long things may take.
type timing struct {
	// watch is how long a watch is asked for, up to twice as long.
	watch time.Duration
	// silence is how long a watch may be without a word. The API server sends a bookmark about once a minute.
	silence time.Duration
	// late is after how long without an answer a kind counts as not covered.
	late time.Duration
	// answer is how long the API server may take to answer, and to go on with an answer.
	answer time.Duration
	// quiet and grace are for a kind of which the definition is gone: it ends when nothing came for that long, and after
	// that long at the latest.
	quiet, grace time.Duration
	// settle is how long the API server may take to end the watches of a kind of which the definition was edited.
	settle time.Duration
	// calm is how long a watch must live to show that a list has brought order.
	calm time.Duration
}

// usualTiming is the timing unless a test wants another one.
var usualTiming = timing{
	watch: 5 * time.Minute, silence: 150 * time.Second, late: 4 * time.Second, answer: 40 * time.Second,
	quiet: 250 * time.Millisecond, grace: 700 * time.Millisecond, settle: 3 * time.Second, calm: 10 * time.Second,
}

// follower follows one kind at one version. One goroutine runs it.
type follower struct {
	*tools

	kind    change.Kind
	sink    Sink
	status  *status
	mail    *mail
	end     context.CancelFunc
	done    chan struct{}
	defined definedAs

	pace pace
	// known reports whether the kind has been live.
	known bool
	// reached is a time before which everything was reported to the journal. It is zero when that is not known in this life.
	reached time.Time
	// slow reports whether the last list got no answer in time.
	slow bool
	// limit is the size of the next page, 0 for all in one.
	limit int64
	// busy is since when the API server says that it is busy, zero when it does not.
	busy time.Time
	// pending is a gap that a list has to close, and none has closed yet. It outlives a journal that has failed.
	pending Gap
	// malformed counts watches that ended with garbage since something was taken.
	malformed int
	// reviewed reports whether the API server was asked why the kind is refused.
	reviewed bool
	// complained reports whether a line was logged which says that the kind is not covered.
	complained bool
}

// place is how far a follower is.
type place struct {
	// since is when the last watch began.
	since           time.Time
	resourceVersion string
	// list reports whether all objects must be listed, and gap since when and why, unless nothing was known before.
	list bool
	gap  Gap
	// last is the last event that was taken. Its resource version is that of the place.
	last Event
	// listed reports whether the last thing that was done is a list.
	listed bool
	// blank reports whether nothing is known that could be missing: the last list was the first one, there was no object in it, and no
	// watch has said anything since. The API server may make itself ready for a kind after it has answered the list: then it has forgotten
	// what was before that, and the list begins again as the first one.
	blank bool
}

func newFollower(shared *tools, sink Sink, kind change.Kind, defined definedAs, status *status) *follower {
	return &follower{
		tools: shared, sink: sink, kind: kind, defined: defined, status: status, mail: newMail(), done: make(chan struct{}),
		limit: shared.pageSize,
	}
}

// run follows the kind until the context ends, or until its definition is gone and nothing comes any more.
func (f *follower) run(ctx context.Context) {
	if f.gate.turn(ctx) != nil {
		return
	}
	for {
		err := f.follow(ctx)
		if ctx.Err() != nil || f.mail.isLeaving() {
			return
		}
		found := judge(err, false, f.known)
		f.conclude(ctx, err, found)
		if !f.wait(ctx, f.pace.next(found)) {
			return
		}
	}
}

// follow opens a journal and fills it until that fails, or until there is nothing more to do.
func (f *follower) follow(ctx context.Context) error {
	schema, err := f.defined.unpack()
	if err != nil {
		return err
	}
	journal, err := f.sink.Open(ctx, f.kind, schema)
	if err != nil {
		return sinkError{err}
	}
	at := place{resourceVersion: journal.Resume()}
	at.list, at.gap = at.resourceVersion == "" || f.pending.Reason != "", f.pending
	for ctx.Err() == nil && !f.mail.isLeaving() {
		if err := f.reportUpdate(ctx, journal); err != nil {
			return err
		}
		listing := at.list
		if listing {
			err = f.list(ctx, journal, &at)
		} else {
			err = f.watch(ctx, journal, &at)
		}
		if errors.As(err, &sinkError{}) {
			return err
		}
		if ctx.Err() != nil || f.mail.isLeaving() {
			return nil
		}
		found := f.weigh(err, listing, &at)
		at.listed = listing
		f.conclude(ctx, err, found)
		if !f.wait(ctx, f.pace.next(found)) {
			return nil
		}
	}
	return nil
}

// reportUpdate reports to the journal that the definition has another schema.
func (f *follower) reportUpdate(ctx context.Context, journal Journal) error {
	update := f.mail.takeUpdate()
	if update == nil {
		return nil
	}
	f.defined = *update
	schema, err := update.unpack()
	if err != nil {
		return err
	}
	if err := journal.SchemaChanged(ctx, schema); err != nil {
		return sinkError{err}
	}
	return nil
}

// maxMalformed is how many watches may end with garbage at the same place. Then a list goes around it.
const maxMalformed = 3

// weigh tells what follows from the end of a list or a watch, with what came before.
func (f *follower) weigh(err error, listing bool, at *place) finding {
	found := f.patience(err, judge(err, listing, f.known))
	switch {
	case listing && err != nil:
		f.slow = errors.Is(err, errSilent)
		f.otherPage(err)
	case !listing && errors.Is(err, errGarbage):
		f.malformed++
		if f.malformed >= maxMalformed {
			found.relist = errGarbage.Error()
		}
	}
	if found.relist == expired && f.clock.Since(f.mail.lastEdit()) < editMatters {
		found.relist = expiredByEdit
	}
	if found.relist != "" {
		found.none = found.none && !at.listed // a watch that fails after each list must not be a loop without an end
		found.pause = again
		f.malformed = 0
		at.list, at.gap = true, Gap{Since: f.reached, Reason: reasonOf(found.relist)}
		switch {
		case at.blank:
			at.gap = Gap{}
		case errors.Is(err, errDisorder):
			at.gap = f.pending
		}
		f.pending = at.gap
	}
	return found
}

// patience makes a failure of an API server that is busy for too long. It also says that it is busy when it cannot make
// itself ready, for example because a conversion fails.
func (f *follower) patience(err error, found finding) finding {
	switch {
	case !apierrors.IsTooManyRequests(err):
		f.busy = time.Time{}
	case f.busy.IsZero():
		f.busy = f.clock.Now()
	case f.clock.Since(f.busy) >= f.timing.late/2: // the next time may be that much later
		found.state = Failing
	}
	return found
}

// otherPage chooses the size of the next pages. A list that was forgotten half-way is asked for at once, and one that was
// cut off in smaller pages.
func (f *follower) otherPage(err error) {
	var refusal apierrors.APIStatus
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		f.limit = 0
	case errors.As(err, &refusal):
	case f.limit == 0:
		f.limit = f.pageSize
	default:
		f.limit = max(f.limit/2, min(f.pageSize, minPage))
	}
}

// minPage is the smallest page that is asked for.
const minPage = 20

// conclude writes down what was found.
func (f *follower) conclude(ctx context.Context, err error, found finding) {
	if found.state == "" {
		return
	}
	reason := found.reason
	if found.state == Refused && !f.reviewed && apierrors.IsForbidden(err) {
		f.reviewed = true
		reason = f.review(ctx, reason)
	} else if found.state == Refused && f.status.is(Refused) {
		return // the first reason says more
	}
	f.status.set(found.state, reason)
	if found.state != Refused && found.state != Failing || f.complained || !f.lines.TryAccept() {
		return
	}
	f.complained = true
	f.log.Warn("a kind is not covered", "kind", f.name(), "state", found.state, "reason", reasonOf(reason))
}

// reviewPatience bounds how long to wait for why a kind is refused.
const reviewPatience = 5 * time.Second

// review asks the API server why a kind is refused, and returns what to say about it.
func (f *follower) review(ctx context.Context, refusal string) string {
	f.status.set(Refused, refusal)
	ctx, cancel := context.WithTimeout(ctx, reviewPatience)
	defer cancel()
	allowed, why, err := f.client.mayRead(ctx, f.kind)
	switch {
	case err != nil:
		return refusal
	case allowed:
		return refusal + " (the rights of the monitor would allow it)"
	default:
		return refusal + " (" + why + ")"
	}
}

// live writes down that changes are seen.
func (f *follower) live() {
	f.known, f.reviewed = true, false
	f.status.markSeen()
	before := f.status.set(Live, "")
	if before == Refused {
		f.allowed()
	}
	if f.complained {
		f.complained = false
		f.log.Info("a kind is covered again", "kind", f.name())
	}
}

// name is the kind in a line of the log.
func (f *follower) name() string { return reasonOf(f.kind.GroupResource().String()) }

// wait waits that long, until it is woken, or until the context ends or the definition is gone: then it returns false.
func (f *follower) wait(ctx context.Context, during time.Duration) bool {
	if during <= 0 {
		return ctx.Err() == nil && !f.mail.isLeaving()
	}
	timer := f.clock.NewTimer(during)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-f.mail.woken:
	case <-timer.C():
	}
	return ctx.Err() == nil && !f.mail.isLeaving()
}

// define tells a follower that the definition has another schema.
func (f *follower) define(as definedAs) {
	f.mail.define(as)
	f.clock.AfterFunc(f.timing.settle, f.mail.insist)
}

// retire ends a follower that another one succeeds. The API server ends its watch, because the definition was edited: what
// it sends before that would otherwise be missing.
func (f *follower) retire(ctx context.Context) {
	defer f.end()
	f.status.set(Stopping, "another version is followed")
	f.mail.leave()
	timer := f.clock.NewTimer(f.timing.settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-f.done:
	case <-timer.C():
	}
}

// leave ends a follower of which the definition is gone. What the API server sends soon is still taken.
func (f *follower) leave(ctx context.Context) {
	f.status.set(Stopping, "its definition was deleted")
	f.mail.leave()
	begin := f.clock.Now()
	ticker := f.clock.NewTicker(f.timing.quiet / 5)
	defer ticker.Stop()
	defer f.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.done:
			return
		case now := <-ticker.C():
			if now.Sub(begin) >= f.timing.grace || f.status.quiet(begin) >= f.timing.quiet {
				return
			}
		}
	}
}

// taken wraps an error of the sink.
func taken(what string, err error) error {
	if err == nil {
		return nil
	}
	return sinkError{fmt.Errorf("%s: %w", what, err)}
}
