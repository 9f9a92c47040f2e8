package dataplane

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/memory"
)

const (
	// defaultCPU and defaultMemory are what a pod requests: enough for a gateway with 1,000 routes at a modest load.
	defaultCPU    = "100m"
	defaultMemory = "64Mi"
	// defaultMemoryLimit is about three times what a pod with 40,000 routes was seen to need, 697 MiB. A pod that requests
	// more than half of it may use twice of its request.
	defaultMemoryLimit = "2Gi"
	// goLimitVariable is the environment variable by which the Go runtime learns where to collect garbage more often.
	goLimitVariable = "GOMEMLIMIT"
)

// limitMemory states the resources of the container. Of memory there is always a limit: without one, clients and backends
// that attack the gateway take memory from everybody on its node. There is none of CPU: slow requests are worse than a
// busy node.
func limitMemory(c *corev1ac.ContainerApplyConfiguration, in Pods) {
	if hasNoLimit(in) {
		c.WithResources(firstResources(in.Resources))
		return
	}
	wanted := resources(in.Resources)
	c.WithResources(corev1ac.ResourceRequirements().WithRequests(wanted.Requests).WithLimits(wanted.Limits))
	if limit := wanted.Limits.Memory().Value(); limit > 0 { // 0 is no limit, and less than 0 too much for an int64
		c.WithEnv(corev1ac.EnvVar().WithName(goLimitVariable).WithValue(goLimit(limit)))
	}
}

// resources are the spec's, with the default for each thing that it leaves out: the request of memory if there is no limit
// either, the limit, and the request of CPU if nothing is stated.
func resources(stated *slipwayv1alpha1.ResourceRequirements) corev1.ResourceRequirements {
	if stated == nil {
		stated = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(defaultCPU)}}
	}
	requests, limits := maps.Clone(stated.Requests), maps.Clone(stated.Limits)
	if _, limited := limits[corev1.ResourceMemory]; limited {
		return corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
	if _, requested := requests[corev1.ResourceMemory]; !requested { // else Kubernetes takes the limit for the request
		requests = with(requests, corev1.ResourceMemory, resource.MustParse(defaultMemory))
	}
	return corev1.ResourceRequirements{
		Requests: requests, Limits: with(limits, corev1.ResourceMemory, memoryLimit(requests[corev1.ResourceMemory])),
	}
}

// memoryLimit is the default, or twice the request if that is more.
func memoryLimit(request resource.Quantity) resource.Quantity {
	limit, twice := resource.MustParse(defaultMemoryLimit), request.DeepCopy()
	twice.Add(request)
	if twice.Cmp(limit) > 0 {
		return twice
	}
	return limit
}

func with(list corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[name] = quantity
	return list
}

// goLimit is the value of GOMEMLIMIT in a container with this limit, in bytes.
func goLimit(limit int64) string {
	const kib = 1 << 10
	return fmt.Sprintf("%dKiB", memory.GoLimit(limit)/kib)
}

// hasNoLimit reports whether pods of the same image run with the resources of v0.2.0 and before, and these are what the
// spec asks for. They keep them until the image or the spec is another one: an upgrade of the operator replaces no pods.
// Ends in v0.5.0.
func hasNoLimit(in Pods) bool {
	container := current(in)
	if container == nil || slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == goLimitVariable }) {
		return false
	}
	first := firstResources(in.Resources)
	return equality.Semantic.DeepEqual(container.Resources.Requests, valueOf(first.Requests)) &&
		equality.Semantic.DeepEqual(container.Resources.Limits, valueOf(first.Limits))
}

func valueOf(list *corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return nil
	}
	return *list
}

// firstResources are those that v0.2.0 and before gave a pod: the spec's, or a request of CPU and memory.
func firstResources(stated *slipwayv1alpha1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	switch made := children.Resources(stated); {
	case stated == nil:
		return corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(defaultCPU),
			corev1.ResourceMemory: resource.MustParse(defaultMemory),
		})
	case made == nil:
		return corev1ac.ResourceRequirements()
	default:
		return made
	}
}
