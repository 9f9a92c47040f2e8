package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayPolicyStatus says, for each Gateway, whether the policy is used. It has the form that the Gateway API gives the
// status of policies.
type GatewayPolicyStatus struct {
	// ancestors are the Gateways that the policy matters for, at most 16, each with what its controller says.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Ancestors []PolicyAncestorStatus `json:"ancestors,omitempty"`
}

// PolicyAncestorStatus is what the controller of a Gateway says of a policy.
type PolicyAncestorStatus struct {
	// ancestorRef names the Gateway.
	// +required
	AncestorRef PolicyAncestorReference `json:"ancestorRef"`
	// controllerName is the name of the controller, such as slipway.dev/gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ControllerName string `json:"controllerName"`
	// conditions: Accepted, and slipway.dev/Live for a policy that is used.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicyAncestorReference names an object that a policy matters for.
type PolicyAncestorReference struct {
	// group of the object: gateway.networking.k8s.io.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`
	// kind of the object: Gateway.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the object. Default: that of the policy.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// The conditions of a GatewayPolicy, for each Gateway.
const (
	// ConditionPolicyAccepted says whether the policy is used as it is written.
	ConditionPolicyAccepted = "Accepted"
	// ConditionPolicyLive says whether every pod of the Gateway that gets requests uses this generation of the policy, with
	// its Secrets as they are now. LimitNotShared and AffinityNotShared are those of an APIGateway: each pod uses it, and not as if
	// they were one.
	ConditionPolicyLive = "slipway.dev/Live"
)

// The reasons of condition Accepted of a GatewayPolicy.
const (
	// ReasonPolicyAccepted: the policy is used.
	ReasonPolicyAccepted = "Accepted"
	// ReasonPolicyInvalid: the policy cannot be used as it is written. What it would protect is answered with 500.
	ReasonPolicyInvalid = "Invalid"
	// ReasonPolicyTargetNotFound: a target is missing: a listener or a rule with this name.
	ReasonPolicyTargetNotFound = "TargetNotFound"
	// BackendNotFound, PortNotFound, UnsupportedService and UnsupportedProtocol are those of an APIGateway: the Service of
	// auth.external cannot be asked.

	// ReasonPolicyConflicted: an older policy with the same target has the same setting, and that one is used.
	ReasonPolicyConflicted = "Conflicted"
	// ReasonPolicyNotEnforced: a setting does nothing where it should hold: the gateway does not read the connections of a listener,
	// or a route is for gRPC. What else the policy sets is used.
	ReasonPolicyNotEnforced = "NotEnforced"
	// ReasonPolicyTooManyHealthChecks: the policies of the namespace have more ports of Services checked than they may. What this
	// one is for is served, and its endpoints count as healthy.
	ReasonPolicyTooManyHealthChecks = "TooManyHealthChecks"
)
