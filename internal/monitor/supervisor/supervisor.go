package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

// Options are what a supervisor follows, and how.
type Options struct {
	// Builtin are kinds that Kubernetes brings, none by default. See Builtin, the function.
	Builtin []change.Kind
	// Include and Exclude choose among the kinds that have a definition. Each is a pattern of a group, such as
	// *.crossplane.io, or of a resource with its group, such as widgets.example.com. In a pattern * stands for any
	// characters, dots too. A kind is followed when a pattern of Include matches, or when there is none, and no pattern of
	// Exclude matches. There are at most 1,000 patterns.
	Include, Exclude []string
	// MaxKinds is how many kinds are followed at most, 5,000 by default. When there are more, those of the oldest
	// definitions are followed, and the others are shown as excluded.
	MaxKinds int
	// MaxObjectBytes is how large an object may be as JSON, 8 MiB by default. Of a larger one only the identity is reported.
	MaxObjectBytes int
	// Lists is how many lists are read at a time, 10 by default, and PageSize how many objects a page has, 500 by default.
	Lists    int
	PageSize int64
	// StartsPerSecond is how many kinds begin to be followed in a second, 100 by default. So many may begin at once, when
	// none did in the second before.
	StartsPerSecond float32
	// Trouble says why the sink stores nothing, empty while it does, and since when. Nil: it always does.
	Trouble func() (reason string, since time.Time)
	// Clock is the time, and Log takes lines. Both must be set.
	Clock Clock
	Log   *slog.Logger

	timing timing // for tests
}

// withDefaults returns the options with what is not set.
func (o Options) withDefaults() Options {
	if o.MaxKinds <= 0 {
		o.MaxKinds = 5000
	}
	if o.MaxObjectBytes <= 0 {
		o.MaxObjectBytes = 8 << 20
	}
	if o.Lists <= 0 {
		o.Lists = 10
	}
	if o.PageSize <= 0 {
		o.PageSize = 500
	}
	if o.StartsPerSecond <= 0 {
		o.StartsPerSecond = 100
	}
	if o.timing == (timing{}) {
		o.timing = usualTiming
	}
	return o
}

// Supervisor follows kinds. Make it with New, and run it once.
type Supervisor struct {
	options Options
	chosen  selection.Kinds
	sink    Sink
	tools   *tools

	definitions       *definitions
	definitionsStatus *status
	board             board

	// woken gets a value when there is perhaps something to do.
	woken chan struct{}
	// allowed reports whether a kind may be read that was refused before.
	allowed atomic.Bool
	group   sync.WaitGroup

	// The goroutine of Run alone uses these.
	slots map[schema.GroupResource]*slot
	idle  map[schema.GroupResource]*status // of kinds that are not followed

	mutex sync.Mutex
	ended []schema.GroupResource
}

// slot is what is done for one kind.
type slot struct {
	has

	follower *follower // nil for a kind that is stored only
	closing  bool      // the definition is gone
	status   *status
}

// slotOf is the slot of a kind that the sink knows and nobody follows.
func slotOf(kind change.Kind) slot { return slot{has: has{kind: kind, phase: stored}} }

// New returns an error when the options or the access make no sense. It sends no request.
func New(access *rest.Config, sink Sink, options Options) (*Supervisor, error) {
	options = options.withDefaults()
	chosen, err := selection.New(options.Include, options.Exclude)
	if err != nil {
		return nil, err
	}
	if len(options.Builtin) > options.MaxKinds {
		return nil, fmt.Errorf("%d kinds are wanted: no more than %d are allowed", len(options.Builtin), options.MaxKinds)
	}
	client, err := newClient(access)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		options: options, chosen: chosen, sink: sink, woken: make(chan struct{}, 1),
		slots: map[schema.GroupResource]*slot{}, idle: map[schema.GroupResource]*status{},
		tools: &tools{
			client: client, gate: newGate(options.Lists, options.StartsPerSecond), clock: options.Clock, log: options.Log,
			lines: flowcontrol.NewTokenBucketPassiveRateLimiter(linesPerSecond, linesAtOnce), timing: options.timing,
			maxObject: options.MaxObjectBytes, pageSize: options.PageSize,
		},
	}
	s.tools.allowed = func() { s.allowed.Store(true); s.wake() }
	s.definitions = newDefinitions(options.Log, s.wake)
	s.definitionsStatus = newStatus(options.Clock, definitionKind, Pending, waits)
	return s, nil
}

const (
	linesPerSecond = 1
	linesAtOnce    = 50
	// waits is why a kind is not followed that is about to be.
	waits = "it waits for its turn"
	// maxRest bounds the rest after looking what is to be done. It is as long as that took, so that a storm of definitions
	// uses at most half a processor.
	maxRest = 100 * time.Millisecond
)

// Run follows kinds until the context ends, and returns when nothing of it runs any more.
func (s *Supervisor) Run(ctx context.Context) {
	defer s.group.Wait()
	if !s.recall(ctx) {
		return
	}
	watcher := newFollower(s.tools, s.definitions, definitionKind, definedAs{}, s.definitionsStatus)
	s.group.Go(func() { watcher.run(ctx) })
	for {
		begin := s.options.Clock.Now()
		s.look(ctx)
		if !s.rest(ctx, min(s.options.Clock.Since(begin), maxRest)) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.woken:
		}
	}
}

// recall asks the sink which kinds it knows, until it says so.
func (s *Supervisor) recall(ctx context.Context) bool {
	pace := pace{}
	for {
		known, err := s.sink.Known(ctx)
		if err == nil {
			for _, kind := range known {
				known := slotOf(kind)
				s.slots[kind.GroupResource()] = &known
			}
			return true
		}
		found := judge(sinkError{err}, false, false)
		s.definitionsStatus.set(found.state, found.reason)
		if !s.rest(ctx, pace.next(found)) {
			return false
		}
	}
}

