package desired

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
)

// PodTemplate is what pods are made from.
type PodTemplate = corev1ac.PodTemplateSpecApplyConfiguration

// NewTemplate builds the pod template of a revision, as this release does. What has been
// applied once is not built again: a release that builds another one would restart pods
// that nobody has changed. See StoredTemplate.
func NewTemplate(app *slipwayv1alpha1.WebApp, revision Revision) *PodTemplate {
	return podTemplate(Inputs{App: app, Revision: revision})
}

// FirstTemplate builds the pod template of a revision as v0.1.0 did, and returns what
// v0.1.0 called it. Its revisions do not hold their template. Ends in v0.4.0.
func FirstTemplate(app *slipwayv1alpha1.WebApp, revision Revision) (template *PodTemplate, name string, err error) {
	template = NewTemplate(app, revision)
	for i := range template.Spec.Containers {
		template.Spec.Containers[i].StartupProbe = nil
	}
	name, err = templateName(app, template)
	return template, name, err
}

// StoredTemplate returns the pod template of a stored revision, as it was applied.
func StoredTemplate(app *slipwayv1alpha1.WebApp, revision Revision) (*PodTemplate, error) {
	if len(revision.Template) == 0 {
		template, _, err := FirstTemplate(app, revision)
		return template, err
	}
	template := &PodTemplate{}
	if err := json.Unmarshal(revision.Template, template); err != nil {
		return nil, fmt.Errorf("read a pod template: %w", err)
	}
	if template.Spec == nil || len(template.Spec.Containers) == 0 {
		return nil, errors.New("read a pod template: it has no container")
	}
	return template, nil
}

// Applied returns the revision with the template that is applied of it.
func (r Revision) Applied(template *PodTemplate) (Revision, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return Revision{}, fmt.Errorf("encode a pod template: %w", err)
	}
	r.Template = raw
	return r, nil
}

// ResolvesEnv reports whether a stored template has the variables of the spec in an order in which each $(NAME) stands for what it
// refers to. Earlier releases ordered them by name.
func ResolvesEnv(template *PodTemplate) bool {
	for i := range template.Spec.Containers {
		env := template.Spec.Containers[i].Env
		list := make([]*corev1ac.EnvVarApplyConfiguration, len(env))
		for j := range env {
			list[j] = &env[j]
		}
		if !children.IsInOrder(list) {
			return false
		}
	}
	return true
}

func templateName(app *slipwayv1alpha1.WebApp, template *PodTemplate) (string, error) {
	hash, err := canonicalHash(template)
	if err != nil {
		return "", fmt.Errorf("hash the pod template of %q: %w", app.Name, err)
	}
	return app.Name + "-" + hash, nil
}
