//go:build apitest

package webapp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

// hasEnv wants variables in an order.
func hasEnv(names string) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		var got []string
		for _, variable := range container(d).Env {
			got = append(got, variable.Name)
		}
		if strings.Join(got, " ") != names {
			return fmt.Errorf("the variables are %q, want %s", got, names)
		}
		return nil
	}
}

func TestAVariableIsThereForThoseThatReferToIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	env.StartOperator(t, nil, f.namespace)
	app := f.running(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Env = map[string]slipwayv1alpha1.EnvValue{"MESSAGE": "Hello", "MESSAGE_FIRST": "Hello"}
	})
	f.deployed(hasEnv("MESSAGE MESSAGE_FIRST"))
	// What is there already changes its place.
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Env["MESSAGE"] = "$(MESSAGE_FIRST)" })
	f.deployed(hasEnv("MESSAGE_FIRST MESSAGE"))
	f.rollOut()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Env["MESSAGE_FIRST"] = "$(MESSAGE)" })
	f.says(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonInvalid, "spec.env: MESSAGE and MESSAGE_FIRST refer to each other")
	f.deployed(hasEnv("MESSAGE_FIRST MESSAGE"))
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Env["MESSAGE_FIRST"] = "$$(MESSAGE)" })
	f.rollOut()
}

// What an earlier release has ordered by name is ordered anew, once. Whatever has no such reference stays as it is:
// TestAnUpgradeNeverRestartsAPod.
func TestAnUpgradeResolvesWhatWasLeftAsText(t *testing.T) {
	for release, withTemplate := range map[string]bool{"v0.1.0": false, "a release that stores templates": true} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := env.StartOperator(t, nil, f.namespace)
			app := f.running(func(a *slipwayv1alpha1.WebApp) {
				a.Spec.Env = map[string]slipwayv1alpha1.EnvValue{"A": "$(B)", "B": "1"}
			})
			f.settle()
			first.Stop(t)
			f.orderByName(app, withTemplate)
			if err := hasEnv("A B")(f.deployment()); err != nil {
				t.Fatal(err)
			}

			gate := f.started()
			f.deployed(hasEnv("B A"))
			f.rollOut()
			f.settle()
			written := 0
			for _, w := range gate.Writes() {
				if w.Resource == "deployments" {
					written++
				}
			}
			if written != 1 {
				t.Errorf("the Deployment was written %d times, want once", written)
			}
		})
	}
}

// orderByName rewrites what the operator, which has to be stopped, has made, with the variables ordered by name.
func (f *fixture) orderByName(app *slipwayv1alpha1.WebApp, withTemplate bool) {
	f.Helper()
	before := f.asAnotherReleaseLeftIt(app, withTemplate)
	revisions := f.revisions()
	for i := range revisions {
		object := &revisions[i]
		revision := desired.Revision{}
		if err := json.Unmarshal(object.Data.Raw, &revision); err != nil {
			f.Fatal(err)
		}
		template, err := desired.StoredTemplate(app, revision)
		if err != nil {
			f.Fatal(err)
		}
		slices.SortFunc(template.Spec.Containers[0].Env, func(a, b corev1ac.EnvVarApplyConfiguration) int { return strings.Compare(*a.Name, *b.Name) })
		if withTemplate {
			if revision, err = revision.Applied(template); err != nil {
				f.Fatal(err)
			}
			data, err := json.Marshal(revision)
			if err != nil {
				f.Fatal(err)
			}
			f.delete(object)
			f.apply(desired.ControllerRevision(app, object.Name, data, object.Revision))
		}
		if err := env.Client.Delete(f.Context(), before, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			f.Fatal(err)
		}
		f.apply(desired.Deployment(desired.Inputs{App: app, Template: template, Revision: revision, Replicas: ptr[int32](1)}))
	}
}
