//go:build apitest

package webapp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/fault"
)

// earlierGracePeriod is in the pod templates of an operator that builds them otherwise.
const earlierGracePeriod = 17

// asAnotherReleaseLeftIt rewrites what the operator, which has to be stopped, has made, as
// an earlier release would have made it that builds other pod templates. withTemplate
// reports whether it stored them; v0.1.0 did not, and had no drafts either.
func (f *fixture) asAnotherReleaseLeftIt(app *slipwayv1alpha1.WebApp, withTemplate bool) *appsv1.Deployment {
	f.Helper()
	revisions := &appsv1.ControllerRevisionList{}
	if err := env.Client.List(f.Context(), revisions, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	var wanted *desired.PodTemplate
	for i := range revisions.Items {
		object := &revisions.Items[i]
		revision := desired.Revision{}
		if err := json.Unmarshal(object.Data.Raw, &revision); err != nil {
			f.Fatal(err)
		}
		asked := desired.RevisionOf(revision.Spec, revision.ConfigHash)
		template, name, err := desired.FirstTemplate(app, asked)
		if err != nil {
			f.Fatal(err)
		}
		if withTemplate {
			template, name = desired.NewTemplate(app, asked), object.Name+"e"
			template.Spec.WithTerminationGracePeriodSeconds(earlierGracePeriod)
			if asked, err = asked.Applied(template); err != nil {
				f.Fatal(err)
			}
		}
		if asked.Spec.Image == app.Spec.Image {
			wanted = template
		}
		f.delete(object)
		if !withTemplate && object.Revision == desired.DraftNumber {
			continue
		}
		data, err := json.Marshal(asked)
		if err != nil {
			f.Fatal(err)
		}
		f.apply(desired.ControllerRevision(app, name, data, object.Revision))
	}
	f.apply(desired.Deployment(desired.Inputs{App: app, Template: wanted, Revision: desired.RevisionOf(app.Spec, ""), Replicas: ptr(desired.MinReplicas(app))}))
	return f.deployment()
}

func (f *fixture) apply(configuration runtime.ApplyConfiguration) {
	f.Helper()
	if err := env.Client.Apply(f.Context(), configuration, client.FieldOwner(webapp.FieldManager), client.ForceOwnership); err != nil {
		f.Fatal(err)
	}
}

// started starts an operator whose writes are seen.
func (f *fixture) started() *fault.Gate {
	f.Helper()
	gate := fault.NewGate(nil)
	env.StartOperatorWith(f.T, func(config *rest.Config, options *environment.Options) {
		options.Namespaces = []string{f.namespace}
		gate.Wrap(config)
	})
	return gate
}

// A release that builds other pod templates restarts no pod, whatever state it finds a
// rollout in: what was applied stays until the spec asks for something else. Drift is
// repaired, and a rollback returns to it.
func TestAnUpgradeNeverRestartsAPod(t *testing.T) {
	states := map[string]struct {
		// finished: the rollout is complete, so that the revision is good.
		finished bool
		replicas int32
	}{
		"a finished rollout": {true, 2}, "a rollout under way": {false, 2}, "scaled to zero": {false, 0},
	}
	for name, state := range states {
		for release, withTemplate := range map[string]bool{"v0.1.0": false, "a release that stores templates": true} {
			t.Run(name+" of "+release, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				first := env.StartOperator(t, nil, f.namespace)
				app := f.app(func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = &state.replicas })
				f.create(app)
				f.deployment()
				if state.finished {
					f.rollOut()
				}
				f.settle()
				first.Stop(t)
				before := f.asAnotherReleaseLeftIt(app, withTemplate)
				if state.finished {
					environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
				}

				gate := f.started()
				f.wait(func(*slipwayv1alpha1.WebApp) error { return nil })
				after := f.settle()
				if err := equal(before.Spec, after.Spec); err != nil {
					t.Errorf("the Deployment was changed: %v", err)
				}
				for _, w := range gate.Writes() {
					if w.Resource == "deployments" || w.Resource == "controllerrevisions" && (state.finished || withTemplate) {
						t.Errorf("written: %s %s", w, w.Body)
					}
				}
				f.repairsDrift(before)
				f.rollsBackTo(app, before, state.finished)
			})
		}
	}
}

