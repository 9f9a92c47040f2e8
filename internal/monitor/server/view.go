package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// maxUncovered is how many kinds that are not covered are named.
const maxUncovered = 20

// viewOf writes a view.
type viewOf api.View

func (v *viewOf) write(header http.Header) {
	header.Set(api.LagHeader, strconv.FormatFloat(v.Lag, 'f', 3, 64))
	header.Set(api.UncoveredHeader, strconv.Itoa(v.UncoveredCount))
}

// kinds are the kinds that are followed, or were, as they are at the time of a request.
type kinds struct {
	coverage supervisor.Coverage
	covered  map[schema.GroupResource]*supervisor.KindCoverage
	// all are those that are followed and those of which the history has states.
	all     map[schema.GroupResource]change.Kind
	objects map[schema.GroupResource]int64
	stored  map[schema.GroupResource]time.Time
	// checkpoints are the resource versions up to which everything of a kind is stored.
	checkpoints map[schema.GroupResource]string
}

func (s *server) readKinds(ctx context.Context) (*kinds, error) {
	stored, err := s.options.Store.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	k := &kinds{
		coverage: s.options.Coverage.Coverage(), covered: map[schema.GroupResource]*supervisor.KindCoverage{},
		all: map[schema.GroupResource]change.Kind{}, objects: map[schema.GroupResource]int64{},
		stored:      map[schema.GroupResource]time.Time{},
		checkpoints: map[schema.GroupResource]string{},
	}
	for i := range stored {
		name := stored[i].GroupResource()
		k.all[name], k.objects[name], k.stored[name] = stored[i].Kind, stored[i].Objects, stored[i].Committed
		k.checkpoints[name] = stored[i].Checkpoint
	}
	for i := range k.coverage.Kinds {
		one := &k.coverage.Kinds[i]
		k.covered[one.Kind.GroupResource()], k.all[one.Kind.GroupResource()] = one, one.Kind
	}
	return k, nil
}

// names returns the kinds.
func (k *kinds) names() []schema.GroupResource {
	names := make([]schema.GroupResource, 0, len(k.all))
	for name := range k.all {
		names = append(names, name)
	}
	return names
}

// visible returns the kinds that the user may list: in a namespace, or everywhere if it is empty.
func (r *request) visible(namespace string) []schema.GroupResource {
	names := r.kinds.names()
	r.rights.Prepare(names)
	var visible []schema.GroupResource
	for _, name := range names {
		if r.maySee(name, namespace) {
			visible = append(visible, name)
		}
	}
	return visible
}

// maySee reports whether the user may list a kind in a namespace. Of a kind without namespaces the namespace does not count: a
// right in a namespace gives none to it.
func (r *request) maySee(kind schema.GroupResource, namespace string) bool {
	known, ok := r.kinds.all[kind]
	if ok && !known.Namespaced {
		namespace = ""
	}
	return r.rights.In(kind, namespace)
}

// sees reports whether the user may see an object that has a last state. The checkpoint of its kind is older than the state.
func (r *request) sees(kind schema.GroupResource, state *change.State) bool {
	return r.rights.sees(kind, state.Namespace, originOf(state, r.kinds.checkpoints[kind]))
}

// originOf says what is known of the origin of an object that had a state when everything up to a checkpoint was stored.
func originOf(state *change.State, checkpoint string) change.Origin {
	return change.Origin{Created: state.Created, Versions: []string{state.ResourceVersion, checkpoint}}
}

// viewOf says how old is what is known of some kinds.
func (s *server) viewOf(k *kinds, of ...schema.GroupResource) api.View {
	view := api.View{Time: s.options.Clock.Now(), Complete: true}
	for _, name := range of {
		one := k.covered[name]
		if one == nil {
			uncovered(&view, -1, api.Uncovered{Kind: name.String(), State: "NotFollowed", Reason: "it is not followed any more"})
			continue
		}
		lag := one.Lag.Seconds()
		if one.State == supervisor.Live {
			behind(&view, lag)
			continue
		}
		if one.LastSeen.IsZero() {
			lag = -1
		} else {
			lag = max(lag, view.Time.Sub(one.LastSeen).Seconds())
		}
		uncovered(&view, lag, api.Uncovered{Kind: name.String(), State: string(one.State), Since: one.Since, Reason: one.Reason})
	}
	return view
}

// behind takes the lag of a kind. What was never heard of is behind everything.
func behind(view *api.View, lag float64) {
	if lag < 0 || view.Lag < 0 {
		view.Lag = -1
		return
	}
	view.Lag = max(view.Lag, lag)
}

// aged takes into a view that what is known of a kind is older than what is stored of it.
func (s *server) aged(view *api.View, k *kinds, name schema.GroupResource, known *indexed) {
	age := known.age(s.options.Clock.Now(), k.stored[name])
	if age == 0 {
		return
	}
	if one := k.covered[name]; one != nil {
		age += max(one.Lag, 0)
	}
	behind(view, age.Seconds())
}

func uncovered(view *api.View, lag float64, one api.Uncovered) {
	behind(view, lag)
	view.Complete = false
	view.UncoveredCount++
	if len(view.Uncovered) < maxUncovered {
		view.Uncovered = append(view.Uncovered, one)
	}
}
