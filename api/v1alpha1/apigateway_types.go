package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// APIGateway puts applications behind one HTTP entrance: gateway pods, their Service
// and what exposes it, and routes that say which request goes where.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=slwgw;gw,categories=slipway
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Does every replica serve what the spec says?"
// +kubebuilder:printcolumn:name="Routes",type=string,JSONPath=`.status.summary.routes`,description="Live and all routes"
// +kubebuilder:printcolumn:name="Replicas",type=string,JSONPath=`.status.summary.replicas`,description="Ready and wanted replicas"
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.summary.address`,description="Where the gateway is reached"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.summary.reason`,description="Why the gateway is not ready"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must be at most 52 characters: pods are named after it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z](-*[a-z0-9])*$')",message="metadata.name must start with a letter and hold only lower case letters, digits and '-': the Service is named after it"
type APIGateway struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the gateway as it should run.
	// +required
	Spec APIGatewaySpec `json:"spec"`
	// status is the gateway as it runs.
	// +optional
	Status APIGatewayStatus `json:"status,omitempty"`
}

// APIGatewayList is a list of APIGateways.
//
// +kubebuilder:object:root=true
type APIGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []APIGateway `json:"items"`
}

// APIGatewaySpec is the gateway as it should run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || !has(self.resources) || (has(self.resources.requests) && 'cpu' in self.resources.requests) || (has(self.resources.limits) && 'cpu' in self.resources.limits)",message="spec.resources.requests.cpu is required with spec.autoscaling: CPU use is measured against it"
type APIGatewaySpec struct {
	// replicas is how many gateway pods run, from 0 to 100. Default 1; 0 stops the gateway
	// and keeps everything else. Ignored while autoscaling is set.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the gateway's container image, for example
	// registry.example.com/slipway-gateway:1.2.0. Default: the gateway of the operator's
	// own release.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s]*$')",message="spec.image must not hold white space"
	// +optional
	Image string `json:"image,omitempty"`

	// imagePullSecrets are the Secrets used to pull the image, at most 16, in the same
	// namespace. One that does not exist is told by the condition PullSecretMissing.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`

	// routes say which request goes where, at most 1000. Of the routes that match a
	// request the most specific answers: by host (without wildcard, then the longest
	// wildcard, then none), path (Exact, then RegularExpression, then Prefix, the longest
	// first), whether it names methods, the number of its headers, the number of its query
	// parameters, and at last the order in this list. A request that no route matches is
	// answered with 404. A route that is in error takes no other route down.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	// +optional
	Routes []Route `json:"routes,omitempty"`

	// streams forward connections that are not read as HTTP, at most 32: by TCP, or by the name that clients ask for with TLS. They are
	// reached at ports of the Service; an Ingress and an HTTPRoute do not have them. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Streams []Stream `json:"streams,omitempty"`

	// healthChecks check whether the endpoints of backends are healthy, at most 100: one for
	// each port of a Service. An unhealthy endpoint gets no requests. If all endpoints of a
	// backend are unhealthy, all get requests. A check of a port that no route names does
	// nothing. Default: none. With or without a check, an endpoint gets no requests for a
	// while after requests, and then a request of the gateway itself, have failed.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +listMapKey=port
	// +optional
	HealthChecks []BackendHealthCheck `json:"healthChecks,omitempty"`

	// backendPolicies set the protocol of backends, and bound their connections and requests,
	// at most 100: one for each port of a Service. A policy for a port that no route names
	// has no effect. Default: the appProtocol of the port, and the defaults of the fields.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +listMapKey=port
	// +optional
	BackendPolicies []BackendPolicy `json:"backendPolicies,omitempty"`

	// connections bound the connections of clients. Default: the bounds of its fields.
	// +optional
	Connections *ConnectionLimits `json:"connections,omitempty"`

	// tls are the certificates that the gateway serves HTTPS with, at most 64. A changed
	// Secret is served within seconds and breaks no connection. One that is deleted, or holds no certificate any more, is
	// served for 10 s more. Default: HTTP only.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	TLS []GatewayTLS `json:"tls,omitempty"`

	// clientCertificates has clients of HTTPS prove with certificates who they are. It needs tls, and clients that reach the gateway
	// itself: with expose.type Ingress and HTTPRoute somebody else ends their TLS. Default: nobody is asked.
	// +optional
	ClientCertificates *ClientCertificates `json:"clientCertificates,omitempty"`

	// expose says how the gateway is reached from outside the cluster. Default: an Ingress
	// of the cluster's default class.
	// +optional
	Expose *Expose `json:"expose,omitempty"`

	// trustedProxies are the address ranges, as CIDR, of the proxies in front of the
	// gateway whose X-Forwarded-For and Forwarded headers are believed, at most 32.
	// Default: the private ranges with expose.type Ingress or HTTPRoute, where a proxy of
	// the cluster stands in front; none otherwise. Everything in the cluster is in the private ranges, so routes with
	// clientAddresses need this field there.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="spec.trustedProxies must be address ranges such as 10.0.0.0/8"
	// +listType=set
	// +optional
	TrustedProxies []string `json:"trustedProxies,omitempty"`

	// resources are the gateway container's compute resources. Default: 100m CPU and 64Mi memory requested, and at most 2Gi
	// memory. Without limits.memory in it, a pod may use 2Gi, or twice its request of memory if that is more. Go's
	// garbage collector keeps below 90 % of the limit, by the environment variable GOMEMLIMIT.
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// autoscaling lets CPU use decide the number of replicas. It works where the cluster
	// serves resource metrics. Default: replicas decides.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// drainSeconds is how long a gateway pod that goes away lets its requests and streams
	// end, from 0 to 3600 seconds. Default 30.
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`

	// accessLog says which requests are logged. Default: all.
	// +optional
	AccessLog *AccessLog `json:"accessLog,omitempty"`
}

// AccessLog says which requests are logged: a line of JSON each, on standard output.
type AccessLog struct {
	// samplePercent is the share of the requests that is logged, from 0 to 100 percent.
	// Default 100. Requests that end with a status of 500 or more are always logged,
	// except at 0.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	SamplePercent *int32 `json:"samplePercent,omitempty"`
}

// GatewayTLS is one certificate.
type GatewayTLS struct {
	// secretRef names a Secret of type kubernetes.io/tls: tls.crt and tls.key.
	// +required
	SecretRef LocalReference `json:"secretRef"`
	// hosts are the host names that this certificate is served for, with or without a
	// wildcard, at most 64. Default: the names in the certificate.
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Hosts []HostName `json:"hosts,omitempty"`
}

// HostName is a host name, or a wildcard for every name below one, such as
// *.example.com.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]+((-+|[.])[a-z0-9]+)*$')",message="host must be a lower case DNS name without a port, or one after '*.'"
type HostName string

// ExposeType says what stands in front of the gateway's Service.
//
// +kubebuilder:validation:Enum=Ingress;HTTPRoute;NodePort;LoadBalancer;ClusterIP
type ExposeType string

const (
	// ExposeIngress makes an Ingress that sends all hosts of the routes to the gateway.
	ExposeIngress ExposeType = "Ingress"
	// ExposeHTTPRoute makes an HTTPRoute that attaches the gateway to a Gateway.
	ExposeHTTPRoute ExposeType = "HTTPRoute"
	// ExposeNodePort gives the gateway's Service a port on every node.
	ExposeNodePort ExposeType = "NodePort"
	// ExposeLoadBalancer asks the cluster's cloud for a load balancer.
	ExposeLoadBalancer ExposeType = "LoadBalancer"
	// ExposeClusterIP leaves the gateway inside the cluster.
	ExposeClusterIP ExposeType = "ClusterIP"
)

// Expose says how the gateway is reached from outside the cluster.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'HTTPRoute') == has(self.gateway)",message="spec.expose.gateway is required with spec.expose.type HTTPRoute and cannot be combined with another type"
// +kubebuilder:validation:XValidation:rule="self.type == 'Ingress' || !has(self.ingressClassName)",message="spec.expose.ingressClassName cannot be combined with a spec.expose.type other than Ingress"
// +kubebuilder:validation:XValidation:rule="self.type == 'NodePort' || self.type == 'LoadBalancer' || !(has(self.httpNodePort) || has(self.httpsNodePort))",message="spec.expose.httpNodePort and httpsNodePort need spec.expose.type NodePort or LoadBalancer"
type Expose struct {
	// type is what stands in front of the gateway's Service: Ingress, HTTPRoute, NodePort,
	// LoadBalancer, or ClusterIP for nothing. Default Ingress.
	// +kubebuilder:default=Ingress
	// +optional
	Type ExposeType `json:"type,omitempty"`
	// annotations are put on the Ingress, the HTTPRoute or the Service that type names, at
	// most 64. Default: none.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// ingressClassName is the class of the Ingress. Default: the cluster's default class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	IngressClassName *string `json:"ingressClassName,omitempty"`
	// gateway is the Gateway that the HTTPRoute attaches to. The operator must be permitted to make
	// HTTPRoutes for it, with its option --httproute-gateways.
	// +optional
	Gateway *ParentGateway `json:"gateway,omitempty"`
	// httpNodePort is the port of every node that leads to port 80 of the Service, from 1
	// to 65535 as far as the cluster allows. Default: the cluster picks one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	HTTPNodePort *int32 `json:"httpNodePort,omitempty"`
	// httpsNodePort is the port of every node that leads to port 443 of the Service, from
	// 1 to 65535 as far as the cluster allows. Default: the cluster picks one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	HTTPSNodePort *int32 `json:"httpsNodePort,omitempty"`
}

// ParentGateway names a Gateway of the Gateway API.
type ParentGateway struct {
	LocalReference `json:",inline"`
	// namespace of the Gateway. Default: the namespace of the APIGateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// sectionName is the listener of the Gateway. Default: every listener that fits.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}
