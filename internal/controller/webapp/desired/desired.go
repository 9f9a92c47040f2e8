package desired

import (
	"fmt"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
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
func Labels(app *slipwayv1alpha1.WebApp) map[string]string { return owner(app).Labels() }

// Selector finds the pods.
func Selector(app *slipwayv1alpha1.WebApp) map[string]string { return owner(app).Selector() }

// MinReplicas is the number of pods that should run at the least.
func MinReplicas(app *slipwayv1alpha1.WebApp) int32 {
	return children.MinReplicas(app.Spec.Replicas, app.Spec.Autoscaling)
}

// MaxReplicas is the number of pods that may run at the most.
func MaxReplicas(app *slipwayv1alpha1.WebApp) int32 {
	return children.MaxReplicas(app.Spec.Replicas, app.Spec.Autoscaling)
}

// ProgressDeadlineSeconds is how long a rollout may go without progress.
func ProgressDeadlineSeconds(app *slipwayv1alpha1.WebApp) int32 {
	if app.Spec.Rollout == nil {
		return 300
	}
	return children.Or(app.Spec.Rollout.ProgressDeadlineSeconds, 300)
}

// MinReadySeconds is how long all pods of a revision must have been ready before it is a good one.
//
// The default is no part of the schema: a WebApp of an earlier release would ask for something else with it, and a rollout that
// was rolled back would be tried again.
func MinReadySeconds(app *slipwayv1alpha1.WebApp) int32 {
	if app.Spec.Rollout == nil {
		return 10
	}
	return children.Or(app.Spec.Rollout.MinReadySeconds, 10)
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
	return children.Owner{Kind: Kind, Object: app, Label: slipwayv1alpha1.LabelWebApp}
}

func ownerReference(app *slipwayv1alpha1.WebApp) *metav1ac.OwnerReferenceApplyConfiguration {
	return owner(app).Reference()
}
