package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/revision"
)

const (
	// maxHold is how long an answer may be held back: the gateway's 30 s and some room.
	maxHold = 35 * time.Second
	// A pod that does not answer is asked again after retryMin, then after twice that, and
	// so on up to retryMax.
	retryMin = 50 * time.Millisecond
	retryMax = time.Second
	// After pauseMin a pod that answered is asked again. One that does not hold its answer
	// back, or changes all the time, must not keep the operator busy: as long as it answers
	// sooner than the last pause took, the next one is twice as long, up to pauseMax.
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
	// maxDocument bounds an answer: 1,000 problems with messages of 1 KiB, twice.
	maxDocument = 2 << 20
)

// follower follows one pod.
type follower struct {
	ip      string
	url     string
	clock   clock.Clock
	client  *http.Client
	stop    context.CancelFunc
	changed func()
	// asked gets a value when the pod is to be asked without waiting any longer.
	asked chan struct{}
	// ready is what the kubelet last said; the Follower's mutex guards it.
	ready bool

	mutex  sync.Mutex
	answer Answer
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
	hold *revision.Document
	// word is told beside; empty: there is nothing to tell.
	word string
}

// next returns what to ask now. The context that it returns ends also when there is
// another word to give.
func (o *follower) next(ctx context.Context) (context.Context, context.CancelFunc, question) {
	ctx, cancel := context.WithCancel(ctx)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.interrupt = cancel
	next := question{known: o.answer}
	if o.answer.State == Answering && o.failing.IsZero() {
		next.hold = o.answer.Document
	}
	if o.answer.Document != nil && o.answer.Document.Stale() {
		next.word = o.word
	}
	return ctx, cancel, next
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

// run follows the pod until the context ends.
func (o *follower) run(ctx context.Context) {
	retry, pause := retryMin, pauseMin
	for ctx.Err() == nil {
		asked := o.clock.Now()
		if o.ask(ctx) {
			pause = nextPause(pause, o.clock.Since(asked))
			retry = retryMin
			o.sleep(ctx, pause, nil)
			continue
		}
		o.sleep(ctx, min(retry, o.patienceLeft()), o.asked)
		retry = min(2*retry, retryMax)
	}
}

// nextPause is how long to leave a pod alone that answered after so long, given the pause
// before that.
func nextPause(last, answeredAfter time.Duration) time.Duration {
	if answeredAfter >= last {
		return pauseMin
	}
	return min(2*last, pauseMax)
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

// ask asks the pod once, or as often as there is another word for it meanwhile, and tells
// whether it answered what can be understood.
func (o *follower) ask(ctx context.Context) bool {
	asking, done, what := o.next(ctx)
	document, detail, err := o.get(asking, what)
	for err != nil && asking.Err() != nil && ctx.Err() == nil {
		done()
		asking, done, what = o.next(ctx)
		document, detail, err = o.get(asking, what)
	}
	defer done()
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		o.failed()
		return false
	case document == nil:
		o.set(Answer{State: Incompatible, Document: what.known.Document, Detail: detail})
		return false
	default:
		o.set(Answer{State: Answering, Document: document})
		return true
	}
}

// send sends a question. An instruction goes with POST, because GET must not change anything.
// A pod of a release before that answers 405 to it, and is asked again in its own way.
func (o *follower) send(ctx context.Context, what question) (*http.Response, error) {
	method, parameters := http.MethodGet, url.Values{}
	if what.hold != nil {
		parameters.Set("wait", strconv.FormatInt(what.hold.Revision, 10))
	}
	if what.word != "" {
		method = http.MethodPost
		parameters.Set(revision.StandbyParameter, what.word)
	}
	request, err := http.NewRequestWithContext(ctx, method, o.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = parameters.Encode()
	request.Header["Idempotency-Key"] = nil // to send it twice is harmless, which net/http must know to use a kept connection
	response, err := o.client.Do(request)
	if err != nil || method == http.MethodGet || response.StatusCode != http.StatusMethodNotAllowed {
		return response, err
	}
	_ = response.Body.Close()
	request.Method = http.MethodGet
	return o.client.Do(request)
}

// get returns a document, or why the answer is none, or the error of no answer.
func (o *follower) get(ctx context.Context, what question) (document *revision.Document, detail string, err error) {
	patience := Patience
	if what.hold != nil {
		patience = maxHold
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := o.send(ctx, what)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument))
	switch {
	case err != nil:
		return nil, "", err
	case response.StatusCode >= http.StatusInternalServerError:
		return nil, "", fmt.Errorf("status %d", response.StatusCode)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Sprintf("%s is answered with status %d", revision.Path, response.StatusCode), nil
	}
	document = &revision.Document{}
	if err := json.Unmarshal(body, document); err != nil {
		// The error may quote what was answered, which could be anything.
		return nil, revision.Path + " is answered with something else than a document", nil
	}
	if document.Protocol != revision.Protocol {
		return nil, fmt.Sprintf("it speaks protocol %d and the operator speaks protocol %d", document.Protocol, revision.Protocol), nil
	}
	if !sound(document) {
		return nil, revision.Path + " is answered with reasons that are none", nil
	}
	document.Problems = bounded(document.Problems)
	return document, "", nil
}

// reasonPattern is what a reason looks like. The API server refuses a condition with
// another one, and the image that answers may be anybody's.
var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

func sound(document *revision.Document) bool {
	if document.Rejected != nil && !reasonPattern.MatchString(document.Rejected.Reason) {
		return false
	}
	return !slices.ContainsFunc(document.Problems, func(p revision.Problem) bool { return !reasonPattern.MatchString(p.Reason) })
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
