package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayPolicy gives what the Gateway API has no fields for to the Gateways, listeners, routes and rules that it names:
// addresses of clients, authentication, rate limits, CORS, the size of request bodies, session affinity, a cache, compression, and limits and health checks
// of backends. It works for Gateways of Slipway. A setting of defaults
// gives way to the defaults of a policy with a more specific target: a rule comes before a route, a route before a listener,
// and a listener before the Gateway. A setting of overrides holds whatever policies with more specific targets say.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gatewaypolicies,shortName=slwgwpolicy;gwpolicy,categories=slipway
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[*].conditions[?(@.type=="Accepted")].status`,description="Whether it is used, for each Gateway"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.ancestors[*].conditions[?(@.type=="Accepted")].reason`,description="Why it is used or not, for each Gateway"
// +kubebuilder:printcolumn:name="Live",type=string,JSONPath=`.status.ancestors[*].conditions[?(@.type=="slipway.dev/Live")].status`,description="Whether every pod uses it as it is now, for each Gateway"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what holds for which targets.
	// +required
	Spec GatewayPolicySpec `json:"spec"`

	// status says, for each Gateway, whether the policy is used.
	// +optional
	Status GatewayPolicyStatus `json:"status,omitempty"`
}

// GatewayPolicyList is a list of GatewayPolicies.
//
// +kubebuilder:object:root=true
type GatewayPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayPolicy `json:"items"`
}

// GatewayPolicySpec says what holds for which targets.
//
// +kubebuilder:validation:XValidation:rule="has(self.defaults) || has(self.overrides)",message="spec: set at least one of defaults and overrides"
type GatewayPolicySpec struct {
	// targetRefs are what the policy is for, from 1 to 16, in the namespace of the policy.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.kind == b.kind && a.name == b.name && (has(a.sectionName) ? has(b.sectionName) && a.sectionName == b.sectionName : !has(b.sectionName))))",message="spec.targetRefs: every target may be named once"
	// +listType=atomic
	// +required
	TargetRefs []PolicyTargetReference `json:"targetRefs"`

	// defaults hold where no more specific policy sets the same setting. Default: none.
	// +optional
	Defaults *GatewayPolicySettings `json:"defaults,omitempty"`

	// overrides hold whatever more specific policies set. Where several policies override the same setting, the least
	// specific one holds: that of the Gateway before that of a route. A more specific policy can switch compression and the
	// cache off.
	// Default: none.
	// +optional
	Overrides *GatewayPolicySettings `json:"overrides,omitempty"`
}

// PolicyTargetReference names what a policy is for: an object in the namespace of the policy, or a part of it.
type PolicyTargetReference struct {
	// group of the target: gateway.networking.k8s.io, which is the default.
	// +kubebuilder:default="gateway.networking.k8s.io"
	// +kubebuilder:validation:Enum=gateway.networking.k8s.io
	// +optional
	Group string `json:"group,omitempty"`
	// kind of the target: Gateway, ListenerSet, HTTPRoute or GRPCRoute.
	// +kubebuilder:validation:Enum=Gateway;ListenerSet;HTTPRoute;GRPCRoute
	// +required
	Kind string `json:"kind"`
	// name of the target, at most 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// sectionName is the name of a listener of a Gateway or ListenerSet, or of a rule of a route, at most 253 characters.
	// Default: the policy is for all of them.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}

// GatewayPolicySettings are the settings of a policy. Each is inherited by itself. At least one is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.rateLimit) || !has(self.rateLimit.per) || self.rateLimit.per != 'Key' || has(self.auth)",message="rateLimit.per Key needs auth beside it"
// +kubebuilder:validation:XValidation:rule="!has(self.rateLimit) || !has(self.rateLimit.per) || self.rateLimit.per != 'Key' || !has(self.auth) || !has(self.auth.external) || has(self.auth.external.identityHeader)",message="rateLimit.per Key needs auth.external.identityHeader"
// +kubebuilder:validation:XValidation:rule="!has(self.compression) || !has(self.compression.algorithms) || !('Identity' in self.compression.algorithms) || size(self.compression.algorithms) == 1",message="compression.algorithms: Identity stands alone"
type GatewayPolicySettings struct {
	// clientAddresses lets only those in whose address fits. Others get 403, and connections that the gateway does not read are
	// closed. Default: everybody.
	// +optional
	ClientAddresses *ClientAddresses `json:"clientAddresses,omitempty"`

	// sessionAffinity sends the requests of a client to the same endpoint, in HTTPRoutes and GRPCRoutes. sessionPersistence of a
	// rule comes before defaults, and overrides come before it. Default: each request goes to an endpoint by load.
	// +optional
	SessionAffinity *SessionAffinity `json:"sessionAffinity,omitempty"`

	// auth lets only those in who prove who they are. Others get 401. Its Secrets are in the namespace of the policy, and so is
	// the Service that external asks. Default: everybody.
	// +optional
	Auth *Auth `json:"auth,omitempty"`

	// rateLimit bounds the number of requests of each rule of a route. Others get 429. Every replica counts for itself, or all
	// replicas of the Gateway count together (count), and the requests of a rule are counted together, whichever listener they
	// come by. Default: no bound.
	// +optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// cors lets pages of other origins use the routes. Preflight requests are answered by the gateway. A CORS filter of an
	// HTTPRoute comes before defaults, and overrides come before the filter. Default: the gateway leaves CORS to the backend.
	// +optional
	CORS *CORS `json:"cors,omitempty"`

	// maxBodyBytes is the size of the largest request body, in bytes, from 1 to 2^50. A larger one is answered with 413. One
	// of overrides is a bound: a smaller one of a more specific policy holds. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1125899906842624
	// +optional
	MaxBodyBytes *int64 `json:"maxBodyBytes,omitempty"`

	// backends bounds the use of the backends and checks their health. What holds for the same Service by rules without it, or by
	// another policy, stays as it is. Default: 4096 connections, 1024 requests that wait and 8192 under way, and no checks.
	// +optional
	Backends *BackendSettings `json:"backends,omitempty"`

	// cache keeps responses of the backends that they declare fresh, and gives them to requests that would have got the same. Its
	// defaults are set by {}. Mode Off switches it off for a more specific target, also where overrides of a less specific one
	// keep responses. Default: nothing is kept.
	// +optional
	Cache *Cache `json:"cache,omitempty"`

	// compression compresses responses of the backends for clients that accept it. Its defaults are set by {}. Algorithm
	// Identity switches it off for a more specific target, also where overrides of a less specific one compress. Default: off.
	// +optional
	Compression *Compression `json:"compression,omitempty"`

	// maintenance answers requests with 503 in place of the backends, at set times or until it is taken away. {} means now.
	// Default: never.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`
}
