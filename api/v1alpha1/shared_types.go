package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Well-known labels and annotations. Every object that a controller creates
// carries the managed-by label: the controllers' caches select on it.
const (
	// LabelManagedBy marks an object that Slipway manages.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBySlipway is the value of LabelManagedBy on objects that Slipway manages.
	ManagedBySlipway = "slipway"
	// LabelName names the application that an object belongs to.
	LabelName = "app.kubernetes.io/name"
	// LabelWebApp names the WebApp that an object belongs to. It is part of the pod selector.
	LabelWebApp = "slipway.dev/webapp"
	// LabelAPIGateway names the APIGateway that an object belongs to. It is part of the pod selector.
	LabelAPIGateway = "slipway.dev/apigateway"
	// AnnotationConfigHash stands on the pod template. It changes when a Secret or
	// ConfigMap key that the pods use changes, which is what restarts them.
	AnnotationConfigHash = "slipway.dev/config-hash"
)

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// name of the object, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
}

// ResourceRequirements are the compute resources of the application's container.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)",message="requests must not exceed limits"
type ResourceRequirements struct {
	// requests is what the scheduler reserves, for example {cpu: 100m, memory: 64Mi}; at
	// most 7 resources. Default: none.
	// +kubebuilder:validation:MaxProperties=7
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits is what the container may use at most; at most 7 resources. A request must
	// not exceed its limit. Default: none.
	// +kubebuilder:validation:MaxProperties=7
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
