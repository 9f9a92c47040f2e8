//go:build peers

package peers

import (
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// blue and green are backends that are alike. Mixed has an endpoint like them, and one that answers 503 at /never. Half has one like
// them, and one with nobody at the port of the Service.
const blue, green, mixed, half = "blue", "green", "mixed", "half"

// listens is the port of every backend.
const listens = 8080

// startBackends starts them and waits until they are ready.
func (p *play) startBackends() {
	echo := os.Getenv("ECHO_IMAGE")
	if echo == "" {
		p.Fatal("ECHO_IMAGE is not set: there is no image of hack/echo")
	}
	backends := []struct {
		name, image string
		labels      map[string]string
		port        int32 // to which the Service sends
	}{
		{blue, echo, map[string]string{"app": blue}, listens},
		{green, echo, map[string]string{"app": green}, listens},
		{"good", echo, map[string]string{"app": "good", "of": mixed}, listens},
		{"bad", p.Cluster.DemoImage, map[string]string{"app": "bad", "of": mixed}, listens},
		{"hears", echo, map[string]string{"app": "hears", "of": half}, listens},
		{"deaf", echo, map[string]string{"app": "deaf", "of": half}, listens + 1},
	}
	for _, b := range backends {
		p.Create(backend(b.name, b.image, b.labels, b.port))
	}
	for name, selector := range map[string]map[string]string{blue: {"app": blue}, green: {"app": green}, mixed: {"of": mixed}, half: {"of": half}} {
		p.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
			Selector: selector, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("web")}},
		}})
	}
	for _, b := range backends {
		p.Kubectl("rollout", "status", "deployment/"+b.name, "--timeout=90s")
	}
}

func backend(name, image string, labels map[string]string, port int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": labels["app"]}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "backend", Image: image, Env: []corev1.EnvVar{{Name: "COLOR", Value: name}, {Name: "PORT", Value: fmt.Sprint(listens)}},
				Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: port}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(listens)},
				}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		}},
	}}
}
