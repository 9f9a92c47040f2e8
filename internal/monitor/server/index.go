package server

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/text"
)

const (
	// indexedFor is how long what is known of a kind counts, though something of it was stored since: an answer says so. judgedFor is
	// how long it counts at most.
	indexedFor = 10 * time.Second
	judgedFor  = time.Minute
	// maxTroubled and maxOwned bound what is kept of a kind.
	maxTroubled = 2000
	maxOwned    = 50_000
	// maxMessage is how many bytes of a message are kept.
	maxMessage = 300
)

// index has what is asked for about all objects of a kind: how they do, and to whom they belong. A kind is read when somebody
// asks for it, and read again when something of it was stored since, one kind at a time.
type index struct {
	server *server
	turn   chan struct{}

	mutex sync.Mutex
	kinds map[schema.GroupResource]*indexed
}

// indexed is what is known of a kind. It does not change.
type indexed struct {
	made, stored time.Time
	// due is when time alone changes how one of the objects does, zero if never.
	due      time.Time
	kindName string
	// checkpoint is the resource version up to which everything of the kind was stored before it was read.
	checkpoint string
	// members are all objects, by namespace.
	members map[string][]member
	// troubled are objects that are not healthy.
	troubled []judged
	// children are objects by the UIDs of their owners.
	children map[types.UID][]judged
	cut      bool
}

// member is how an object does, and what is known of its origin.
type member struct {
	created time.Time
	version string
	state   health.State
}

func (m *member) origin(checkpoint string) change.Origin {
	return change.Origin{Created: m.created, Versions: []string{m.version, checkpoint}}
}

// judged is an object and how it does.
type judged struct {
	namespace, name string
	origin          change.Origin
	verdict         api.Health
}

func newIndex(s *server) *index {
	return &index{server: s, turn: make(chan struct{}, 1), kinds: map[schema.GroupResource]*indexed{}}
}

// lookUp returns what is known of one of the kinds.
func (x *index) lookUp(ctx context.Context, k *kinds, name schema.GroupResource) (*indexed, error) {
	kind, stored := k.all[name], k.stored[name]
	if known := x.fresh(kind.GroupResource(), stored); known != nil {
		return known, nil
	}
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	// Another request may have read it meanwhile.
	if known := x.fresh(kind.GroupResource(), stored); known != nil {
		return known, nil
	}
	made, err := x.read(ctx, kind, stored, k.checkpoints[name])
	if err != nil {
		return nil, err
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.kinds[kind.GroupResource()] = made
	return made, nil
}

func (x *index) fresh(kind schema.GroupResource, stored time.Time) *indexed {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	known := x.kinds[kind]
	if known == nil {
		return nil
	}
	now := x.server.options.Clock.Now()
	if now.Sub(known.made) < indexedFor || known.holds(now, stored) && now.Sub(known.made) < judgedFor {
		return known
	}
	return nil
}

// holds reports whether what is known is what would be read now: nothing of the kind was stored since, and time has changed no verdict.
func (i *indexed) holds(now, stored time.Time) bool {
	return i.stored.Equal(stored) && (i.due.IsZero() || now.Before(i.due))
}

// age is by how much what is known may be older than what is stored.
func (i *indexed) age(now, stored time.Time) time.Duration {
	if i.holds(now, stored) {
		return 0
	}
	return max(now.Sub(i.made), 0)
}

// forget drops kinds of which nothing is stored any more.
func (x *index) forget(k *kinds) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	for kind := range x.kinds {
		if _, ok := k.stored[kind]; !ok {
			delete(x.kinds, kind)
		}
	}
}

func (x *index) read(ctx context.Context, kind change.Kind, stored time.Time, checkpoint string) (*indexed, error) {
	now := x.server.options.Clock.Now()
	made := &indexed{
		made: now, stored: stored, kindName: kind.Kind, checkpoint: checkpoint, members: map[string][]member{},
		children: map[types.UID][]judged{},
	}
	owned := 0
	for state, err := range x.server.options.Store.StatesOf(ctx, kind.GroupResource()) {
		if err != nil && !store.Is(err, store.Corrupt) {
			return nil, err
		}
		verdict, owners := x.server.judge(kind.GroupResource(), &state, now)
		if !verdict.Due.IsZero() && (made.due.IsZero() || verdict.Due.Before(made.due)) {
			made.due = verdict.Due
		}
		made.members[state.Namespace] = append(made.members[state.Namespace], member{state.Created, state.ResourceVersion, verdict.State})
		one := judged{state.Namespace, state.Name, originOf(&state, checkpoint), healthOf(verdict)}
		if verdict.State != health.Healthy {
			if len(made.troubled) < maxTroubled {
				made.troubled = append(made.troubled, one)
			} else {
				made.cut = true
			}
		}
		for _, owner := range owners {
			if owned++; owned > maxOwned {
				made.cut = true
				break
			}
			made.children[owner.UID] = append(made.children[owner.UID], one)
		}
	}
	return made, ctx.Err()
}

// owner is an owner as an object names it.
type owner struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
}

// judge says how an object does, and to whom it belongs.
func (s *server) judge(kind schema.GroupResource, state *change.State, now time.Time) (health.Verdict, []owner) {
	var meta struct {
		Metadata struct {
			OwnerReferences []owner `json:"ownerReferences"`
		} `json:"metadata"`
	}
	// Owners that cannot be read are none.
	_ = json.Unmarshal(state.Body, &meta)
	_, verdict := recorder.Judge(state, health.Options{Now: now, HasNoStatus: s.options.HasNoStatus != nil && s.options.HasNoStatus(kind)})
	return verdict, meta.Metadata.OwnerReferences
}

func healthOf(v health.Verdict) api.Health {
	return api.Health{
		State: string(v.State), Reason: text.Cut(v.Reason, maxMessage), Message: text.Cut(v.Message, maxMessage),
		Field: text.Cut(v.Field, maxMessage), Value: text.Cut(v.Value, maxMessage),
	}
}
