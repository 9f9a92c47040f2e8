package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayParameters say how the pods and the Service of Gateways are made. A GatewayClass of Slipway names them in
// spec.parametersRef, for all of its Gateways, and a Gateway in spec.infrastructure.parametersRef, for itself. Where both set a
// field, that of the Gateway is taken.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gatewayparameters,shortName=slwgwparams;gwparams,categories=slipway
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`,description="How many pods run"
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.service.type`,description="How the pods are reached from outside the cluster"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayParameters struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how the pods and the Service are made.
	// +optional
	Spec GatewayParametersSpec `json:"spec,omitempty"`
}

// GatewayParametersList is a list of GatewayParameters.
//
// +kubebuilder:object:root=true
type GatewayParametersList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GatewayParameters `json:"items"`
}

// GatewayParametersSpec is how the pods and the Service of a Gateway are made. A change of resources, imagePullSecrets,
// drainSeconds, accessLog, trustedProxies or proxyProtocol replaces the pods one after another; no request is lost.
//
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || !has(self.resources) || (has(self.resources.requests) && 'cpu' in self.resources.requests) || (has(self.resources.limits) && 'cpu' in self.resources.limits)",message="spec.resources.requests.cpu is required with spec.autoscaling: CPU use is measured against it"
type GatewayParametersSpec struct {
	// replicas is how many pods run, from 1 to 100. Default: it is one, until somebody scales the Deployment. Ignored while
	// autoscaling is set. replicas and autoscaling of a Gateway replace both of its class.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// autoscaling lets CPU use decide the number of pods. It works where the cluster serves resource metrics. Default:
	// replicas decides.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// resources are the compute resources of each pod. Default: 100m CPU and 64Mi memory requested, and at most 2Gi memory.
	// Without limits.memory in it, a pod may use 2Gi, or twice its request of memory if that is more. Go's garbage
	// collector keeps below 90 % of the limit, by the environment variable GOMEMLIMIT.
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// imagePullSecrets are the Secrets used to pull the image, at most 16, in the namespace of the Gateway. One
	// that does not exist is told by the condition slipway.dev/PullSecretMissing of the Gateway. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`

	// drainSeconds is how long a pod that goes away lets its requests and streams end, from 0 to 3600 seconds. Default 30.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`

	// accessLog says which requests are logged. Default: all.
	// +optional
	AccessLog *AccessLog `json:"accessLog,omitempty"`

	// trustedProxies are the address ranges, as CIDR, of the proxies in front of the Gateway whose X-Forwarded-For and
	// Forwarded headers are believed, at most 32. An empty list of a Gateway takes away those of its class. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="spec.trustedProxies must be address ranges such as 10.0.0.0/8"
	// +listType=set
	// +optional
	TrustedProxies []string `json:"trustedProxies,omitempty"`

	// proxyProtocol says whether the load balancer in front of the pods tells the address of the client with the PROXY
	// protocol. Default: it does not.
	// +optional
	ProxyProtocol *ProxyProtocol `json:"proxyProtocol,omitempty"`

	// service is how the pods are reached.
	// +optional
	Service *GatewayService `json:"service,omitempty"`
}

// ProxyProtocolMode says whether connections begin with a header of the PROXY protocol.
//
// +kubebuilder:validation:Enum=Off;Required
type ProxyProtocolMode string

const (
	// ProxyProtocolOff means that they do not. A header is no HTTP, so it is refused.
	ProxyProtocolOff ProxyProtocolMode = "Off"
	// ProxyProtocolRequired means that every connection does, version 1 or 2. Any other one is closed.
	ProxyProtocolRequired ProxyProtocolMode = "Required"
)

// ProxyProtocol says whether the load balancer in front of the pods tells the address of the client with the PROXY protocol.
type ProxyProtocol struct {
	// mode says whether connections begin with a header of the PROXY protocol: Off, or Required, where a connection without
	// a header is closed. Default Required.
	// +kubebuilder:default=Required
	// +optional
	Mode ProxyProtocolMode `json:"mode,omitempty"`
	// sources are the address ranges, as CIDR, of the load balancer, at most 32. A connection from another address is
	// closed: whoever may send a header may claim any address. Default: every address may connect.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="spec.proxyProtocol.sources must be address ranges such as 10.0.0.0/8"
	// +listType=set
	// +optional
	Sources []string `json:"sources,omitempty"`
}

// GatewayServiceType is the type of the Service of a Gateway.
//
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
type GatewayServiceType string

// GatewayService is how the pods of a Gateway are reached.
type GatewayService struct {
	// type is the type of the Service: LoadBalancer, NodePort, or ClusterIP, which is not reached from outside the cluster.
	// Default: that of the operator's configuration, which is LoadBalancer.
	// +optional
	Type GatewayServiceType `json:"type,omitempty"`
	// loadBalancerClass says which of the cluster's load balancers is meant. It is for type LoadBalancer, and ignored
	// otherwise. Kubernetes does not let it change: delete the Service, and it is made anew. Default: the cluster's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`
	// externalTrafficPolicy is Local, where a node sends clients to pods of its own alone and their addresses are kept, or
	// Cluster. It is for types NodePort and LoadBalancer, and ignored otherwise. Default Cluster.
	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// annotations are put on the Service, at most 64. Many load balancers are configured by them. Default: none.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
