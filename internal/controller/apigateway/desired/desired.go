package desired

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
)

// Kind is the kind that owns everything built here.
const Kind = "APIGateway"

// AdminPort is where a gateway pod says whether it is ready and what it serves.
const AdminPort = 8081

// The other ports of a gateway pod, and those of its Service.
const (
	httpPort  = 8080
	httpsPort = 8443

	serviceHTTPPort  = 80
	serviceHTTPSPort = 443
)

// Names of the ports, of the pods and of the Service alike.
const (
	httpPortName  = "http"
	httpsPortName = "https"
)

// Inputs is all that the builder of the Deployment looks at.
type Inputs struct {
	// Gateway is the APIGateway.
	Gateway *slipwayv1alpha1.APIGateway
	// Image is what runs where the spec names no image.
	Image string
	// Current is the Deployment as it is, or nil.
	Current *appsv1.Deployment
	// Replicas is how many pods to ask for, or nil to leave the number to the
	// autoscaler that owns it.
	Replicas *int32
}

// Name returns the name of every child but the Ingress and further HTTPRoutes.
func Name(gateway *slipwayv1alpha1.APIGateway) string { return gateway.Name }

// IngressName returns the name of the Ingress.
func IngressName(gateway *slipwayv1alpha1.APIGateway) string { return gateway.Name + "-ingress" }

// ServiceURL returns the address of the gateway inside the cluster.
func ServiceURL(gateway *slipwayv1alpha1.APIGateway) string {
	return fmt.Sprintf("http://%s.%s.svc.cluster.local", Name(gateway), gateway.Namespace)
}

// Labels are on every child.
func Labels(gateway *slipwayv1alpha1.APIGateway) map[string]string { return owner(gateway).Labels() }

// Selector finds the pods.
func Selector(gateway *slipwayv1alpha1.APIGateway) map[string]string {
	return owner(gateway).Selector()
}

// MinReplicas is the number of pods that should run at the least.
func MinReplicas(gateway *slipwayv1alpha1.APIGateway) int32 {
	return children.MinReplicas(gateway.Spec.Replicas, gateway.Spec.Autoscaling)
}

// MaxReplicas is the number of pods that may run at the most.
func MaxReplicas(gateway *slipwayv1alpha1.APIGateway) int32 {
	return children.MaxReplicas(gateway.Spec.Replicas, gateway.Spec.Autoscaling)
}

// ExposeType is what stands in front of the Service.
func ExposeType(gateway *slipwayv1alpha1.APIGateway) slipwayv1alpha1.ExposeType {
	if gateway.Spec.Expose == nil || gateway.Spec.Expose.Type == "" {
		return slipwayv1alpha1.ExposeIngress
	}
	return gateway.Spec.Expose.Type
}

// Hosts are the hosts of the routes, each once, in order. The empty one stands for any
// host.
func Hosts(gateway *slipwayv1alpha1.APIGateway) []string {
	hosts := make([]string, 0, len(gateway.Spec.Routes))
	for i := range gateway.Spec.Routes {
		hosts = append(hosts, string(gateway.Spec.Routes[i].Host))
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// annotations are those that the spec asks for on what exposes the gateway, if that is
// of one of these types.
func annotations(gateway *slipwayv1alpha1.APIGateway, types ...slipwayv1alpha1.ExposeType) map[string]string {
	if gateway.Spec.Expose == nil || !slices.Contains(types, ExposeType(gateway)) {
		return nil
	}
	return gateway.Spec.Expose.Annotations
}

// owner is what the children have in common with those of other kinds.
func owner(gateway *slipwayv1alpha1.APIGateway) children.Owner {
	return children.Owner{Kind: Kind, Object: gateway, Label: slipwayv1alpha1.LabelAPIGateway}
}

func ownerReference(gateway *slipwayv1alpha1.APIGateway) *metav1ac.OwnerReferenceApplyConfiguration {
	return owner(gateway).Reference()
}
