package desired

import (
	"fmt"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/children"
)

// Kind is the kind that owns everything built here.
const Kind = "WebApp"

const (
	// portName is the name of the container's port, of the Service's first port and of the
	// port that the probes use.
	portName = "http"
	// containerName is the name of the application's container.
	containerName = "app"
)

// Inputs is all that the builders look at.
type Inputs struct {
	// App gives the identity and what is not part of a revision: replicas, autoscaling,
	// rollout, storage.
	App *slipwayv1alpha1.WebApp
	// Revision is what the pods run. It differs from App.Spec after a rollback.
	Revision Revision
	// Template is the pod template of the revision; nil: as this release builds it.
	Template *PodTemplate
	// Replicas is how many pods to ask for, or nil to leave the number to the
	// autoscaler that owns it.
	Replicas *int32
	// ConfigVersions is the value of AnnotationConfigVersions, or empty.
	ConfigVersions string
}

// AnnotationConfigVersions stands on the Deployment and records which versions of
// the Secrets and ConfigMaps AnnotationConfigHash was computed from, so that a
// restarted operator need not read them again.
const AnnotationConfigVersions = "slipway.dev/config-versions"

// Name returns the name of the Deployment, Service, autoscaler and disruption budget.
func Name(app *slipwayv1alpha1.WebApp) string { return app.Name }

// VolumeName returns the name of the PersistentVolumeClaim.
func VolumeName(app *slipwayv1alpha1.WebApp) string { return app.Name + "-data" }

// ServiceURL returns the address of the application inside the cluster, at one of the
// ports of its Service.
func ServiceURL(app *slipwayv1alpha1.WebApp, port int32) string {
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d", Name(app), app.Namespace, port)
}

// Labels are on every child.
func Labels(app *slipwayv1alpha1.WebApp) map[string]string {
	return map[string]string{
		slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway,
		slipwayv1alpha1.LabelName:      app.Name,
		slipwayv1alpha1.LabelWebApp:    app.Name,
	}
}

// Selector finds the pods. It can never change: a Deployment's selector is immutable.
func Selector(app *slipwayv1alpha1.WebApp) map[string]string {
	return map[string]string{slipwayv1alpha1.LabelWebApp: app.Name}
}

// MinReplicas is the number of pods that should run at the least: spec.replicas, or
// the autoscaler's lower bound.
func MinReplicas(app *slipwayv1alpha1.WebApp) int32 {
	if app.Spec.Autoscaling != nil {
		return valueOr(app.Spec.Autoscaling.MinReplicas, 1)
	}
	return valueOr(app.Spec.Replicas, 1)
}

// MaxReplicas is the number of pods that may run at the most: spec.replicas, or the
// autoscaler's upper bound.
func MaxReplicas(app *slipwayv1alpha1.WebApp) int32 {
	if app.Spec.Autoscaling != nil {
		return app.Spec.Autoscaling.MaxReplicas
	}
	return valueOr(app.Spec.Replicas, 1)
}

// ProgressDeadlineSeconds is how long a rollout may go without progress.
func ProgressDeadlineSeconds(app *slipwayv1alpha1.WebApp) int32 {
	if app.Spec.Rollout == nil {
		return 300
	}
	return valueOr(app.Spec.Rollout.ProgressDeadlineSeconds, 300)
}

// OnFailure is what happens when a rollout fails.
func OnFailure(app *slipwayv1alpha1.WebApp) slipwayv1alpha1.FailurePolicy {
	if app.Spec.Rollout == nil || app.Spec.Rollout.OnFailure == "" {
		return slipwayv1alpha1.FailurePolicyRollback
	}
	return app.Spec.Rollout.OnFailure
}

// owner is what the children have in common with those of other kinds.
func owner(app *slipwayv1alpha1.WebApp) children.Owner {
	return children.Owner{Kind: Kind, Object: app, Name: Name(app), Labels: Labels(app), Selector: Selector(app)}
}

func ownerReference(app *slipwayv1alpha1.WebApp) *metav1ac.OwnerReferenceApplyConfiguration {
	return owner(app).Reference()
}

func valueOr[T any](pointer *T, fallback T) T {
	if pointer == nil {
		return fallback
	}
	return *pointer
}
