package notify

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// Outbox is where messages wait.
type Outbox interface {
	// NextMessages returns messages that may be tried, and when the next one after them may be. Some outputs are left out.
	NextMessages(ctx context.Context, now time.Time, limit int, except ...string) ([]store.Message, time.Time, error)
	// Delivered removes messages.
	Delivered(ctx context.Context, ids ...int64) error
	// Failed counts an attempt, and says when the next one may be.
	Failed(ctx context.Context, id int64, next time.Time) error
}

var errNobody = errors.New("nobody is configured to get it")

// Result is what came of an attempt.
type Result string

// The results.
const (
	Sent    Result = "sent"
	Retried Result = "retried"
	// GivenUp is a message that is lost: it was tried for a day, or nobody is configured to get it.
	GivenUp Result = "given_up"
)

// Deliver brings a message that is not for a webhook to where it belongs, such as an Event. An error is tried again.
type Deliver func(ctx context.Context, body []byte) error

// Options are what a Sender needs. Outbox, Clock and Log must be set.
type Options struct {
	Outbox   Outbox
	Webhooks map[string]*Webhook
	// Event delivers the messages of OutputEvent, those about several namespaces at a time. Nil: there are none.
	Event Deliver
	Clock clock.Clock
	Log   *slog.Logger
	// Done is told of each attempt: which output, without a namespace, and what came of it. It must not block. Nil: nobody is.
	Done func(output string, result Result)
	// Random returns a number from 0 to 1, which spreads attempts. Nil: a random one.
	Random func() float64
}

const (
	firstWait = time.Second
	maxWait   = 10 * time.Minute
	// patience is how long a message is tried.
	patience = 24 * time.Hour
	// atOnce is how many messages are read at a time, and mostAtOnce how many with those that are to be noted.
	atOnce, mostAtOnce = 500, 1000
	// turn is how many messages an output sends before others have their turn, and maxQueues how many outputs send at a time.
	turn      = 20
	maxQueues = 256
	// noteTimeout is how long it may take to note a delivery.
	noteTimeout = 5 * time.Second
	// idle is how long it takes to see a message at the latest when nobody called Wake.
	idle = 30 * time.Second
)

// Sender empties an outbox: each output has a queue of its own, so that one that does not answer keeps up nobody else. A webhook is an
// output for each namespace: none waits for the alarms of another, and what is about one arrives in its order.
type Sender struct {
	options Options
	wake    chan struct{}

	mutex sync.Mutex
	busy  map[string]bool
	// resting is until when an output waits that did not answer. What came meanwhile waits, too.
	resting map[string]time.Time
	// unread is how often in a row the outbox could not be read.
	unread int

	notes notes
}

