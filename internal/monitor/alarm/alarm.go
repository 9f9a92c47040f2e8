package alarm

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/notify"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/rights"
)

// Options are what Alarms need. Store, Clock, Log and Registry must be set.
type Options struct {
	// Store keeps states and messages.
	Store *store.Store
	// Webhooks are those that rules may name, by their names.
	Webhooks map[string]*notify.Webhook
	// Events makes Events of Kubernetes. Nil: there are none.
	Events eventsclient.EventsGetter
	// Namespaces says which namespace has a name now: in one that was made again there is no Event about an object of the one before. Nil:
	// nobody asks.
	Namespaces rights.Namespaces
	// Instance names the process, in Events. Default: slipway-monitor.
	Instance string
	// Source names the monitor in CloudEvents. Default: slipway-monitor.
	Source string
	Clock  clock.WithTicker
	Log    *slog.Logger
	// Registry takes the metrics.
	Registry prometheus.Registerer
}

// Recorder is what a *recorder.Recorder does for Alarms.
type Recorder interface {
	Look(ctx context.Context, kind schema.GroupResource, uid types.UID) (followed, found bool, err error)
	Add(ctx context.Context, kind schema.GroupResource, ask func() recorder.Effects) (followed bool, err error)
	Stored(ctx context.Context) error
}

// Alarms evaluate rules. It is safe for concurrent use.
type Alarms struct {
	options  Options
	engine   *rule.Engine
	compiler *rule.Compiler
	sender   *notify.Sender
	metrics  *metrics
	// known reports whether all rules there are have been told. Before that no alarm ends because its rule is not there.
	known atomic.Bool
	// context is that of New, for metrics: nobody gives them one.
	context context.Context

	mutex sync.Mutex
	// rules are the rules by their names, those with problems too.
	rules map[string]*entry
	// reviewed says for which generation of a rule all objects were looked at, by its UID.
	reviewed map[types.UID]int64
	// unswept are kinds of which alarms may stand whose rules are gone.
	unswept map[schema.GroupResource]bool
	// wake tells that there is something to sweep, and fresh that there is something to review.
	wake, fresh chan struct{}
	// changed are the rules of which Status says something else, for who calls Changed.
	changed map[types.UID]bool
	ring    chan struct{}

	// kinds are those of which the store knew something at kindsRead, or before that if it could not be read then.
	kindsMutex sync.Mutex
	kinds      []store.KindState
	kindsRead  time.Time
	kindsError error
}

// maxEffects is how much of one change is stored: the store takes no more than 2,000 parts at a time.
const maxEffects = 1500

// New makes Alarms, with what was stored before. Rules are told by Replace or Put.
func New(ctx context.Context, options Options) (*Alarms, error) {
	if options.Store == nil || options.Clock == nil || options.Log == nil || options.Registry == nil {
		return nil, errors.New("alarms need a store, a clock, a log and a registry")
	}
	if options.Instance == "" {
		options.Instance = component
	}
	if options.Source == "" {
		options.Source = component
	}
	compiler, err := rule.NewCompiler(rule.Limits{})
	if err != nil {
		return nil, err
	}
	a := &Alarms{
		options: options, context: ctx, engine: rule.NewEngine(), compiler: compiler, rules: map[string]*entry{},
		reviewed: map[types.UID]int64{},
		unswept:  map[schema.GroupResource]bool{}, wake: make(chan struct{}, 1), fresh: make(chan struct{}, 1),
		changed: map[types.UID]bool{}, ring: make(chan struct{}, 1),
	}
	a.metrics = newMetrics(a, options.Registry)
	send := notify.Options{
		Outbox: options.Store, Webhooks: options.Webhooks, Clock: options.Clock, Log: options.Log, Done: a.metrics.delivered,
	}
	if options.Events != nil {
		send.Event = newEventWriter(options).deliver
	}
	a.sender = notify.NewSender(send)
	return a, a.load(ctx)
}

