//go:build e2e

package truth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// appName is the name of the WebApp that a fault is about, or that a gateway leads to.
const appName = "shop"

var theApp = &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Name: appName}}

type specEdit = func(*trial, *slipwayv1alpha1.WebAppSpec)

// app returns a WebApp of the demo with one replica, changed as asked.
func (f *trial) app(edits ...specEdit) *slipwayv1alpha1.WebApp {
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: appName},
		Spec: slipwayv1alpha1.WebAppSpec{
			Image: cluster.DemoImage, Port: 8080,
			Env: map[string]slipwayv1alpha1.EnvValue{"ALLOW_EXIT": "true"},
			// A short period, so that no trial waits for the next look of the kubelet.
			Health: &slipwayv1alpha1.HealthCheck{Path: "/healthz", PeriodSeconds: ptr(int32(1))},
		},
	}
	for _, edit := range edits {
		edit(f, &app.Spec)
	}
	return app
}

// creating creates the application, changed as asked.
func creating(edits ...specEdit) func(*trial) {
	return func(f *trial) { f.Create(f.app(edits...)) }
}

// editing changes the latest version of the application's spec.
func editing(edits ...specEdit) func(*trial) {
	return func(f *trial) {
		livetest.Update(f.Fixture, appName, &slipwayv1alpha1.WebApp{}, func(app *slipwayv1alpha1.WebApp) {
			for _, edit := range edits {
				edit(f, &app.Spec)
			}
		})
	}
}

// restoring makes the application what it is without edits.
func restoring(f *trial) {
	livetest.Update(f.Fixture, appName, &slipwayv1alpha1.WebApp{}, func(app *slipwayv1alpha1.WebApp) { app.Spec = f.app().Spec })
}

func env(name, value string) specEdit {
	return func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
		s.Env = maps.Clone(s.Env)
		s.Env[name] = slipwayv1alpha1.EnvValue(value)
	}
}

func healthPath(path string) specEdit {
	return func(_ *trial, s *slipwayv1alpha1.WebAppSpec) { s.Health.Path = path }
}

func port(port int32) specEdit {
	return func(_ *trial, s *slipwayv1alpha1.WebAppSpec) { s.Port = port }
}

func image(name string) specEdit {
	return func(f *trial, s *slipwayv1alpha1.WebAppSpec) { s.Image = f.Registry() + "/" + name }
}

// deadline is how long a rollout may go without progress.
func deadline(seconds int32) specEdit {
	return func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
		s.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: &seconds}
	}
}

func requests(list corev1.ResourceList) specEdit {
	return func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
		s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: list}
	}
}

func limits(list corev1.ResourceList) specEdit {
	return func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
		s.Resources = &slipwayv1alpha1.ResourceRequirements{Limits: list, Requests: list}
	}
}

// failing has the application's pods answer their probes with 500 for so long; 0s mends it.
func failing(pause string) func(*trial) {
	return func(f *trial) {
		client := livecluster.NewHTTPClient()
		for _, pod := range f.pods() {
			url := livecluster.Address(pod.Status.PodIP, 8080) + "/fail?for=" + pause
			f.Eventually(func() error {
				_, err := livecluster.Ask(f.Context(), client, url)
				return err
			})
		}
	}
}

func (f *trial) pods() []corev1.Pod {
	f.Helper()
	list := &corev1.PodList{}
	if err := f.Cluster.List(f.Context(), list, client.InNamespace(f.Namespace)); err != nil {
		f.Fatalf("list pods: %v", err)
	}
	return livecluster.Staying(list.Items)
}

// rolledOut tells a Deployment that is as the application wants it.
func rolledOut(o client.Object) bool {
	deployment, ok := o.(*appsv1.Deployment)
	return ok && health.RolledOut(deployment)
}

func pod(matches func(*corev1.Pod) bool) func(client.Object) bool {
	return func(o client.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && matches(p)
	}
}

func container(matches func(corev1.ContainerStatus) bool) func(client.Object) bool {
	return pod(func(p *corev1.Pod) bool { return slices.ContainsFunc(p.Status.ContainerStatuses, matches) })
}

func waits(reasons ...string) func(client.Object) bool {
	return container(func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && slices.Contains(reasons, c.State.Waiting.Reason)
	})
}

// ended tells a pod whose container has ended at least once.
func ended(o client.Object) bool {
	return container(func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})(o)
}

func podCondition(conditionType corev1.PodConditionType, status corev1.ConditionStatus) func(client.Object) bool {
	return pod(func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == conditionType && c.Status == status })
	})
}

// notCreated tells a Deployment whose pods cannot be created.
func notCreated(o client.Object) bool {
	d, ok := o.(*appsv1.Deployment)
	return ok && slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
	})
}

// overdue tells a Deployment without progress within its deadline.
func overdue(o client.Object) bool {
	d, ok := o.(*appsv1.Deployment)
	return ok && slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
	})
}

func ptr[T any](value T) *T { return &value }

// refused tells whether the API server refuses a pod with the variable.
func (f *trial) refused(variable string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "asked", Namespace: f.Namespace},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "asked", Image: "asked", Env: []corev1.EnvVar{{Name: variable}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	err := f.Cluster.Create(f.Context(), pod, client.DryRunAll)
	switch {
	case err == nil:
		return errors.New("the pod is not refused")
	case strings.Contains(err.Error(), policyName):
		return nil
	default:
		return fmt.Errorf("not the policy refuses: %w", err)
	}
}

// cleanup is the context of what is done after the end of a test.
func cleanup() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	time.AfterFunc(time.Minute, cancel)
	return ctx
}
