package workload

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// balancerAddress is what a load balancer gives to a Service that asks for no address.
const balancerAddress = "203.0.113.10"

// lookAtServices gives an address to the Services that wait for a load balancer.
func (p *Player) lookAtServices(ctx context.Context) error {
	names, err := p.unbalanced(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		service := &corev1.Service{}
		err := p.cluster.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, service)
		if err == nil && service.Spec.Type == corev1.ServiceTypeLoadBalancer && len(service.Status.LoadBalancer.Ingress) == 0 {
			address := cmp.Or(service.Spec.LoadBalancerIP, balancerAddress)
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
			err = p.cluster.Client.Status().Update(ctx, service)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// unbalanced are the names of the Services that wait for a load balancer.
func (p *Player) unbalanced(ctx context.Context) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceList"))
	if err := p.reader.List(ctx, list, client.InNamespace(p.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		kind, _, err := unstructured.NestedString(list.Items[i].Object, "spec", "type")
		if err != nil || kind != string(corev1.ServiceTypeLoadBalancer) {
			continue
		}
		if _, has, _ := unstructured.NestedFieldNoCopy(list.Items[i].Object, "status", "loadBalancer", "ingress"); !has {
			names = append(names, list.Items[i].GetName())
		}
	}
	return names, nil
}
