package server

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

const (
	standardObjects = 200
	maxObjects      = 2000
)

// health answers with how many objects are in which state, and with those that are not healthy.
func (s *server) health(r *request) (any, *api.View, error) {
	namespace, err := r.params.namespace()
	if err != nil {
		return nil, nil, err
	}
	all, err := r.params.flag(paramAll, false)
	if err != nil {
		return nil, nil, err
	}
	limit, err := r.params.number(paramLimit, standardObjects, maxObjects)
	if err != nil {
		return nil, nil, err
	}
	names, err := r.healthKinds(namespace)
	if err != nil {
		return nil, nil, err
	}
	answer := &api.HealthSummary{
		View: s.viewOf(r.kinds, names...), Counts: map[string]int64{}, Kinds: []api.KindHealth{}, Objects: []api.ObjectHealth{},
	}
	s.index.forget(r.kinds)
	list := &objectList{answer: answer, limit: limit, namespace: namespace}
	for _, name := range names {
		if err := s.addKind(r, list, name, all); err != nil {
			return nil, nil, err
		}
	}
	if list.cut {
		answer.Incomplete = append(answer.Incomplete, "there are more objects than are listed: name a kind or a namespace")
	}
	if r.rights.Incomplete() {
		answer.Incomplete = append(answer.Incomplete, tooManyQuestions)
	}
	return answer, &answer.View, nil
}

// healthKinds returns the kinds that are asked for: one, or all that the user may list in the namespace.
func (r *request) healthKinds(namespace string) ([]schema.GroupResource, error) {
	kind, asked, err := r.params.kind()
	if err != nil {
		return nil, err
	}
	if !asked {
		return sorted(r.visible(namespace)), nil
	}
	if !r.maySee(kind, namespace) {
		return nil, notFound()
	}
	if _, ok := r.kinds.all[kind]; !ok {
		return nil, notFound()
	}
	return []schema.GroupResource{kind}, nil
}

// objectList collects objects up to a limit.
type objectList struct {
	answer    *api.HealthSummary
	namespace string
	limit     int
	cut       bool
}

func (s *server) addKind(r *request, list *objectList, name schema.GroupResource, all bool) error {
	kind := r.kinds.all[name]
	if list.namespace != "" && !kind.Namespaced {
		return nil
	}
	known, err := s.index.lookUp(r.Context(), r.kinds, name)
	if err != nil {
		return err
	}
	s.aged(&list.answer.View, r.kinds, name, known)
	one := api.KindHealth{Kind: name.String(), Counts: map[string]int64{}}
	for namespace, members := range known.members {
		if list.namespace != "" && namespace != list.namespace {
			continue
		}
		share := r.rights.share(name, namespace)
		for i := range members {
			if state := string(members[i].state); share.All || share.Of.Has(members[i].origin(known.checkpoint)) {
				one.Counts[state]++
				list.answer.Counts[state]++
			}
		}
	}
	if len(one.Counts) > 0 {
		list.answer.Kinds = append(list.answer.Kinds, one)
	}
	if all {
		return s.addAll(r, list, name, kind.Kind)
	}
	list.cut = list.cut || known.cut
	for i := range known.troubled {
		list.add(r, name, kind.Kind, &known.troubled[i])
	}
	return nil
}

// addAll lists the healthy ones, too.
func (s *server) addAll(r *request, list *objectList, name schema.GroupResource, kindName string) error {
	now := s.options.Clock.Now()
	for state, err := range s.options.Store.StatesOf(r.Context(), name) {
		if err != nil && !store.Is(err, store.Corrupt) {
			return err
		}
		if list.cut {
			return nil
		}
		verdict, _ := s.judge(name, &state, now)
		list.add(r, name, kindName, &judged{state.Namespace, state.Name, originOf(&state, r.kinds.checkpoints[name]), healthOf(verdict)})
	}
	return nil
}

func (l *objectList) add(r *request, name schema.GroupResource, kindName string, one *judged) {
	if l.namespace != "" && one.namespace != l.namespace || !r.rights.sees(name, one.namespace, one.origin) {
		return
	}
	if len(l.answer.Objects) >= l.limit {
		l.cut = true
		return
	}
	l.answer.Objects = append(l.answer.Objects, api.ObjectHealth{
		Kind: name.String(), KindName: kindName, Namespace: one.namespace, Name: one.name, Health: one.verdict,
	})
}

// conditionsOf returns the conditions of an object, as far as they have the usual form.
func conditionsOf(state *change.State) []api.Condition {
	object, err := state.Object()
	if err != nil {
		return nil
	}
	list, _, _ := unstructured.NestedFieldNoCopy(object, "status", "conditions")
	items, _ := list.([]any)
	var conditions []api.Condition
	for _, item := range items {
		fields, _ := item.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		conditions = append(conditions, api.Condition{
			Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message"), Since: text("lastTransitionTime"),
		})
	}
	return conditions
}

// relatives of an object that the user may list.
func (s *server) children(r *request, answer *api.Object) error {
	for _, name := range sorted(r.visible(answer.Namespace)) {
		known, err := s.index.lookUp(r.Context(), r.kinds, name)
		if err != nil {
			return err
		}
		s.aged(&answer.View, r.kinds, name, known)
		for i := range known.children[answer.UID] {
			child := &known.children[answer.UID][i]
			if !r.rights.sees(name, child.namespace, child.origin) {
				continue
			}
			if len(answer.Children) >= standardObjects {
				answer.Incomplete = append(answer.Incomplete, "it has more children than are listed")
				return nil
			}
			answer.Children = append(answer.Children, api.Relative{
				Kind: name.String(), KindName: known.kindName, Namespace: child.namespace, Name: child.name, Health: &child.verdict,
			})
		}
	}
	slices.SortStableFunc(answer.Children, func(a, b api.Relative) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// healthNow says how the state of an object does.
func (s *server) healthNow(kind schema.GroupResource, state *change.State) *api.Health {
	verdict, _ := s.judge(kind, state, s.options.Clock.Now())
	answer := healthOf(verdict)
	if answer.State == "" {
		answer.State = string(health.Unknown)
	}
	return &answer
}