// load takes up what was stored.
func (a *Alarms) load(ctx context.Context) error {
	values, err := a.options.Store.Values(ctx, rule.Prefix)
	if err != nil {
		return err
	}
	saved := make([]rule.Saved, len(values))
	for i, v := range values {
		saved[i] = rule.Saved{Key: v.Key, Data: v.Data}
	}
	batch := store.Batch{}
	for _, key := range a.engine.Load(saved) {
		batch.Values = append(batch.Values, store.Value{Key: key})
	}
	if n := len(batch.Values); n > 0 {
		a.options.Log.Error("states of rules cannot be read, and are forgotten", "count", n)
		batch.Values = batch.Values[:min(n, maxEffects)]
		if err := a.options.Store.Commit(ctx, batch); err != nil {
			return err
		}
	}
	return a.loadReviewed(ctx)
}

// Observe implements recorder.Observer.
func (a *Alarms) Observe(ctx context.Context, c recorder.Change) recorder.Effects {
	begin := a.options.Clock.Now()
	// What an expression may cost is bounded. A change whose rules were not asked would be stored without its alarms.
	effects, err := a.engine.Observe(context.WithoutCancel(ctx), rule.Observation{
		Kind: c.Kind, Records: c.Records, Before: c.Before, After: c.After, Object: c.Object, Health: c.Health, Time: c.Time,
	})
	if err != nil {
		a.options.Log.Error("rules cannot be evaluated", "kind", c.Kind.GroupResource().String(), "error", err.Error())
	}
	a.metrics.evaluation.Observe(a.options.Clock.Since(begin).Seconds())
	return a.take(&effects)
}

// take makes of effects what is stored, and says of which rules the status changed.
func (a *Alarms) take(effects *rule.Effects) recorder.Effects {
	stored := recorder.Effects{}
	for _, s := range effects.Saved {
		stored.Values = append(stored.Values, store.Value{Key: s.Key, Data: s.Data})
	}
	lost := 0
	for i := range effects.Alarms {
		alarm := &effects.Alarms[i]
		messages := notify.Messages(alarm, a.options.Webhooks, a.options.Source)
		room := max(0, maxEffects-len(stored.Values)-len(stored.Outbox))
		lost += max(0, len(messages)-room)
		stored.Outbox = append(stored.Outbox, messages[:min(len(messages), room)]...)
		if !alarm.Ended {
			a.metrics.raised(alarm)
		}
	}
	if lost > 0 {
		a.metrics.dropped.Add(int64(lost))
		a.options.Log.Error("one change has more alarms than can be stored with it", "messages", lost)
	}
	for _, uid := range effects.Changed {
		if a.engine.Fails(uid) && len(stored.Values) < maxEffects {
			stored.Values = append(stored.Values, store.Value{Key: reviewedName + string(uid)})
		}
	}
	a.changes(effects.Changed)
	if len(stored.Outbox) > 0 {
		stored.Stored = a.sender.Wake
	}
	return stored
}

// changes notes of which rules the status changed.
func (a *Alarms) changes(rules []types.UID) {
	if len(rules) == 0 {
		return
	}
	a.mutex.Lock()
	for _, uid := range rules {
		a.changed[uid] = true
	}
	a.mutex.Unlock()
	poke(a.ring)
}

// Changed waits until the status of rules has changed since the last call, and returns their names. The error is that of the
// context.
func (a *Alarms) Changed(ctx context.Context) ([]string, error) {
	for {
		if names := a.takeChanged(); len(names) > 0 {
			return names, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-a.ring:
		}
	}
}

func (a *Alarms) takeChanged() (names []string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for name, e := range a.rules {
		if a.changed[e.uid] {
			names = append(names, name)
		}
	}
	clear(a.changed)
	return names
}

// Run delivers messages, and follows time, until the context ends. Covered reports whether every change of a kind is seen as it
// happens: while it is not, no timer of the kind fires.
func (a *Alarms) Run(ctx context.Context, r Recorder, covered func(schema.GroupResource) bool) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { a.sender.Run(ctx) })
	group.Go(func() { a.follow(ctx, r, covered) })
	group.Go(func() { a.review(ctx, r) })
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
