package server

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

// object answers with an object as it is, or as it was at a time.
func (s *server) object(r *request) (any, *api.View, error) {
	kind, asked, err := r.params.kind()
	if err != nil {
		return nil, nil, err
	}
	namespace, err := r.params.namespace()
	if err != nil {
		return nil, nil, err
	}
	at, err := r.params.time(paramAt, s.options.Clock.Now())
	if err != nil {
		return nil, nil, err
	}
	name := r.params[paramName]
	if !asked || name == "" {
		return nil, nil, failure.New(failure.BadRequest, "object needs a kind and a name")
	}
	if !r.rights.In(kind, namespace) {
		return nil, nil, notFound()
	}
	answer := &api.Object{Kind: kind.String(), Namespace: namespace, Name: name, UID: types.UID(r.params[paramUID]), At: at}
	if _, ok := r.kinds.all[kind]; ok {
		answer.View = s.viewOf(r.kinds, kind)
	} else {
		answer.View = s.viewOf(r.kinds)
	}
	if at.IsZero() {
		err = s.objectNow(r, kind, answer)
	} else {
		err = s.objectThen(r, kind, answer)
	}
	if err != nil {
		return nil, nil, err
	}
	return answer, &answer.View, nil
}

// lastChange looks for the last change of the object. All changes of it are in the namespace that the user may see, because the
// query says so.
func (s *server) lastChange(r *request, kind schema.GroupResource, of *api.Object) (*store.Change, error) {
	q := store.Query{
		Group: kind.Group, Resource: kind.Resource, Namespace: of.Namespace, Name: of.Name, UID: of.UID, Limit: 1, Allow: r.rights.share,
		Types: []change.Type{change.Baseline, change.Created, change.Updated, change.Deleted},
	}
	page, err := s.options.Store.Changes(r.Context(), q)
	if err != nil || len(page.Changes) == 0 || page.Changes[0].Namespace != of.Namespace {
		return nil, err
	}
	return &page.Changes[0], nil
}

func (s *server) objectNow(r *request, kind schema.GroupResource, answer *api.Object) error {
	last, err := s.lastChange(r, kind, answer)
	if err != nil {
		return err
	}
	if last != nil {
		answer.LastChange = &api.Change{Record: last.Record, ID: s.cursors.seal(last.Position)}
	}
	state, err := s.options.Store.StateNamed(r.Context(), kind, answer.Namespace, answer.Name)
	hidden := err == nil && !r.sees(kind, &state)
	gone := hidden || store.Is(err, store.NotFound) || err == nil && answer.UID != "" && state.UID != answer.UID
	switch {
	case gone && last == nil:
		return notFound()
	case gone:
		answer.UID = last.UID
		return nil
	case err != nil:
		return err
	}
	answer.Exists, answer.UID, answer.MetadataOnly, answer.Reason = true, state.UID, state.MetadataOnly, state.Reason
	answer.Object = state.Body
	if !state.MetadataOnly {
		answer.Health, answer.Conditions = s.healthNow(kind, &state), conditionsOf(&state)
	}
	_, owners := s.judge(kind, &state, s.options.Clock.Now())
	s.owners(r, answer, owners)
	return s.children(r, answer)
}

// objectThen puts an object together as it was.
func (s *server) objectThen(r *request, kind schema.GroupResource, answer *api.Object) error {
	last, err := s.lastChange(r, kind, answer)
	if err != nil {
		return err
	}
	if last == nil {
		return notFound()
	}
	if answer.UID == "" {
		uid, err := s.uidThen(r, kind, answer)
		if err != nil {
			return err
		}
		answer.UID = uid
	}
	past, err := s.options.Store.Object(r.Context(), kind, answer.UID, answer.At)
	if err != nil {
		return err
	}
	// The UID may be that of the user's invention, of an object somewhere else.
	if past.Change.Position != "" && (past.Change.Namespace != answer.Namespace || past.Change.Name != answer.Name) {
		return notFound()
	}
	if past.Change.Position != "" {
		answer.LastChange = &api.Change{Record: past.Change.Record, ID: s.cursors.seal(past.Change.Position)}
	}
	answer.Exists, answer.Object = past.Body != nil, past.Body
	if past.Body != nil {
		state := change.State{Body: past.Body}
		answer.Conditions = conditionsOf(&state)
		_, owners := s.judge(kind, &state, time.Time{})
		s.owners(r, answer, owners)
	}
	return nil
}

// uidThen finds out which object had the name at that time: the one that changed last before, or else first after.
func (s *server) uidThen(r *request, kind schema.GroupResource, answer *api.Object) (types.UID, error) {
	q := store.Query{
		Group: kind.Group, Resource: kind.Resource, Namespace: answer.Namespace, Name: answer.Name, Until: answer.At.Add(1), Limit: 1,
		Allow: r.rights.share,
	}
	page, err := s.options.Store.Changes(r.Context(), q)
	if err == nil && len(page.Changes) == 0 {
		q.Until, q.Since, q.OldestFirst = time.Time{}, answer.At, true
		page, err = s.options.Store.Changes(r.Context(), q)
	}
	if err != nil {
		return "", err
	}
	if len(page.Changes) == 0 {
		return "", notFound()
	}
	return page.Changes[0].UID, nil
}

// owners lists the owners. Their names stand in the object, so they are no news; how they do is.
func (s *server) owners(r *request, answer *api.Object, owners []owner) {
	for i, o := range owners {
		if i == standardObjects {
			answer.Incomplete = append(answer.Incomplete, "it has more owners than are listed")
			return
		}
		relative := api.Relative{APIVersion: o.APIVersion, KindName: o.Kind, Name: o.Name}
		s.follow(r, answer.Namespace, &o, &relative)
		answer.Owners = append(answer.Owners, relative)
	}
}

// follow finds the owner among the kinds that the user may list, and says how it does.
func (s *server) follow(r *request, namespace string, o *owner, relative *api.Relative) {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group = ""
	}
	for name, kind := range r.kinds.all {
		if kind.Group != group || kind.Kind != o.Kind {
			continue
		}
		in := namespace
		if !kind.Namespaced {
			in = ""
		}
		if !r.rights.In(name, in) {
			continue
		}
		relative.Kind, relative.Namespace = name.String(), in
		state, err := s.options.Store.StateNamed(r.Context(), name, in, o.Name)
		if err == nil && state.UID == o.UID && r.sees(name, &state) {
			relative.Health = s.healthNow(name, &state)
		}
	}
}
