package recorder

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// ObjectHealth is how an object does, as it is stored. It is made of the redacted object, so it holds no secret.
type ObjectHealth struct {
	Namespace string       `json:"namespace,omitempty"`
	Name      string       `json:"name"`
	UID       types.UID    `json:"uid"`
	State     health.State `json:"state"`
	Reason    string       `json:"reason,omitempty"`
	Message   string       `json:"message,omitempty"`
	Field     string       `json:"field,omitempty"`
	Value     string       `json:"value,omitempty"`
	Layer     health.Layer `json:"layer,omitempty"`
	// Since is when the object began to be in that state, as far as it was seen.
	Since time.Time `json:"since"`
	// Due is when time alone changes the state.
	Due time.Time `json:"due,omitzero"`
}

const (
	healthName = "health/"
	// unreadable is the reason of an object of which there is only the metadata.
	unreadable = "NotRead"
)

func healthPrefix(key schema.GroupResource) string { return healthName + key.String() + "/" }

// Healths returns how all objects of a kind do, by their UIDs.
func Healths(ctx context.Context, s *store.Store, key schema.GroupResource) ([]ObjectHealth, error) {
	values, err := s.Values(ctx, healthPrefix(key))
	if err != nil {
		return nil, err
	}
	all := make([]ObjectHealth, 0, len(values))
	for _, v := range values {
		one := ObjectHealth{}
		if json.Unmarshal(v.Data, &one) == nil {
			all = append(all, one)
		}
	}
	return all, nil
}

// Judge says how an object does, of its last state. Whoever asks gets the same answer: rules, alarms and the HTTP API.
func Judge(state *change.State, options health.Options) (map[string]any, health.Verdict) {
	object, err := state.Object()
	if err != nil || state.MetadataOnly {
		return object, health.Verdict{
			State: health.Unknown, Reason: unreadable, Message: "the object is not read: " + state.Reason, Layer: health.LayerGeneric,
		}
	}
	return object, health.Evaluate(object, options)
}

func (j *journal) judge(state *change.State, now time.Time) (map[string]any, health.Verdict) {
	return Judge(state, health.Options{Now: now, Profiles: j.recorder.options.Profiles, HasNoStatus: j.noStatus.Load()})
}

// HasNoStatus reports whether the definition of a kind that is followed gives its objects no status.
func (r *Recorder) HasNoStatus(kind schema.GroupResource) bool {
	j := r.followed(kind)
	return j != nil && j.noStatus.Load()
}

// healthBook holds a few bytes of how each object of a kind does. The rest is stored.
type healthBook struct {
	loaded bool
	mutex  sync.Mutex
	known  map[shortKey]healthMark
}

type healthMark struct {
	hash  uint64
	state uint8
}

var healthStates = []health.State{"", health.Healthy, health.Progressing, health.Failed, health.Terminating, health.Unknown}

func numberOf(state health.State) uint8 {
	for i, known := range healthStates {
		if known == state {
			return uint8(i)
		}
	}
	return 0
}

// load reads what is stored.
func (b *healthBook) load(ctx context.Context, j *journal) error {
	all, err := Healths(ctx, j.recorder.store, j.key)
	if err != nil {
		return err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.known = map[shortKey]healthMark{}
	for i := range all {
		b.known[shorten(all[i].UID)] = healthMark{hash: all[i].hash(), state: numberOf(all[i].State)}
		j.recorder.due.set(objectKey{j.key, all[i].UID}, all[i].Due)
	}
	b.loaded = true
	return nil
}

// hash tells one verdict from another, whenever it was found.
func (h *ObjectHealth) hash() uint64 {
	return hashOf(
		string(h.State) + "\x00" + h.Reason + "\x00" + h.Message + "\x00" + h.Field + "\x00" + h.Value + "\x00" + h.Due.UTC().String(),
	)
}

// set writes down how an object does. moved reports whether it is in another state than before.
func (b *healthBook) set(j *journal, e *entry, of *change.State, v health.Verdict, now time.Time) (before health.State, moved bool) {
	next := ObjectHealth{
		Namespace: of.Namespace, Name: of.Name, UID: of.UID, State: v.State, Reason: v.Reason, Message: v.Message, Field: v.Field,
		Value: v.Value,
		Layer: v.Layer, Since: now, Due: v.Due,
	}
	hash := next.hash()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	key := shorten(of.UID)
	was, found := b.known[key]
	before = healthStates[was.state]
	if found && was.hash == hash {
		return before, false
	}
	if b.known == nil {
		b.known = map[shortKey]healthMark{}
	}
	b.known[key] = healthMark{hash: hash, state: numberOf(v.State)}
	j.recorder.due.set(objectKey{j.key, of.UID}, v.Due)
	data, err := json.Marshal(next)
	if err == nil {
		e.values = append(e.values, store.Value{Key: healthPrefix(j.key) + string(of.UID), Data: data})
	}
	return before, found && before != v.State
}

// drop forgets an object that is gone.
func (b *healthBook) drop(j *journal, e *entry, uid types.UID) health.State {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	j.recorder.due.set(objectKey{j.key, uid}, time.Time{})
	key := shorten(uid)
	was, found := b.known[key]
	if !found {
		return ""
	}
	delete(b.known, key)
	e.values = append(e.values, store.Value{Key: healthPrefix(j.key) + string(uid)})
	return healthStates[was.state]
}

// followTime judges objects again when their time has come.
func (r *Recorder) followTime(ctx context.Context) {
	for ctx.Err() == nil {
		key, wait, found := r.due.next(r.clock.Now())
		if found {
			r.judgeAgain(ctx, key)
			continue
		}
		timer := r.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-r.due.woken:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// judgeAgain judges an object that has not changed.
func (r *Recorder) judgeAgain(ctx context.Context, key objectKey) {
	r.mutex.Lock()
	j := r.journals[key.kind]
	r.mutex.Unlock()
	if j == nil || j.pipe.reserve(ctx, entryBytes) != nil {
		return
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	state, err := j.before(ctx, key.uid)
	if err != nil || state == nil {
		j.pipe.release(entryBytes)
		return
	}
	e := entry{weight: entryBytes}
	j.observe(ctx, &e, state, state, change.Context{Kind: j.kind, Time: r.clock.Now()})
	if e.empty() {
		j.pipe.release(entryBytes)
		return
	}
	j.pipe.add(j.kind, e)
}
