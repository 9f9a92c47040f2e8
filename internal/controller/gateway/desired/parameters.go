package desired

import (
	"cmp"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/settings"
)

// AnnotationParameters stands on a Deployment that was made with parameters, and holds them as JSON. When they can no longer be
// read, what they asked for stays.
const AnnotationParameters = "slipway.dev/parameters"

// Parameters are those of a Gateway: its own, and field by field those of its class.
func Parameters(class, own slipwayv1alpha1.GatewayParametersSpec) slipwayv1alpha1.GatewayParametersSpec {
	all := *class.DeepCopy()
	own = *own.DeepCopy()
	// A number of pods means nothing beside the autoscaler of the class.
	if own.Replicas != nil || own.Autoscaling != nil {
		all.Replicas, all.Autoscaling = own.Replicas, own.Autoscaling
	}
	all.Resources = cmp.Or(own.Resources, all.Resources)
	all.DrainSeconds = cmp.Or(own.DrainSeconds, all.DrainSeconds)
	all.AccessLog = cmp.Or(own.AccessLog, all.AccessLog)
	all.ProxyProtocol = cmp.Or(own.ProxyProtocol, all.ProxyProtocol)
	if own.ImagePullSecrets != nil {
		all.ImagePullSecrets = own.ImagePullSecrets
	}
	if own.TrustedProxies != nil { // an empty list takes away those of the class
		all.TrustedProxies = own.TrustedProxies
	}
	all.Service = service(all.Service, own.Service)
	return all
}

func service(class, own *slipwayv1alpha1.GatewayService) *slipwayv1alpha1.GatewayService {
	if class == nil || own == nil {
		return cmp.Or(own, class)
	}
	all := *class
	all.Type = cmp.Or(own.Type, all.Type)
	all.LoadBalancerClass = cmp.Or(own.LoadBalancerClass, all.LoadBalancerClass)
	all.ExternalTrafficPolicy = cmp.Or(own.ExternalTrafficPolicy, all.ExternalTrafficPolicy)
	if own.Annotations != nil {
		all.Annotations = own.Annotations
	}
	return &all
}

// Contradiction says why parameters cannot be met, though those of the class and those of the Gateway could be. It is empty for
// those that can.
func Contradiction(parameters slipwayv1alpha1.GatewayParametersSpec) string {
	if parameters.Autoscaling == nil || parameters.Resources == nil {
		return ""
	}
	_, requested := parameters.Resources.Requests[corev1.ResourceCPU]
	_, limited := parameters.Resources.Limits[corev1.ResourceCPU]
	if requested || limited {
		return ""
	}
	return "spec.resources.requests.cpu is required with spec.autoscaling: CPU use is measured against it"
}

// Asked are the parameters that a Deployment was made with.
func Asked(deployment *appsv1.Deployment) (slipwayv1alpha1.GatewayParametersSpec, error) {
	var parameters slipwayv1alpha1.GatewayParametersSpec
	text := deployment.Annotations[AnnotationParameters]
	if text == "" {
		return parameters, nil
	}
	if err := json.Unmarshal([]byte(text), &parameters); err != nil {
		return parameters, fmt.Errorf("read annotation %s of Deployment %q: %w", AnnotationParameters, deployment.Name, err)
	}
	return parameters, nil
}

// asked is the annotation with parameters. It returns nil for none.
func asked(parameters slipwayv1alpha1.GatewayParametersSpec) map[string]string {
	raw, err := json.Marshal(parameters)
	if err != nil || string(raw) == "{}" { // the type has nothing that cannot be encoded
		return nil
	}
	return map[string]string{AnnotationParameters: string(raw)}
}

// Settings are what parameters ask of the program in the pods.
func Settings(parameters slipwayv1alpha1.GatewayParametersSpec) settings.Settings {
	made := settings.Settings{TrustedProxies: parameters.TrustedProxies}
	if parameters.AccessLog != nil {
		made.SamplePercent = parameters.AccessLog.SamplePercent
	}
	if proxy := parameters.ProxyProtocol; proxy != nil && proxy.Mode != slipwayv1alpha1.ProxyProtocolOff {
		made.ProxyProtocol, made.ProxyProtocolSources = true, proxy.Sources
	}
	return made
}
