package alarm

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/monitor/server"
)

// maxSummary bounds what a rule looks for, as it is shown.
const maxSummary = 300

// Rules implements server.Rules.
func (a *Alarms) Rules(context.Context) ([]api.Rule, error) {
	rules := []api.Rule{}
	for name, e := range a.entries() {
		one := api.Rule{
			Name: name, Severity: string(cmp.Or(e.spec.Severity, "Warning")), Summary: e.summary(),
			Firing: int64(a.engine.Status(e.uid).Firing),
		}
		if len(e.problems) > 0 {
			one.Problem = rule.Sentence(e.problems)
		}
		rules = append(rules, one)
	}
	slices.SortFunc(rules, func(x, y api.Rule) int { return cmp.Compare(x.Name, y.Name) })
	return rules, nil
}

// Alarms implements server.Rules: those that stand.
func (a *Alarms) Alarms(context.Context) ([]server.Alarm, error) {
	alarms := []server.Alarm{}
	for _, s := range a.engine.Standing() {
		alarms = append(alarms, server.Alarm{
			Rule: s.Rule, Severity: string(s.Severity), Message: s.Message,
			Kind:      schema.GroupResource{Group: s.Object.Group, Resource: s.Object.Resource},
			Namespace: s.Object.Namespace, Name: s.Object.Name, UID: s.Object.UID, Since: s.Since,
		})
	}
	return alarms, nil
}

// entries returns the rules by their names.
func (a *Alarms) entries() map[string]*entry {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	all := make(map[string]*entry, len(a.rules))
	for name, e := range a.rules {
		all[name] = e
	}
	return all
}

// summary says what a rule looks for.
func (e *entry) summary() string {
	s := &e.spec
	text := s.When
	add := func(part string) {
		if text != "" {
			text += ", and "
		}
		text += part
	}
	switch {
	case s.Changes != nil:
		add("changes too often")
	case s.Fight != nil:
		add("a field is rewritten in turn")
	case s.StuckDeletion != nil:
		add("is held while it is being deleted")
	}
	if s.For != "" {
		text += ", for " + string(s.For)
	}
	if s.Suspend {
		text += " (suspended)"
	}
	return rule.Text(text[:min(len(text), maxSummary)])
}
