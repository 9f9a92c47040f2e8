package rule

import (
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Engine evaluates rules. It does no I/O and has no clock: it is told what happened and when, and returns what has to be stored
// and who has to be told. It is safe for concurrent use, and kinds do not wait for each other.
//
// What a call returns must be stored in the order of the calls for a kind. When it cannot be, a new engine has to be loaded.
type Engine struct {
	set    atomic.Pointer[Set]
	mutex  sync.Mutex
	shards map[schema.GroupResource]*shard
	wake   chan struct{}
}

// Observation is what became known of one object at one time.
type Observation struct {
	// Kind is its kind.
	Kind change.Kind
	// Records are what happened. None: time has passed, health has changed, or a rule is new.
	Records []change.Record
	// Before and After are the states, After nil if it is gone.
	Before, After *change.State
	// Object is After, decoded, or nil. It is not changed.
	Object map[string]any
	// Health is how the object does.
	Health health.Verdict
	// Time is now.
	Time time.Time
}

// Effects are what follows.
type Effects struct {
	// Saved are states to store, and keys to delete.
	Saved []Saved
	// Alarms are raised, or have ended.
	Alarms []Alarm
	// Look are objects whose state has to be read and observed, without records.
	Look []Object
	// Changed are rules of which Status says something else than before. One may be there twice.
	Changed []types.UID
}

// NewEngine makes an engine without rules.
func NewEngine() *Engine {
	e := &Engine{shards: map[schema.GroupResource]*shard{}, wake: make(chan struct{}, 1)}
	e.set.Store(NewSet(nil))
	return e
}

// Load takes up what was stored. It returns the keys of what cannot be read: they may be deleted.
func (e *Engine) Load(saved []Saved) (damaged []string) {
	for _, one := range saved {
		uid, s, err := restore(one)
		if err != nil {
			damaged = append(damaged, one.Key)
			continue
		}
		// When it is due is not stored. It is looked at once, and says so.
		s.due = time.Unix(0, 0)
		sh := e.lock(schema.GroupResource{Group: s.Object.Group, Resource: s.Object.Resource})
		sh.put(uid, s)
		sh.mutex.Unlock()
	}
	e.ring()
	return damaged
}

// SetRules replaces all rules. It returns those that are new or look for something else than before: for these the objects that
// are there have to be observed, without records. Sweep ends the alarms of those that are gone.
func (e *Engine) SetRules(rules []*Rule) (changed []*Rule) {
	next := NewSet(rules)
	before := e.set.Swap(next)
	for _, r := range next.active {
		if was := before.find(r.UID); was == nil || was.Generation != r.Generation {
			changed = append(changed, r)
		}
	}
	return changed
}

// Kinds are the kinds of which something is remembered.
func (e *Engine) Kinds() []schema.GroupResource {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return slices.Collect(maps.Keys(e.shards))
}

// Wake yields when something became due sooner than before.
func (e *Engine) Wake() <-chan struct{} { return e.wake }

func (e *Engine) ring() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// lock returns what is remembered of a kind, locked.
func (e *Engine) lock(kind schema.GroupResource) *shard {
	for {
		sh := e.shard(kind)
		sh.mutex.Lock()
		if !sh.dropped {
			return sh
		}
		sh.mutex.Unlock()
	}
}

func (e *Engine) shard(kind schema.GroupResource) *shard {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	sh := e.shards[kind]
	if sh == nil {
		sh = &shard{
			states: map[types.UID]map[types.UID]*state{}, failing: map[types.UID]map[types.UID]failure{},
			lastFired: map[types.UID]time.Time{},
		}
		e.shards[kind] = sh
	}
	return sh
}

// drop forgets a kind of which nothing is remembered: definitions may come and go with ever new names. The shard is locked.
func (e *Engine) drop(kind schema.GroupResource, sh *shard) {
	if !sh.isEmpty() {
		return
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	sh.dropped = true
	delete(e.shards, kind)
}

// Observe says what follows from what became known of an object. The only error is that of the context: then the same has to be
// observed again.
func (e *Engine) Observe(ctx context.Context, o Observation) (Effects, error) {
	sh := e.lock(o.Kind.GroupResource())
	defer sh.mutex.Unlock()
	l := look{engine: e, shard: sh, o: &o}
	for i := range o.Records {
		if r := &o.Records[i]; r.Type == change.Deleted {
			l.gone(r.UID)
			if o.After != nil && o.After.UID == r.UID {
				o.After = nil
			}
		}
	}
	if o.After == nil {
		if o.Before != nil {
			l.gone(o.Before.UID)
		}
		e.drop(o.Kind.GroupResource(), sh)
		e.set.Load().forget(o.Kind.Group, o.Kind.Kind)
		return l.effects, nil
	}
	l.variables = &variables{o: &o}
	for _, r := range e.set.Load().For(o.Kind.Group, o.Kind.Kind) {
		if err := l.at(ctx, r); err != nil {
			return Effects{}, err
		}
	}
	l.apply()
	return l.effects, nil
}

// Tick says what follows from the time for a kind, at most for some states at a time: as long as Next is not after now there are
// more. Call it only while the kind is followed, or what happened meanwhile is not known.
func (e *Engine) Tick(kind schema.GroupResource, now time.Time) Effects {
	sh := e.lock(kind)
	defer sh.mutex.Unlock()
	l := look{engine: e, shard: sh}
	set := e.set.Load()
	for _, d := range sh.dueAt(now, maxTick) {
		r, s := set.find(d.rule), sh.states[d.rule][d.object]
		if r == nil || !r.IsAbout(s.Object.Group, s.Object.Kind) {
			l.sweep(d.rule, s, set, now)
			continue
		}
		next := s.clone()
		if next.Print != r.print || next.Look != 0 && !now.Before(at(next.Look)) {
			l.effects.Look = append(l.effects.Look, next.Object)
			// Until it was read it waits, but not for ever.
			next.due = now.Add(time.Minute)
			sh.put(d.rule, next)
			continue
		}
		l.keep(r, next, (&step{rule: r, state: next, now: now, begun: now}).run(), s)
	}
	l.apply()
	return l.effects
}

// Next is when Tick has something to do for a kind, the zero time if never.
func (e *Engine) Next(kind schema.GroupResource) time.Time {
	sh := e.lock(kind)
	defer sh.mutex.Unlock()
	return sh.next()
}

// Sweep ends the alarms of a kind whose rules are gone, suspended, or not about it any more.
func (e *Engine) Sweep(kind schema.GroupResource, now time.Time) Effects {
	sh := e.lock(kind)
	defer sh.mutex.Unlock()
	l := look{engine: e, shard: sh}
	set := e.set.Load()
	for uid, states := range sh.states {
		r := set.find(uid)
		for _, s := range states {
			if r == nil || !r.IsAbout(s.Object.Group, s.Object.Kind) {
				l.sweep(uid, s, set, now)
			}
		}
	}
	for uid, objects := range sh.failing {
		r := set.find(uid)
		for _, f := range objects {
			if r == nil || !r.IsAbout(f.object.Group, f.object.Kind) {
				l.fails(uid, f.object, nil)
			}
		}
	}
	l.apply()
	return l.effects
}

// maxTick is how many states one Tick looks at.
const maxTick = 500

// timer is when a state is due. It counts only if the state says the same.
type timer struct {
	at           time.Time
	rule, object types.UID
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

var _ heap.Interface = (*timers)(nil)