// NewSender makes a sender.
func NewSender(options Options) *Sender {
	if options.Done == nil {
		options.Done = func(string, Result) {}
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return &Sender{options: options, wake: make(chan struct{}, 1), busy: map[string]bool{}, resting: map[string]time.Time{}}
}

// Wake tells that there are new messages.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends until the context is done.
func (s *Sender) Run(ctx context.Context) {
	var queues sync.WaitGroup
	defer func() {
		queues.Wait()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
		defer cancel()
		s.settle(last, true)
	}()
	for ctx.Err() == nil {
		wait := min(s.settle(ctx, false), s.round(ctx, &queues))
		timer := s.options.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// round starts a queue for each output that has messages and none yet, as long as there are not too many. It returns how long nothing else
// is to be done: at the end of a queue there is another round.
func (s *Sender) round(ctx context.Context, queues *sync.WaitGroup) time.Duration {
	now := s.options.Clock.Now()
	// What is being sent is not read: the messages of an output that does not answer would take the place of all others. And what is
	// being sent while the outbox is read may be gone from it when that queue has ended, and would be sent twice.
	closed, room, rest := s.closed(now)
	if room <= 0 {
		return idle
	}
	// Those of which it could not be noted that they are gone take no place of others.
	messages, next, err := s.options.Outbox.NextMessages(ctx, now, min(atOnce+s.notes.size(), mostAtOnce), closed...)
	if err != nil {
		return s.cannotRead(ctx, err)
	}
	s.unread = 0
	messages, later := s.notes.due(messages, now)
	if next.IsZero() || !later.IsZero() && later.Before(next) {
		next = later
	}
	of := map[string][]store.Message{}
	slices.SortStableFunc(messages, func(a, b store.Message) int { return cmp.Compare(a.ID, b.ID) })
	for _, m := range messages {
		if waiting := of[m.Output]; len(waiting) < turn && (waiting != nil || len(of) < room) {
			of[m.Output] = append(waiting, m)
		}
	}
	for output, list := range of {
		s.claim(output)
		queues.Go(func() {
			defer s.Wake()
			defer s.release(output)
			s.empty(ctx, output, list)
		})
	}
	least := firstWait // there are more messages than were read, and none that may be sent
	if len(of) > 0 {
		least = 10 * time.Millisecond
	}
	if next.IsZero() {
		return rest
	}
	if next.After(now) {
		least = min(least, next.Sub(now))
	}
	return min(max(next.Sub(now), least), rest)
}

// cannotRead waits longer each time, and says it once.
func (s *Sender) cannotRead(ctx context.Context, err error) time.Duration {
	if s.unread == 0 && ctx.Err() == nil {
		s.options.Log.Error("cannot read the outbox; it is tried until it can be", "error", err)
	}
	wait := min(firstWait<<min(s.unread, 10), maxNoteWait)
	s.unread++
	return wait
}

// closed returns the outputs that have a queue or rest, for how many more queues there is room, and how long the others rest at least.
func (s *Sender) closed(now time.Time) (outputs []string, room int, rest time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	rest = idle
	maps.DeleteFunc(s.resting, func(_ string, until time.Time) bool { return !until.After(now) })
	for output, until := range s.resting {
		outputs, rest = append(outputs, output), min(rest, until.Sub(now))
	}
	return slices.AppendSeq(outputs, maps.Keys(s.busy)), maxQueues - len(s.busy), rest
}

// claim notes that an output has a queue. Only round makes queues, so it has none yet.
func (s *Sender) claim(output string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.busy[output] = true
}

func (s *Sender) release(output string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.busy, output)
}

func (s *Sender) letRest(output string, until time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.resting[output] = until
}

// empty sends messages in their order, until one fails: the others wait as long as that one.
func (s *Sender) empty(ctx context.Context, output string, messages []store.Message) {
	for i, m := range messages {
		now := s.options.Clock.Now()
		err := s.deliver(ctx, output, m.Body)
		switch {
		case err == nil:
			s.remove(ctx, output, m, Sent)
			if ctx.Err() != nil {
				return
			}
			continue
		case ctx.Err() != nil:
			return
		case s.isHopeless(output) || m.Attempts > 0 && now.Sub(m.Created) >= patience:
			s.options.Log.Error("gave up a message", "output", output, "key", m.Key, "error", err)
			s.remove(ctx, output, m, GivenUp)
			continue
		}
		s.options.Log.Warn("cannot deliver", "output", output, "key", m.Key, "attempt", m.Attempts+1, "error", err)
		until := now.Add(s.wait(m.Attempts))
		s.letRest(output, until)
		for _, waiting := range messages[i:] {
			s.options.Done(kindOf(output), Retried)
			s.note(ctx, output, &waiting, &attempt{waiting.Attempts + 1, until})
		}
		return
	}
}

func (s *Sender) remove(ctx context.Context, output string, m store.Message, result Result) {
	s.options.Done(kindOf(output), result)
	// At the end, too: it would be sent twice else.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	s.note(last, output, &m, nil) // after a crash it will be sent again, with the same key, where this fails
}

// isHopeless reports whether there is nobody to deliver to.
func (s *Sender) isHopeless(output string) bool {
	if kindOf(output) == OutputEvent {
		return s.options.Event == nil
	}
	name, ok := webhookOf(output)
	return !ok || s.options.Webhooks[name] == nil
}

func (s *Sender) deliver(ctx context.Context, output string, body []byte) error {
	switch {
	case s.isHopeless(output):
		return errNobody
	case kindOf(output) == OutputEvent:
		return s.options.Event(ctx, body)
	default:
		name, _ := webhookOf(output)
		return s.options.Webhooks[name].deliver(ctx, body, s.options.Clock.Now)
	}
}

// wait is how long to wait after so many attempts before: twice as long each time, and up to a quarter less.
func (s *Sender) wait(attempts int) time.Duration {
	d := maxWait
	if attempts < 10 {
		d = min(firstWait<<attempts, maxWait)
	}
	return d - time.Duration(s.options.Random()*float64(d)/4)
}
