package dataplane_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/controller/dataplane"
)

const image = "gateway:1"

func list(texts map[corev1.ResourceName]string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, text := range texts {
		all[name] = resource.MustParse(text)
	}
	return all
}

func container(resources *slipwayv1alpha1.ResourceRequirements, current *appsv1.Deployment) corev1ac.ContainerApplyConfiguration {
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "team"}}
	deployment := dataplane.Deployment(dataplane.Pods{Owner: children.Owner{Object: gateway}, Image: image, Resources: resources, Current: current})
	return deployment.Spec.Template.Spec.Containers[0]
}

// softLimit is GOMEMLIMIT of a container, "" if there is none.
func softLimit(c corev1ac.ContainerApplyConfiguration) string {
	for _, variable := range c.Env {
		if *variable.Name == "GOMEMLIMIT" {
			return *variable.Value
		}
	}
	return ""
}

func TestAPodHasAMemoryLimitAndASoftOneBelow(t *testing.T) {
	type texts = map[corev1.ResourceName]string
	tests := map[string]struct {
		stated          *slipwayv1alpha1.ResourceRequirements
		requests, limit string // of memory, "" for none
		soft            string
	}{
		"nothing stated":         {nil, "64Mi", "2Gi", "1887436KiB"},
		"empty":                  {&slipwayv1alpha1.ResourceRequirements{}, "64Mi", "2Gi", "1887436KiB"},
		"a request of CPU":       {&slipwayv1alpha1.ResourceRequirements{Requests: list(texts{"cpu": "2"})}, "64Mi", "2Gi", "1887436KiB"},
		"a limit of CPU":         {&slipwayv1alpha1.ResourceRequirements{Limits: list(texts{"cpu": "2"})}, "64Mi", "2Gi", "1887436KiB"},
		"a small request":        {&slipwayv1alpha1.ResourceRequirements{Requests: list(texts{"memory": "1Gi"})}, "1Gi", "2Gi", "1887436KiB"},
		"a request above half":   {&slipwayv1alpha1.ResourceRequirements{Requests: list(texts{"memory": "3Gi"})}, "3Gi", "6Gi", "5662310KiB"},
		"more than Go can count": {&slipwayv1alpha1.ResourceRequirements{Requests: list(texts{"memory": "7Ei"})}, "7Ei", "14Ei", ""},
		"a limit":                {&slipwayv1alpha1.ResourceRequirements{Limits: list(texts{"memory": "512Mi"})}, "", "512Mi", "471859KiB"},
		"a small limit":          {&slipwayv1alpha1.ResourceRequirements{Limits: list(texts{"memory": "100M"})}, "", "100M", "87890KiB"},
		"both":                   {&slipwayv1alpha1.ResourceRequirements{Requests: list(texts{"memory": "1Gi"}), Limits: list(texts{"memory": "8Gi"})}, "1Gi", "8Gi", "7549747KiB"},
		"a limit of 0, which is no limit for Kubernetes": {&slipwayv1alpha1.ResourceRequirements{Limits: list(texts{"memory": "0"})}, "", "0", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := container(test.stated, nil)
			same := func(what string, in *corev1.ResourceList, want string) {
				quantity, there := corev1.ResourceList{}[corev1.ResourceMemory], false
				if in != nil {
					quantity, there = (*in)[corev1.ResourceMemory]
				}
				if there != (want != "") || there && quantity.String() != want {
					t.Errorf("the %s of memory is %v, %t, want %q", what, quantity.String(), there, want)
				}
			}
			same("request", got.Resources.Requests, test.requests)
			same("limit", got.Resources.Limits, test.limit)
			if soft := softLimit(got); soft != test.soft {
				t.Errorf("GOMEMLIMIT is %q, want %q", soft, test.soft)
			}
		})
	}
}

func TestTheSpecStaysAsItIs(t *testing.T) {
	stated := &slipwayv1alpha1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}
	got := container(stated, nil)
	if len(stated.Requests) != 1 || len(stated.Limits) != 1 {
		t.Errorf("the spec is now %v", stated)
	}
	if cpu := got.Resources.Requests.Cpu(); cpu.String() != "2" {
		t.Errorf("the request of CPU is %s, want 2", cpu)
	}
	if cpu := got.Resources.Limits.Cpu(); cpu.String() != "4" {
		t.Errorf("the limit of CPU is %s, want 4", cpu)
	}
}

// An upgrade of the operator alone replaces no pods: those of v0.2.0 keep what they have until their image or the spec changes.
func TestPodsWithoutALimitKeepTheirResourcesUntilSomethingElseChanges(t *testing.T) {
	first := corev1.ResourceRequirements{Requests: list(map[corev1.ResourceName]string{"cpu": "0.1", "memory": "64Mi"})}
	limited := corev1.ResourceRequirements{Limits: list(map[corev1.ResourceName]string{"memory": "1024Mi"})}
	running := func(image string, resources corev1.ResourceRequirements, env ...corev1.EnvVar) *appsv1.Deployment {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "sidecar", Image: image}, {Name: "gateway", Image: image, Resources: resources, Env: env},
		}}}}}
	}
	stated := &slipwayv1alpha1.ResourceRequirements{Limits: list(map[corev1.ResourceName]string{"memory": "1Gi"})}
	tests := map[string]struct {
		stated  *slipwayv1alpha1.ResourceRequirements
		current *appsv1.Deployment
		soft    string
	}{
		"as v0.2.0 made it":                      {nil, running(image, first), ""},
		"the same without resources":             {&slipwayv1alpha1.ResourceRequirements{}, running(image, corev1.ResourceRequirements{}), ""},
		"the same with a limit":                  {stated, running(image, limited), ""},
		"another image":                          {nil, running("gateway:0", first), "1887436KiB"},
		"another spec":                           {stated, running(image, first), "943718KiB"},
		"resources that somebody else has made":  {nil, running(image, corev1.ResourceRequirements{}), "1887436KiB"},
		"the soft limit is there, the limit not": {nil, running(image, first, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "1"}), "1887436KiB"},
		"no container":                           {nil, &appsv1.Deployment{}, "1887436KiB"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := container(test.stated, test.current)
			if soft := softLimit(got); soft != test.soft {
				t.Errorf("GOMEMLIMIT is %q, want %q", soft, test.soft)
			}
			if test.soft == "" && test.stated == nil && got.Resources.Limits != nil {
				t.Errorf("the limits are %v, want none", *got.Resources.Limits)
			}
		})
	}
}
