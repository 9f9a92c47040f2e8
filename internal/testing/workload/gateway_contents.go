package workload

import (
	"github.com/slipway-dev/slipway/internal/gateway/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// servicesOf are Services, with an endpoint behind every port.
func servicesOf(found []unstructured.Unstructured) (map[string]model.Service, error) {
	services := map[string]model.Service{}
	for i := range found {
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[i].Object, service); err != nil {
			return nil, err
		}
		ports := map[int32]model.ServicePort{}
		for _, port := range service.Spec.Ports {
			ports[port.Port] = model.ServicePort{Endpoints: []string{"192.0.2.1:80"}}
		}
		services[service.Name] = model.Service{Ports: ports}
	}
	return services, nil
}

// contentsOf is what Secrets hold, by name.
func contentsOf(found []*unstructured.Unstructured) (map[string]map[string][]byte, error) {
	contents := map[string]map[string][]byte{}
	for _, object := range found {
		secret := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, secret); err != nil {
			return nil, err
		}
		contents[secret.Name] = secret.Data
	}
	return contents, nil
}
