package alarm

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// entry is a rule as it was told last.
type entry struct {
	uid        types.UID
	generation int64
	spec       slipwayv1alpha1.MonitorRuleSpec
	// rule is nil if there are problems.
	rule     *rule.Rule
	problems []rule.Problem
}

// Put takes up a rule, or another version of it. With problems it is not evaluated, and its alarms end.
func (a *Alarms) Put(m *slipwayv1alpha1.MonitorRule) []rule.Problem {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	e, changed := a.put(m)
	if changed {
		a.apply()
	}
	return e.problems
}

// Remove forgets a rule. Its alarms end.
func (a *Alarms) Remove(name string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if _, known := a.rules[name]; !known {
		return
	}
	delete(a.rules, name)
	a.apply()
}

// Replace tells all rules there are. From then on alarms end whose rules are not there.
func (a *Alarms) Replace(all []slipwayv1alpha1.MonitorRule) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	there := make(map[string]bool, len(all))
	changed := !a.known.Load()
	for i := range all {
		there[all[i].Name] = true
		if _, is := a.put(&all[i]); is {
			changed = true
		}
	}
	for name := range a.rules {
		if !there[name] {
			delete(a.rules, name)
			changed = true
		}
	}
	a.known.Store(true)
	if changed {
		a.apply()
	}
}

// put compiles a rule if it is another one than before.
func (a *Alarms) put(m *slipwayv1alpha1.MonitorRule) (*entry, bool) {
	if was := a.rules[m.Name]; was != nil && was.uid == m.UID && was.generation >= m.Generation {
		return was, false
	}
	e := &entry{uid: m.UID, generation: m.Generation, spec: *m.Spec.DeepCopy()}
	e.rule, e.problems = a.compiler.Compile(m)
	a.rules[m.Name] = e
	return e, true
}

// apply tells the engine. The mutex is held.
func (a *Alarms) apply() {
	rules := make([]*rule.Rule, 0, len(a.rules))
	for _, e := range a.rules {
		if e.rule != nil {
			rules = append(rules, e.rule)
		}
	}
	a.engine.SetRules(rules)
	for _, kind := range a.engine.Kinds() {
		a.unswept[kind] = true
	}
	poke(a.wake)
	poke(a.fresh)
}

// Status says how a rule does.
func (a *Alarms) Status(uid types.UID) rule.Status {
	status := a.engine.Status(uid)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, e := range a.rules {
		if e.uid == uid {
			status.Reviewed = a.reviewed[uid] == e.generation
		}
	}
	return status
}

// kindsAge is for how long the store is not asked again which kinds it knows: many rules ask.
const kindsAge = 5 * time.Second

// knownKinds returns the kinds of which something is known, with an error as they were when the store could be read last.
func (a *Alarms) knownKinds(ctx context.Context) ([]store.KindState, error) {
	a.kindsMutex.Lock()
	defer a.kindsMutex.Unlock()
	now := a.options.Clock.Now()
	if age := now.Sub(a.kindsRead); !a.kindsRead.IsZero() && age >= 0 && age < kindsAge {
		return a.kinds, a.kindsError
	}
	kinds, err := a.options.Store.KindsUncounted(ctx)
	if err == nil {
		a.kinds = kinds
	}
	a.kindsRead, a.kindsError = now, err
	return a.kinds, err
}

// UnknownKinds returns those of some kinds of which the monitor knows nothing. Patterns are none of them. With an error it is what was
// known before, and nothing if nothing was.
func (a *Alarms) UnknownKinds(ctx context.Context, kinds []slipwayv1alpha1.MonitoredKind) (unknown []string, err error) {
	if len(kinds) == 0 {
		return nil, nil
	}
	known, err := a.knownKinds(ctx)
	if err != nil && known == nil {
		return nil, err
	}
	for _, kind := range kinds {
		if strings.Contains(kind.Group+kind.Kind, "*") || slices.ContainsFunc(known, func(k store.KindState) bool {
			return k.Group == kind.Group && k.Kind.Kind == kind.Kind
		}) {
			continue
		}
		unknown = append(unknown, strings.TrimSuffix(kind.Kind+"."+kind.Group, "."))
	}
	return unknown, err
}

// UnknownWebhooks returns those of some names that are not configured.
func (a *Alarms) UnknownWebhooks(names []string) (unknown []string) {
	for _, name := range names {
		if a.options.Webhooks[name] == nil && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