// repairsDrift changes a field by hand that every release states, and waits until it is as
// it was.
func (f *fixture) repairsDrift(before *appsv1.Deployment) {
	f.Helper()
	update(f, before.DeepCopy(), func(d *appsv1.Deployment) { d.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr[int64](99) })
	f.deployed(func(d *appsv1.Deployment) error { return equal(before.Spec.Template, d.Spec.Template) })
}

// rollsBackTo edits the spec, which leads to a template of this release, and has that
// rollout fail.
func (f *fixture) rollsBackTo(app *slipwayv1alpha1.WebApp, before *appsv1.Deployment, isGood bool) {
	f.Helper()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image, a.Spec.Replicas = badImage, ptr[int32](2) })
	edited := f.deployed(runsImage(badImage)).Spec.Template.Spec
	if *edited.TerminationGracePeriodSeconds != 30 || edited.Containers[0].StartupProbe == nil {
		f.Errorf("an edited spec leads to another release's template: %+v", edited)
	}
	if !isGood {
		return
	}
	f.stick(imageNotFound())
	f.deployed(func(d *appsv1.Deployment) error { return equal(before.Spec.Template, d.Spec.Template) })
}

// A draft is what was applied: it is there before the Deployment, becomes the good revision
// when it is rolled out, and goes when something else is asked for.
func TestWhatIsAppliedIsStored(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.app()
	f.create(app)
	template := f.deployment().Spec.Template
	stored := func() []appsv1.ControllerRevision {
		list := &appsv1.ControllerRevisionList{}
		if err := env.Client.List(t.Context(), list, client.InNamespace(f.namespace)); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	drafts := stored()
	if len(drafts) != 1 || drafts[0].Revision != desired.DraftNumber {
		t.Fatalf("stored before anything is rolled out: %+v", drafts)
	}
	revision := struct{ Template corev1.PodTemplateSpec }{}
	if err := json.Unmarshal(drafts[0].Data.Raw, &revision); err != nil {
		t.Fatal(err)
	}
	if got, want := revision.Template.Spec.Containers[0].Image, template.Spec.Containers[0].Image; got != want {
		t.Errorf("the stored template runs %q, want %q", got, want)
	}

	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "registry.example.com/shop:2" })
	f.deployed(runsImage("registry.example.com/shop:2"))
	first := drafts[0]
	environment.Eventually(t, func() error {
		now := stored()
		if len(now) != 1 || now[0].Name == first.Name || now[0].Revision != desired.DraftNumber {
			return fmt.Errorf("stored after an edit: %+v", now)
		}
		return nil
	})
	draft := stored()[0]
	f.rollOut()
	good := f.wait(func(a *slipwayv1alpha1.WebApp) error {
		if a.Status.LastGoodRevision == "" {
			return errors.New("no revision is good")
		}
		return nil
	})
	now := stored()
	if len(now) != 1 || now[0].UID != draft.UID || now[0].Revision != 1 || good.Status.LastGoodRevision != draft.Name || !bytes.Equal(now[0].Data.Raw, draft.Data.Raw) {
		t.Errorf("stored after it was rolled out: %+v, of which %q is good", now, good.Status.LastGoodRevision)
	}
}

