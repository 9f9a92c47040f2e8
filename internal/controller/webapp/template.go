package webapp

import (
	"encoding/json"
	"fmt"
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// findWanted returns the revision that the spec asks for. One that was applied before is
// taken as it was stored, template and all: another release of the operator may build
// another template of the same spec, and pods that nobody has changed must not restart.
// Only a template in which a variable does not find one that it refers to is built again: its
// pods do not run what the spec says. name is what this release calls it.
func (s *scope) findWanted(names *names, name string) (namedRevision, error) {
	for _, stored := range slices.Backward(slices.Concat(s.drafts, s.revisions)) {
		called, err := names.ofStored(s.app, stored)
		if err != nil {
			return namedRevision{}, err
		}
		if called != name && stored.name != name {
			continue
		}
		// One that cannot be read is reported where it is used.
		if template, err := names.templateOf(s.app, stored.namedRevision); err == nil && template.misordered {
			continue
		}
		return stored.namedRevision, nil
	}
	wanted := namedRevision{name: name, Revision: desired.RevisionOf(s.app.Spec, s.config.hash)}
	template := desired.NewTemplate(s.app, wanted.Revision)
	first, firstName, err := desired.FirstTemplate(s.app, wanted.Revision)
	if err != nil {
		return namedRevision{}, err
	}
	if s.runsFirst(first, firstName) {
		wanted.name, template = firstName, first
	}
	wanted.Revision, err = wanted.Applied(template)
	return wanted, err
}

// runsFirst reports whether v0.1.0 has applied a template that it did not get to store, because
// it was not completely rolled out, or scaled to zero. Either status says so or, where
// v0.1.0 ended before it wrote that, the Deployment. Ends in v0.4.0.
func (s *scope) runsFirst(template *desired.PodTemplate, name string) bool {
	if s.deployment.UID == "" {
		return false
	}
	if s.app.Status.Revision == name {
		return true
	}
	for _, container := range s.deployment.Spec.Template.Spec.Containers {
		if container.StartupProbe != nil {
			return false
		}
	}
	stated, err := generic(template)
	if err != nil {
		return false
	}
	live, err := generic(s.deployment.Spec.Template)
	return err == nil && holds(live, stated)
}

func generic(object any) (any, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var read any
	err = json.Unmarshal(raw, &read)
	return read, err
}

// holds reports whether an object has all that was stated about it. The API server leaves an
// empty text out, and adds fields, and others add to the ends of lists.
func holds(live, stated any) bool {
	switch stated := stated.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		for name, value := range stated {
			ok = ok && holds(fields[name], value)
		}
		return ok
	case []any:
		items, ok := live.([]any)
		ok = ok && len(items) >= len(stated)
		for i, item := range stated {
			ok = ok && holds(items[i], item)
		}
		return ok
	case string:
		return live == stated || live == nil && stated == ""
	default:
		return live == stated
	}
}

// chooseTemplate finds the pod template of the target.
func (s *scope) chooseTemplate(names *names) error {
	if s.target.name == "" {
		return nil
	}
	template, err := names.templateOf(s.app, s.target)
	if err != nil {
		return noRevision(s.target.name)
	}
	s.template, s.refusedField = template.PodTemplate, template.refused
	if s.refusedField != "" {
		s.template = desired.NewTemplate(s.app, s.target.Revision)
	}
	return nil
}

// reportRefused reports that pods are not made from the template that is stored.
func (r *Reconciler) reportRefused(s *scope, change apply.Change) {
	if s.refusedField == "" || change == apply.Unchanged {
		return
	}
	r.kit.Warn(s.app, slipwayv1alpha1.ReasonTemplateRefused, fmt.Sprintf(
		"the pod template in ControllerRevision %q is not applied: %s is not as the operator builds it; the pods are built from "+
			"the spec in it", s.target.name, s.refusedField))
}
