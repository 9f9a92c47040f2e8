package alarm

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
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
func (a *Alarms) Status(uid types.UID) rule.Status { return a.engine.Status(uid) }

// UnknownWebhooks returns those of some names that are not configured.
func (a *Alarms) UnknownWebhooks(names []string) (unknown []string) {
	for _, name := range names {
		if a.options.Webhooks[name] == nil && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
