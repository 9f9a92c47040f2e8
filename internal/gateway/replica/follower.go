package replica

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

const (
	// maxHold is how long an answer may be held back: the gateway's 30 s and some room.
	maxHold = 35 * time.Second
	// A pod that does not answer is asked again after retryMin, then after twice that, and
	// so on up to retryMax.
	retryMin = 50 * time.Millisecond
	retryMax = time.Second
	// After pause a pod that answered is asked again.
	pause = 20 * time.Millisecond
	// A pod that does not hold its answer back, or changes all the time, must not keep the
	// operator busy: it is asked asksAtOnce times, and in the long run once per asksEvery.
	asksAtOnce = 40
	asksEvery  = 500 * time.Millisecond
	// readTime is how long an answer may take that has begun.
	readTime = 2 * time.Second
)

// follower follows one pod.
type follower struct {
	ip      string
	url     string
	clock   clock.Clock
	client  *http.Client
	share   *share
	pace    *rate.Limiter
	stop    context.CancelFunc
	changed func()
	// asked gets a value when the pod is to be asked without waiting any longer.
	asked chan struct{}
	// ready is what the kubelet last said; the Follower's mutex guards it.
	ready bool

	mutex  sync.Mutex
	answer Answer
	// size is what the pod may say, and kept what its document takes of the share.
	size document.Size
	kept int
	// failing is since when the pod has not answered; zero while it does.
	failing time.Time
	// word is the operator's, as the pod is told it; empty: none has been given yet.
	word string
	// interrupt ends the question that is under way, nil when none is.
	interrupt context.CancelFunc
}

func (o *follower) current() Answer {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.answer
}

// question is what a pod is asked.
type question struct {
	// known is the answer so far.
	known Answer
	// hold is what the answer is to be held back for: the pod is known to be there, and
	// another one is worth waiting for. Or nil.
	hold *document.Document
	// crowded tells that there is no place for that: the pod is asked again after a while.
	crowded bool
	// word is told beside; empty: there is nothing to tell.
	word string
}

// outcome is what became of a question.
type outcome int

const (
	failed outcome = iota
	answered
	// crowded: it was answered, and there is no place to wait for the next answer.
	crowded
	// interrupted: there is another word to give.
	interrupted
)

// next returns what to ask now. The context that it returns ends also when there is
// another word to give. done is called after the question.
func (o *follower) next(ctx context.Context) (asking context.Context, done func(), next question) {
	asking, cancel := context.WithCancel(ctx)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.interrupt = cancel
	next = question{known: o.answer}
	if o.answer.Document != nil && o.answer.Document.Stale() {
		next.word = o.word
	}
	if o.answer.State != Answering || !o.failing.IsZero() {
		return asking, cancel, next
	}
	if !o.share.hold() {
		next.crowded = true
		return asking, cancel, next
	}
	next.hold = o.answer.Document
	return asking, func() { cancel(); o.share.letGo() }, next
}

// tell gives the pod the operator's word. There is nothing to take back before it was
// given.
func (o *follower) tell(standby bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	next := strconv.FormatBool(standby)
	if o.word == next || (o.word == "" && !standby) {
		return
	}
	o.word = next
	if o.interrupt != nil {
		o.interrupt()
	}
}

// hurry asks a pod that did not answer again at once, with new patience.
func (o *follower) hurry() {
	o.mutex.Lock()
	if o.answer.State == Asking || o.answer.State == Silent {
		o.answer.State, o.failing = Asking, o.clock.Now()
	}
	o.mutex.Unlock()
	select {
	case o.asked <- struct{}{}:
	default:
	}
}

// allow sets what the pod may say.
func (o *follower) allow(size document.Size) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.size = size
}

// allowed is what the pod may say: what there is to serve, and what there was when it said so.
func (o *follower) allowed() document.Size {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.answer.Document == nil {
		return o.size
	}
	return o.size.Max(o.answer.Document.Size())
}

// run follows the pod until the context ends.
func (o *follower) run(ctx context.Context) {
	defer o.forget()
	retry := retryMin
	for pass(ctx, o.clock, o.pace) && o.share.spend(ctx, askCost) {
		switch o.ask(ctx) {
		case interrupted:
		case answered:
			retry = retryMin
			o.sleep(ctx, pause, nil)
		case crowded:
			o.sleep(ctx, pauseCrowded, o.asked)
		case failed:
			o.sleep(ctx, min(retry, o.patienceLeft()), o.asked)
			retry = min(2*retry, retryMax)
		}
	}
}

// forget gives the memory of the document back.
func (o *follower) forget() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.share.keep(o.kept, 0)
	o.kept = 0
}

// sleep waits until the time is over, the context ends or there is a hurry.
func (o *follower) sleep(ctx context.Context, wait time.Duration, hurry <-chan struct{}) {
	timer := o.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-hurry:
	}
}

// patienceLeft is when a pod that does not answer counts as silent; a long time for any
// other.
func (o *follower) patienceLeft() time.Duration {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.failing.IsZero() || o.answer.State == Silent {
		return retryMax
	}
	return max(Patience-o.clock.Since(o.failing), time.Millisecond)
}

// ask asks the pod once.
func (o *follower) ask(ctx context.Context) outcome {
	asking, done, what := o.next(ctx)
	defer done()
	doc, err := o.get(asking, what)
	var unreadable *document.UnreadableError
	switch {
	case ctx.Err() != nil:
		return failed
	case errors.As(err, &unreadable):
		o.set(Answer{State: Incompatible, Document: what.known.Document, Detail: unreadable.Message})
		return failed
	case err != nil && asking.Err() != nil:
		return interrupted
	case err != nil:
		o.failed()
		return failed
	}
	o.set(Answer{State: Answering, Document: doc})
	if what.crowded {
		return crowded
	}
	return answered
}

// failed notes that the pod did not answer. What it said last stays valid for the time
// of the patience: a gateway whose node is restarted is not behind for a lost packet.
func (o *follower) failed() {
	o.mutex.Lock()
	now := o.clock.Now()
	if o.failing.IsZero() {
		o.failing = now
	}
	silent := o.answer.State != Silent && now.Sub(o.failing) >= Patience
	if silent {
		o.answer.State = Silent
	}
	o.mutex.Unlock()
	if silent {
		o.changed()
	}
}

// set notes what the pod answered, and tells when it is something else than before. The
// revision alone is no news.
func (o *follower) set(answer Answer) {
	o.mutex.Lock()
	before := o.answer
	if answer.State == Answering {
		if taken := answer.Document.Memory(); o.share.keep(o.kept, taken) {
			o.kept = taken
		} else {
			answer = Answer{State: Crowded, Document: before.Document, Detail: noRoom}
		}
	}
	o.answer, o.failing = answer, time.Time{}
	o.mutex.Unlock()
	if !same(before, answer) {
		o.changed()
	}
}

func same(a, b Answer) bool {
	if a.State != b.State || a.Detail != b.Detail || (a.Document == nil) != (b.Document == nil) {
		return false
	}
	if a.Document == nil {
		return true
	}
	first, second := *a.Document, *b.Document
	first.Revision, second.Revision = 0, 0
	return reflect.DeepEqual(first, second)
}
