package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// APIGatewayStatus is the gateway as it runs.
type APIGatewayStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// replicas is the number of gateway pods that exist.
	// +kubebuilder:default=0
	// +optional
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of gateway pods that serve.
	// +kubebuilder:default=0
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// selector finds the pods, in the form that the scale subresource needs.
	// +optional
	Selector string `json:"selector,omitempty"`
	// serviceURL is the address inside the cluster, if its domain is cluster.local.
	// +optional
	ServiceURL string `json:"serviceURL,omitempty"`
	// addresses are the IP addresses and host names at which the gateway is reached from
	// outside the cluster, as far as the Ingress, the Gateway or the Service says.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`
	// routes says how many routes are live, and which are not.
	// +optional
	Routes RoutesStatus `json:"routes,omitzero"`
	// summary holds what kubectl get shows.
	// +optional
	Summary APIGatewaySummary `json:"summary,omitzero"`
	// conditions: Ready, Accepted, ResolvedRefs, Programmed, Available, Progressing and
	// Degraded are always present; Stalled only while true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RoutesStatus says how many routes are live, and which are not.
type RoutesStatus struct {
	// total is the number of routes in the spec.
	// +optional
	Total int32 `json:"total"`
	// live is the number of routes that every replica serves as the spec says.
	// +optional
	Live int32 `json:"live"`
	// notLive are the routes that are not live, in the order of the spec.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	// +optional
	NotLive []RouteNotLive `json:"notLive,omitempty"`
}

// RouteNotLive is a route that not every replica serves as the spec says.
type RouteNotLive struct {
	// name of the route, or its host and path where it has none.
	// +required
	Name string `json:"name"`
	// reason is one of the condition reasons, such as BackendNotFound.
	// +required
	Reason string `json:"reason"`
	// message says what is wrong, naming the object and the field.
	// +required
	Message string `json:"message"`
	// replicas says how many of the replicas serve the route, for example 1/2.
	// +optional
	Replicas string `json:"replicas,omitempty"`
}

// APIGatewaySummary holds what kubectl get shows.
type APIGatewaySummary struct {
	// routes is live/total, for example 10/12.
	// +optional
	Routes string `json:"routes,omitempty"`
	// replicas is ready/wanted, for example 2/3.
	// +optional
	Replicas string `json:"replicas,omitempty"`
	// address is the first of addresses, or serviceURL where there is none.
	// +optional
	Address string `json:"address,omitempty"`
	// reason is why the gateway is not ready; empty when it is.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// GetConditions returns the conditions.
func (g *APIGateway) GetConditions() []metav1.Condition { return g.Status.Conditions }
