package server

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/api"
)

// listKinds answers with the kinds that the user may list.
func (s *server) listKinds(r *request) (any, *api.View, error) {
	namespace, err := r.params.namespace()
	if err != nil {
		return nil, nil, err
	}
	visible := sorted(r.visible(namespace))
	answer := &api.Kinds{View: s.viewOf(r.kinds, visible...), Kinds: []api.Kind{}}
	for _, name := range visible {
		kind := r.kinds.all[name]
		one := api.Kind{
			Name: name.String(), Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Resource: kind.Resource,
			Namespaced: kind.Namespaced, State: "NotFollowed",
		}
		if covered := r.kinds.covered[name]; covered != nil {
			one.State = string(covered.State)
		}
		if r.rights.Everywhere(name) {
			n := r.kinds.objects[name]
			one.Objects = &n
		}
		answer.Kinds = append(answer.Kinds, one)
	}
	return answer, &answer.View, nil
}

// coverage answers with how the kinds that the user may list are covered.
func (s *server) coverage(r *request) (any, *api.View, error) {
	namespace, err := r.params.namespace()
	if err != nil {
		return nil, nil, err
	}
	visible := sorted(r.visible(namespace))
	answer := &api.Coverage{
		View: s.viewOf(r.kinds, visible...), Complete: r.kinds.coverage.Complete, States: map[string]int{}, Kinds: []api.Covered{},
	}
	for _, name := range visible {
		one := r.kinds.covered[name]
		if one == nil {
			continue
		}
		answer.States[string(one.State)]++
		answer.Kinds = append(answer.Kinds, api.Covered{
			Name: name.String(), Version: one.Kind.Version, State: string(one.State), Since: one.Since, Reason: one.Reason,
			LastHeard: one.LastSeen, Lag: one.Lag.Seconds(), Gaps: one.Counts.Gaps,
		})
	}
	return answer, &answer.View, nil
}

func sorted(names []schema.GroupResource) []schema.GroupResource {
	slices.SortFunc(names, func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return names
}