// rest waits that long. It returns false when the context has ended.
func (s *Supervisor) rest(ctx context.Context, during time.Duration) bool {
	if during <= 0 {
		return ctx.Err() == nil
	}
	timer := s.options.Clock.NewTimer(during)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// wake lets Run look again. It does not wait.
func (s *Supervisor) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // it looks again anyway
	}
}

// look does what is to be done now. It waits for nothing.
func (s *Supervisor) look(ctx context.Context) {
	s.bury(ctx)
	known, complete := s.definitions.all()
	wanted := desired(known, s.options.Builtin, s.chosen, s.options.MaxKinds)
	actual := make(map[schema.GroupResource]has, len(s.slots))
	for key, slot := range s.slots {
		actual[key] = slot.has
	}
	for _, action := range plan(wanted, actual, complete) {
		s.act(ctx, action, wanted[action.kind])
	}
	if s.allowed.Swap(false) {
		for _, slot := range s.slots {
			if slot.follower != nil && slot.status.is(Refused) {
				slot.follower.mail.wake()
			}
		}
	}
	s.publish(wanted, complete)
}

// bury puts away what has ended.
func (s *Supervisor) bury(ctx context.Context) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, key := range s.ended {
		slot := s.slots[key]
		switch {
		case slot.follower == nil:
			delete(s.slots, key)
		case slot.closing:
			slot.follower = nil
			s.group.Go(func() { s.close(ctx, key, slot.kind) })
		default: // the sink still knows it: it is closed when its definition goes
			*slot = slotOf(slot.kind)
		}
	}
	s.ended = nil
}

// act begins what is to be done for one kind.
func (s *Supervisor) act(ctx context.Context, action action, w want) {
	slot := s.slots[action.kind]
	switch action.verb {
	case start:
		s.start(ctx, action.kind, w)
	case update:
		changed := slot.content != w.content
		slot.content, slot.generation = w.content, w.generation
		if changed {
			slot.follower.define(definedAs{w.schema, w.generation, w.made, w.noStatus})
		}
		slot.follower.mail.edit(s.options.Clock.Now())
		slot.follower.mail.wake()
	case stop:
		slot.phase = ending
		if w.mode == follow {
			s.group.Go(func() { slot.follower.retire(ctx) })
			return
		}
		slot.status.set(Stopping, w.reason)
		slot.follower.end()
	case closeKind:
		before := slot.phase
		slot.phase, slot.closing = ending, true
		if before == following {
			s.group.Go(func() { slot.follower.leave(ctx) })
			return // it is closed when its follower has ended
		}
		slot.status = newStatus(s.options.Clock, slot.kind, Stopping, "its definition was deleted")
		s.group.Go(func() { s.close(ctx, action.kind, slot.kind) })
	}
}

// start begins to follow a kind.
func (s *Supervisor) start(ctx context.Context, key schema.GroupResource, w want) {
	follow, end := context.WithCancel(ctx)
	status := newStatus(s.options.Clock, w.kind, Pending, waits)
	f := newFollower(s.tools, s.sink, w.kind, definedAs{w.schema, w.generation, w.made, w.noStatus}, status)
	f.end = end
	s.slots[key] = &slot{
		has:      has{kind: w.kind, phase: following, content: w.content, generation: w.generation},
		follower: f, status: status,
	}
	s.group.Go(func() {
		defer end()
		f.run(follow)
		close(f.done)
		s.end(key)
	})
}

// close tells the sink that the definition of a kind is gone.
func (s *Supervisor) close(ctx context.Context, key schema.GroupResource, kind change.Kind) {
	defer s.end(key)
	pace := pace{}
	for {
		successor, err := s.successor(ctx, kind)
		if err == nil {
			if err = s.sink.Gone(ctx, kind, successor); err == nil {
				s.options.Log.Info("a kind is not followed any more: its definition was deleted", "kind", reasonOf(key.String()))
				return
			}
			err = sinkError{err}
		}
		if !s.rest(ctx, pace.next(judge(err, false, false))) {
			return
		}
	}
}

// successor returns when the definition was made that has the name of one that is gone, zero when there is none. The API server is
// asked: what is followed may be behind, and the follower, which has ended, may have listed objects of the successor already.
// They are not gone.
func (s *Supervisor) successor(ctx context.Context, gone change.Kind) (time.Time, error) {
	uid, made, err := s.tools.client.definition(ctx, gone.GroupResource().String())
	if err != nil || uid == gone.Definition {
		return time.Time{}, err
	}
	return made, nil
}

// end says that nothing is done for a kind any more.
func (s *Supervisor) end(key schema.GroupResource) {
	s.mutex.Lock()
	s.ended = append(s.ended, key)
	s.mutex.Unlock()
	s.wake()
}

// publish makes everything visible: what is followed, and what is not.
func (s *Supervisor) publish(wanted map[schema.GroupResource]want, complete bool) {
	shown := make([]*status, 0, len(wanted))
	for _, slot := range s.slots {
		if slot.status != nil {
			shown = append(shown, slot.status)
		}
	}
	idle := make(map[schema.GroupResource]*status)
	for key, w := range wanted {
		if slot := s.slots[key]; slot != nil && slot.status != nil {
			continue
		}
		one := s.idle[key]
		if one == nil || one.kind() != w.kind {
			one = newStatus(s.options.Clock, w.kind, w.state, w.reason)
		}
		one.set(w.state, w.reason)
		idle[key] = one
		shown = append(shown, one)
	}
	s.idle = idle
	s.board.publish(shown, complete)
}