// Somebody who may write ControllerRevisions, and no pods, stores a template under the name of
// a revision that is going to be asked for. Its pods get nothing that a WebApp cannot ask for.
func TestAStoredTemplateThatAsksForMoreIsNotApplied(t *testing.T) {
	f := newFixture(t)
	first := env.StartOperator(t, nil, f.namespace)
	app := f.app()
	f.create(app)
	f.deployment()
	f.settle()
	first.Stop(t)
	revisions := &appsv1.ControllerRevisionList{}
	if err := env.Client.List(t.Context(), revisions, client.InNamespace(f.namespace)); err != nil || len(revisions.Items) != 1 {
		t.Fatalf("stored are %+v (%v)", revisions.Items, err)
	}
	draft := &revisions.Items[0]
	asked := desired.RevisionOf(app.Spec, "")
	template := desired.NewTemplate(app, asked)
	template.Spec.WithHostNetwork(true)
	stored, err := asked.Applied(template)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	f.delete(draft)
	f.delete(f.deployment())
	if err := env.Client.Apply(t.Context(), desired.ControllerRevision(app, draft.Name, data, desired.DraftNumber), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}

	f.started()
	if f.deployment().Spec.Template.Spec.HostNetwork {
		t.Error("the pods have the node's network")
	}
	want := fmt.Sprintf("the pod template in ControllerRevision %q is not applied: spec.hostNetwork is not as the operator builds it; the pods are built from the spec in it", draft.Name)
	environment.Eventually(t, func() error {
		list := &eventsv1.EventList{}
		if err := env.Client.List(t.Context(), list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if event := &list.Items[i]; event.Reason == slipwayv1alpha1.ReasonTemplateRefused && event.Note == want && event.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return fmt.Errorf("none of %d events says so", len(list.Items))
	})
	f.settle()
	f.rollOut()
}

func servicePorts(ports map[string]int32) func(*fixture) error {
	return func(f *fixture) error {
		service := &corev1.Service{}
		if err := f.get("shop", service); err != nil {
			return err
		}
		got := map[string]int32{}
		for _, p := range service.Spec.Ports {
			got[p.Name] = p.Port
			if p.TargetPort.String() != "http" {
				return fmt.Errorf("port %q leads to %q, which pods of one revision do not have", p.Name, p.TargetPort.String())
			}
		}
		return equal(ports, got)
	}
}

// Callers of the port of the revision that serves never lose it: not while another port is
// rolled out, and not when that fails.
func TestTheServiceHasThePortsOfBothRevisionsDuringARollout(t *testing.T) {
	for image, after := range map[string]int32{badImage: 8080, "registry.example.com/shop:2": 9090} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			env.StartOperator(t, nil, f.namespace)
			app := f.running()
			if err := servicePorts(map[string]int32{"http": 8080})(f); err != nil {
				t.Error(err)
			}
			update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image, a.Spec.Port = image, 9090 })
			f.deployed(runsImage(image))
			environment.Eventually(t, func() error { return servicePorts(map[string]int32{"http": 8080, "http-9090": 9090})(f) })
			if url := f.wait(func(*slipwayv1alpha1.WebApp) error { return nil }).Status.ServiceURL; url != fmt.Sprintf("http://shop.%s.svc.cluster.local:8080", f.namespace) {
				t.Errorf("during the rollout the URL is %q", url)
			}
			if image == badImage {
				f.stick(imageNotFound())
				f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, "ImageNotFound")
				f.deployed(runsImage(goodImage))
			} else {
				f.rollOut()
				// Whoever waits for Ready finds the Service as it stays.
				if err := servicePorts(map[string]int32{"http": after})(f); err != nil {
					t.Error(err)
				}
			}
			environment.Eventually(t, func() error { return servicePorts(map[string]int32{"http": after})(f) })
			if url := f.wait(func(*slipwayv1alpha1.WebApp) error { return nil }).Status.ServiceURL; url != fmt.Sprintf("http://shop.%s.svc.cluster.local:%d", f.namespace, after) {
				t.Errorf("after the rollout the URL is %q", url)
			}
		})
	}
}

// A drain may not take all pods at once of an application that is scaled up, and is never
// kept from taking the only one.
func TestAnAutoscaledWebAppHasADisruptionBudgetFromOnePodOn(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.app(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("100m")}}
		a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MaxReplicas: 10}
	})
	f.create(app)
	budget := &policyv1.PodDisruptionBudget{}
	environment.Eventually(t, func() error { return f.get("shop", budget) })
	if budget.Spec.MinAvailable != nil || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the budget is %+v", budget.Spec)
	}
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Autoscaling.MaxReplicas = 1 })
	environment.Eventually(t, func() error { return gone(f.get("shop", budget)) })
}
