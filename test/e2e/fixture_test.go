//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	// appName is the name of a test's application, unless it needs several.
	appName = "shop"
)

// fixture is one test with a namespace of its own.
type fixture struct{ *livetest.Fixture }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{livetest.New(t, cluster)}
}

// in returns the fixture for a subtest that shares the namespace.
func (f *fixture) in(t *testing.T) *fixture { return &fixture{f.In(t)} }

// app returns a WebApp of the demo with one replica, changed as asked.
func (f *fixture) app(change ...func(*slipwayv1alpha1.WebApp)) *slipwayv1alpha1.WebApp {
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: appName, Namespace: f.Namespace},
		Spec: slipwayv1alpha1.WebAppSpec{
			Image: cluster.DemoImage, Port: 8080,
			Env: map[string]slipwayv1alpha1.EnvValue{"ALLOW_EXIT": "true"},
			// A short period, so that no test waits for the next look of the kubelet.
			Health: &slipwayv1alpha1.HealthCheck{Path: "/healthz", PeriodSeconds: ptr(int32(1))},
		},
	}
	for _, c := range change {
		c(app)
	}
	return app
}

// mustGet reads the object of that name, which must exist.
func mustGet[T client.Object](f *fixture, name string, into T) T {
	f.Helper()
	return livetest.MustGet(f.Fixture, name, into)
}

// edit changes the latest version of the application's spec, and returns it.
func (f *fixture) edit(change func(*slipwayv1alpha1.WebAppSpec)) *slipwayv1alpha1.WebApp {
	f.Helper()
	app := &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Name: appName, Namespace: f.Namespace}}
	update(f, app, func(a *slipwayv1alpha1.WebApp) { change(&a.Spec) })
	return app
}

// update changes the latest version of an object.
func update[T client.Object](f *fixture, object T, change func(T)) {
	f.Helper()
	f.Eventually(func() error {
		if err := cluster.Get(f.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return cluster.Update(f.Context(), object)
	})
}

// wait waits until the application's status speaks of its current spec and every
// check is content.
func (f *fixture) wait(checks ...func(*slipwayv1alpha1.WebApp) error) *slipwayv1alpha1.WebApp {
	f.Helper()
	app := &slipwayv1alpha1.WebApp{}
	f.Eventually(func() error {
		if err := f.Get(appName, app); err != nil {
			return err
		}
		if app.Status.ObservedGeneration != app.Generation {
			return errors.New("status speaks of an older generation")
		}
		for _, check := range checks {
			if err := check(app); err != nil {
				return err
			}
		}
		return nil
	})
	return app
}

// ready waits until the application runs what its spec says.
func (f *fixture) ready() *slipwayv1alpha1.WebApp {
	f.Helper()
	return f.wait(is(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, ""))
}

// good waits until the application runs what its spec says, and has done so for long enough to be returned to.
func (f *fixture) good() *slipwayv1alpha1.WebApp {
	f.Helper()
	return f.wait(is(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, ""), func(app *slipwayv1alpha1.WebApp) error {
		if app.Status.LastGoodRevision != app.Status.Revision {
			return fmt.Errorf("revision %q is the last good one, want %q", app.Status.LastGoodRevision, app.Status.Revision)
		}
		return nil
	})
}

// is checks that a condition has the status and, unless empty, the reason.
func is(conditionType string, status metav1.ConditionStatus, reason string) func(*slipwayv1alpha1.WebApp) error {
	return func(app *slipwayv1alpha1.WebApp) error {
		c := meta.FindStatusCondition(app.Status.Conditions, conditionType)
		if c == nil {
			return fmt.Errorf("no condition %s, want %s %s", conditionType, status, reason)
		}
		if c.Status != status || (reason != "" && c.Reason != reason) {
			return fmt.Errorf("%s is %s %s (%s), want %s %s", conditionType, c.Status, c.Reason, c.Message, status, reason)
		}
		return nil
	}
}

// has checks that a condition is True, for a reason, with a message that holds every
// part.
func has(conditionType, reason string, parts ...string) func(*slipwayv1alpha1.WebApp) error {
	return func(app *slipwayv1alpha1.WebApp) error {
		if err := is(conditionType, metav1.ConditionTrue, reason)(app); err != nil {
			return err
		}
		message := meta.FindStatusCondition(app.Status.Conditions, conditionType).Message
		for _, part := range parts {
			if !strings.Contains(message, part) {
				return fmt.Errorf("%s says %q, which does not hold %q", conditionType, message, part)
			}
		}
		return nil
	}
}

// lacks checks that a condition is absent.
func lacks(conditionType string) func(*slipwayv1alpha1.WebApp) error {
	return func(app *slipwayv1alpha1.WebApp) error {
		if c := meta.FindStatusCondition(app.Status.Conditions, conditionType); c != nil {
			return fmt.Errorf("%s is %s %s (%s), want it absent", conditionType, c.Status, c.Reason, c.Message)
		}
		return nil
	}
}

// pods returns the pods that are not on their way out.
func (f *fixture) pods() []corev1.Pod {
	f.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(f.Context(), list, client.InNamespace(f.Namespace)); err != nil {
		f.Fatalf("list pods: %v", err)
	}
	return livecluster.Staying(list.Items)
}

// thePod returns the only pod.
func (f *fixture) thePod() *corev1.Pod {
	f.Helper()
	var pods []corev1.Pod
	f.Eventually(func() error {
		if pods = f.pods(); len(pods) != 1 {
			return fmt.Errorf("%d pods, want one", len(pods))
		}
		return nil
	})
	return &pods[0]
}

func (f *fixture) deployment() *appsv1.Deployment {
	f.Helper()
	return mustGet(f, appName, &appsv1.Deployment{})
}

// forceReconcile makes the operator look at the application once more and waits until it
// has: it changes the Service by hand and waits until the change is undone. This is
// how a test shows that something does not happen.
func (f *fixture) forceReconcile() {
	f.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: appName, Namespace: f.Namespace}}
	update(f, service, func(s *corev1.Service) { delete(s.Labels, slipwayv1alpha1.LabelName) })
	f.Eventually(func() error {
		if err := f.Get(appName, service); err != nil {
			return err
		}
		if service.Labels[slipwayv1alpha1.LabelName] != appName {
			return errors.New("the Service's label has not been restored")
		}
		return nil
	})
}

func ptr[T any](value T) *T { return &value }
