package desired

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
)

// Service makes the gateway pods reachable under one name, and from outside the cluster
// where spec.expose says so.
func Service(gateway *slipwayv1alpha1.APIGateway) *corev1ac.ServiceApplyConfiguration {
	serviceType := corev1.ServiceTypeClusterIP
	switch ExposeType(gateway) {
	case slipwayv1alpha1.ExposeNodePort:
		serviceType = corev1.ServiceTypeNodePort
	case slipwayv1alpha1.ExposeLoadBalancer:
		serviceType = corev1.ServiceTypeLoadBalancer
	case slipwayv1alpha1.ExposeIngress, slipwayv1alpha1.ExposeHTTPRoute, slipwayv1alpha1.ExposeClusterIP:
	}
	var httpNodePort, httpsNodePort *int32
	if expose := gateway.Spec.Expose; expose != nil {
		httpNodePort, httpsNodePort = expose.HTTPNodePort, expose.HTTPSNodePort
	}
	spec := corev1ac.ServiceSpec().
		WithType(serviceType).
		WithSelector(Selector(gateway)).
		WithPorts(servicePort(httpPortName, serviceHTTPPort, httpNodePort))
	if len(gateway.Spec.TLS) > 0 {
		spec.WithPorts(servicePort(httpsPortName, serviceHTTPSPort, httpsNodePort))
	}
	spec.WithPorts(streamPorts(gateway)...)
	return corev1ac.Service(Name(gateway), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithAnnotations(annotations(gateway, slipwayv1alpha1.ExposeNodePort, slipwayv1alpha1.ExposeLoadBalancer,
			slipwayv1alpha1.ExposeClusterIP)).
		WithOwnerReferences(ownerReference(gateway)).
		WithSpec(spec)
}

func servicePort(name string, port int32, nodePort *int32) *corev1ac.ServicePortApplyConfiguration {
	c := corev1ac.ServicePort().
		WithName(name).
		WithPort(port).
		WithTargetPort(intstr.FromString(name)).
		WithProtocol(corev1.ProtocolTCP)
	if nodePort != nil {
		c.WithNodePort(*nodePort)
	}
	return c
}

// streamPorts are those of the streams that can be served, each once. The pods open the same ones.
func streamPorts(gateway *slipwayv1alpha1.APIGateway) []*corev1ac.ServicePortApplyConfiguration {
	var ports []*corev1ac.ServicePortApplyConfiguration
	seen := map[int32]bool{}
	for i, f := range apigateway.StreamFaults(gateway.Spec.Streams) {
		stream := &gateway.Spec.Streams[i]
		if f != nil || seen[stream.Port] {
			continue
		}
		seen[stream.Port] = true
		ports = append(ports, servicePort(stream.Name, stream.Port, nil).WithTargetPort(intstr.FromInt32(stream.Port)))
	}
	return ports
}

// hasLowPorts reports whether a stream has a port that a process needs to be permitted to open.
func hasLowPorts(gateway *slipwayv1alpha1.APIGateway) bool {
	return slices.ContainsFunc(streamPorts(gateway), func(port *corev1ac.ServicePortApplyConfiguration) bool { return *port.Port < 1024 })
}

// HorizontalPodAutoscaler owns the Deployment's replicas. It returns nil when the
// gateway is not autoscaled.
func HorizontalPodAutoscaler(gateway *slipwayv1alpha1.APIGateway) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	return owner(gateway).HorizontalPodAutoscaler(gateway.Spec.Autoscaling, MinReplicas(gateway))
}

// PodDisruptionBudget lets a node drain take one pod at a time. It returns nil where
// there is never more than one.
func PodDisruptionBudget(gateway *slipwayv1alpha1.APIGateway) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return owner(gateway).PodDisruptionBudget(MaxReplicas(gateway))
}
