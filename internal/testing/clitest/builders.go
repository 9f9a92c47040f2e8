package clitest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

// Now is the time at which the tests run.
var Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Ago is a time before Now.
func Ago(d time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-d)) }

// ReadyApp returns a WebApp that has been ready for ten minutes, with the given changes.
func ReadyApp(changes ...func(*slipwayv1alpha1.WebApp)) *slipwayv1alpha1.WebApp {
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team-a", UID: "app-uid", Generation: 4},
		Spec: slipwayv1alpha1.WebAppSpec{
			Image: "registry.example.com/shop:1.4.2", Port: 8080, Replicas: new(int32(2)),
			Env: map[string]slipwayv1alpha1.EnvValue{"LOG_LEVEL": "info"},
		},
		Status: slipwayv1alpha1.WebAppStatus{
			ObservedGeneration: 4, Replicas: 2, ReadyReplicas: 2,
			ServiceURL: "http://shop.team-a.svc.cluster.local:8080",
			Image:      "registry.example.com/shop:1.4.2",
			Revision:   "shop-3f0c9a1b2c", LastGoodRevision: "shop-3f0c9a1b2c",
			Summary: slipwayv1alpha1.WebAppSummary{Replicas: "2/2"},
			Conditions: []metav1.Condition{
				Condition(slipwayv1alpha1.ConditionReady, true, slipwayv1alpha1.ReasonReady, "every replica runs the spec and serves"),
				Condition(slipwayv1alpha1.ConditionAvailable, true, slipwayv1alpha1.ReasonReplicasReady, "at least one replica serves"),
				Condition(slipwayv1alpha1.ConditionProgressing, false, slipwayv1alpha1.ReasonRolloutComplete,
					`revision "shop-3f0c9a1b2c" runs`),
				Condition(slipwayv1alpha1.ConditionDegraded, false, slipwayv1alpha1.ReasonAsExpected, "nothing is wrong"),
			},
		},
	}
	for _, change := range changes {
		change(app)
	}
	return app
}

// Condition is one that has been as it is for ten minutes.
func Condition(conditionType string, status bool, reason, message string) metav1.Condition {
	c := metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: Ago(10 * time.Minute),
	}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// Unready makes a WebApp degraded for a reason.
func Unready(reason, message string) func(*slipwayv1alpha1.WebApp) {
	return func(app *slipwayv1alpha1.WebApp) {
		app.Status.ReadyReplicas, app.Status.Summary.Replicas, app.Status.Summary.Reason = 1, "1/2", reason
		SetCondition(app, Condition(slipwayv1alpha1.ConditionReady, false, reason, message))
		SetCondition(app, Condition(slipwayv1alpha1.ConditionDegraded, true, reason, message))
	}
}

// RolledBack makes a WebApp run the last good revision instead of its spec.
func RolledBack(app *slipwayv1alpha1.WebApp) {
	message := `revision "shop-77aa00ee11" failed and revision "shop-3f0c9a1b2c" replaces it until ` +
		`the spec or its configuration asks for something else: pod "shop-6d5f-x" container "app" ended with exit code 1: no database`
	app.Spec.Image = "registry.example.com/shop:1.5.0"
	app.Status.Rollback = &slipwayv1alpha1.RollbackStatus{
		FromRevision: "shop-77aa00ee11", ToRevision: "shop-3f0c9a1b2c", Reason: "CrashLoopBackOff",
		Message: `pod "shop-6d5f-x" container "app" ended with exit code 1: no database`,
	}
	Unready(slipwayv1alpha1.ReasonRolledBack, message)(app)
	app.Status.Summary.Replicas = "2/2"
	SetCondition(app, Condition(slipwayv1alpha1.ConditionStalled, true, slipwayv1alpha1.ReasonRolledBack, message))
	SetCondition(app, Condition(slipwayv1alpha1.ConditionRolledBack, true, "CrashLoopBackOff", message))
}

// SetCondition replaces the condition of the same type, or adds it.
func SetCondition(app *slipwayv1alpha1.WebApp, c metav1.Condition) {
	for i := range app.Status.Conditions {
		if app.Status.Conditions[i].Type == c.Type {
			app.Status.Conditions[i] = c
			return
		}
	}
	app.Status.Conditions = append(app.Status.Conditions, c)
}

// OwnedBy makes a WebApp the controller of an object.
func OwnedBy(app *slipwayv1alpha1.WebApp) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(app, slipwayv1alpha1.SchemeGroupVersion.WithKind(desired.Kind))}
}

// ControlledBy makes an object of Kubernetes the controller of another.
func ControlledBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: new(true)}}
}

// Ended is the state of a container that has ended.
func Ended(code int32, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: message}
}

// Crashing is the status of a pod whose container has ended with an error, and runs again or waits to.
func Crashing(running bool) corev1.PodStatus {
	status := corev1.ContainerStatus{
		Name: "app", RestartCount: 4,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: Ended(1, "cannot reach the database")},
	}
	if running {
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}
}

// Waiting is the status of a pod whose container has not started.
func Waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", Image: "registry.example.com/shop:1.5.0",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}
