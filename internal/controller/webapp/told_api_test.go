//go:build apitest

package webapp_test

import (
	"fmt"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// says waits until a condition of the WebApp has the reason and a message with the words.
func (f *fixture) says(conditionType string, status metav1.ConditionStatus, reason string, words ...string) *slipwayv1alpha1.WebApp {
	f.Helper()
	app := f.waitFor(conditionType, status, reason)
	message := meta.FindStatusCondition(app.Status.Conditions, conditionType).Message
	for _, word := range words {
		if !strings.Contains(message, word) {
			f.Errorf("the message of %s is %q, without %q", conditionType, message, word)
		}
	}
	return app
}

func TestAnApplicationThatIsBeingDeletedSaysSo(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.running()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Finalizers = []string{"example.com/hold"} })
	if err := env.Client.Delete(t.Context(), app, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	app = f.says("Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonTerminating, `WebApp "shop" is being deleted`, "example.com/hold")
	if err := has(app, "Degraded", metav1.ConditionFalse, slipwayv1alpha1.ReasonAsExpected); err != nil {
		t.Error(err)
	}
	if app.Status.Summary.Reason != slipwayv1alpha1.ReasonTerminating {
		t.Errorf("kubectl get shows %+v", app.Status.Summary)
	}
	f.settle()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Finalizers = nil })
}

// Nothing is made in a namespace that is going, not even what is missing.
func TestANamespaceThatIsGoingIsAReason(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.running()
	// Nobody empties the namespace here, so it stays as it is.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	f.delete(namespace)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}}
	environment.Eventually(t, func() error { return env.Client.Delete(t.Context(), service) })
	environment.Eventually(t, func() error {
		err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(service), service)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the Service is still there: %w", err)
	})
	f.says("Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonNamespaceTerminating, fmt.Sprintf("namespace %q is being deleted", f.namespace))
	f.settle()
}

func TestAPauseIsAlwaysVisible(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.running()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Paused = true })
	app = f.waitFor(slipwayv1alpha1.ConditionPaused, metav1.ConditionTrue, slipwayv1alpha1.ReasonPaused)
	if err := has(app, "Ready", metav1.ConditionTrue, ""); err != nil {
		t.Error(err)
	}
	if app.Status.Summary.Reason != "Paused" {
		t.Errorf("kubectl get shows %+v", app.Status.Summary)
	}
	f.delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}})
	app = f.waitFor("Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonPaused)
	if app.Status.Summary.Reason != "Paused" {
		t.Errorf("kubectl get shows %+v", app.Status.Summary)
	}
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Paused = false })
	app = f.waitFor("Ready", metav1.ConditionTrue, "")
	if meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionPaused) != nil || app.Status.Summary.Reason != "" {
		t.Errorf("it is paused no more, and status says %+v", app.Status)
	}
}

func TestAnAutoscalerThatCannotScaleIsTold(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.createFull()
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
	say := func(status corev1.ConditionStatus, message string) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get("shop", autoscaler); err != nil {
				return err
			}
			autoscaler.Status.ObservedGeneration = &autoscaler.Generation
			autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
				Type: autoscalingv2.ScalingActive, Status: status, Reason: "FailedGetResourceMetric", Message: message, LastTransitionTime: metav1.Now(),
			}}
			return env.Client.Status().Update(t.Context(), autoscaler)
		})
	}
	say(corev1.ConditionFalse, "no metrics returned from resource metrics API")
	f.settle()
	f.waitFor("Ready", metav1.ConditionTrue, "")
	say(corev1.ConditionFalse, "the HPA was unable to compute the replica count: failed to get cpu utilization: missing request for cpu in container proxy of Pod shop-1-x")
	app := f.says("Degraded", metav1.ConditionTrue, slipwayv1alpha1.ReasonAutoscalerFailing,
		`HorizontalPodAutoscaler "shop"`, "spec.autoscaling", "spec.resources.requests.cpu", "missing request for cpu in container proxy")
	for conditionType, status := range map[string]metav1.ConditionStatus{"Ready": metav1.ConditionFalse, "Available": metav1.ConditionTrue, "Progressing": metav1.ConditionFalse} {
		if err := has(app, conditionType, status, ""); err != nil {
			t.Error(err)
		}
	}
	say(corev1.ConditionTrue, "the HPA was able to compute the replica count")
	f.waitFor("Ready", metav1.ConditionTrue, "")
}

func TestARepairOfDriftIsAnEventThatNamesFieldAndManager(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.running()
	f.rollOutImage(app, "registry.example.com/shop:2")
	f.settle()
	deployment := f.deployment()
	deployment.Spec.Template.Spec.Containers[0].Image = "registry.example.com/other:1"
	if err := env.Client.Update(t.Context(), deployment, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	f.deployed(runsImage("registry.example.com/shop:2"))
	want := `Deployment "shop": spec.template.spec.containers[app].image was changed by "kubectl-edit"; restored`
	var notes []string
	environment.Eventually(t, func() error {
		list := &eventsv1.EventList{}
		if err := env.Client.List(t.Context(), list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		notes = nil
		for i := range list.Items {
			if event := &list.Items[i]; event.Reason == slipwayv1alpha1.ReasonDriftRepaired && event.Regarding.Kind == "WebApp" {
				notes = append(notes, event.Note)
			}
		}
		if len(notes) == 0 {
			return fmt.Errorf("no event of a repair among %d", len(list.Items))
		}
		return nil
	})
	if len(notes) != 1 || notes[0] != want {
		t.Errorf("the events of repairs are %q, want one: %q", notes, want)
	}
}
