package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebAppStatus is the application as it runs.
type WebAppStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// replicas is the number of pods that exist, of whatever revision.
	// +kubebuilder:default=0
	// +optional
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of pods that serve, of whatever revision.
	// +kubebuilder:default=0
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// selector finds the pods, in the form that the scale subresource needs.
	// +optional
	Selector string `json:"selector,omitempty"`
	// serviceURL is the address inside the cluster, if its domain is cluster.local.
	// +optional
	ServiceURL string `json:"serviceURL,omitempty"`
	// image is the image that the Deployment runs. It differs from spec.image after a rollback.
	// +optional
	Image string `json:"image,omitempty"`
	// revision names the pod template that the Deployment runs.
	// +optional
	Revision string `json:"revision,omitempty"`
	// lastGoodRevision names the ControllerRevision of the template that last rolled
	// out completely, with pods that were all ready for spec.rollout.minReadySeconds (10 by
	// default): the target of a rollback.
	// +optional
	LastGoodRevision string `json:"lastGoodRevision,omitempty"`
	// storageSize is what the volume was granted of spec.storage.size. It is less while the
	// volume is growing, and absent until it is bound. spec.storage.size cannot be lowered
	// below it.
	// +optional
	StorageSize *resource.Quantity `json:"storageSize,omitempty"`
	// rollout is present from the start of a rollout until its revision is the last good one,
	// or was rolled back. Ready is True as soon as every pod runs the spec and serves; then
	// rollout stays until the pods have all been ready for spec.rollout.minReadySeconds.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
	// rollback is set after a rollback. It is removed when the spec changes, or the content
	// of the Secrets and ConfigMaps that the application uses. Changes of replicas,
	// autoscaling, paused and the volume's size do not count.
	// +optional
	Rollback *RollbackStatus `json:"rollback,omitempty"`
	// summary holds what kubectl get shows.
	// +optional
	Summary WebAppSummary `json:"summary,omitzero"`
	// conditions: Ready, Available, Progressing and Degraded are always present;
	// Stalled and RolledBack only while true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutStatus describes a rollout under way.
type RolloutStatus struct {
	// revision that is being rolled out.
	// +required
	Revision string `json:"revision"`
	// startTime is when this revision was first applied to the Deployment.
	// +required
	StartTime metav1.Time `json:"startTime"`
}

// RollbackStatus records the decision to roll back. It is written before the
// Deployment is changed, so that a crash in between does not forget it.
type RollbackStatus struct {
	// intent identifies the spec and configuration whose rollout failed. The rollback
	// stands as long as they are what the user asks for.
	// +required
	Intent string `json:"intent"`
	// spec identifies the spec alone. It is used instead of intent while the configuration
	// is incomplete.
	// +optional
	Spec string `json:"spec,omitempty"`
	// fromRevision is the revision that failed.
	// +required
	FromRevision string `json:"fromRevision"`
	// toRevision is the revision that was returned to.
	// +required
	ToRevision string `json:"toRevision"`
	// reason is why the rollout failed, a condition reason.
	// +required
	Reason string `json:"reason"`
	// message says why the rollout failed, naming the object.
	// +required
	Message string `json:"message"`
}

// WebAppSummary holds what kubectl get shows.
type WebAppSummary struct {
	// replicas is ready/wanted, for example 2/3.
	// +optional
	Replicas string `json:"replicas,omitempty"`
	// reason is why the application is not ready; empty when it is. While spec.paused is set it
	// is, or ends with, Paused.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// GetConditions returns the conditions.
func (a *WebApp) GetConditions() []metav1.Condition { return a.Status.Conditions }
