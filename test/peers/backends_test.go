//go:build peers

package peers

import (
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// blue and green are backends that are alike. Mixed has an endpoint like them, and one that answers 503 at /never.
const blue, green, mixed = "blue", "green", "mixed"

// startBackends starts them and waits until they are ready.
func (p *play) startBackends() {
	echo := os.Getenv("ECHO_IMAGE")
	if echo == "" {
		p.Fatal("ECHO_IMAGE is not set: there is no image of hack/echo")
	}
	backends := []struct {
		name, image string
		labels      map[string]string
	}{
		{blue, echo, map[string]string{"app": blue}},
		{green, echo, map[string]string{"app": green}},
		{"good", echo, map[string]string{"app": "good", "of": mixed}},
		{"bad", p.Cluster.DemoImage, map[string]string{"app": "bad", "of": mixed}},
	}
	for _, b := range backends {
		p.Create(backend(b.name, b.image, b.labels))
	}
	for name, selector := range map[string]map[string]string{blue: {"app": blue}, green: {"app": green}, mixed: {"of": mixed}} {
		p.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
			Selector: selector, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		}})
	}
	for _, b := range backends {
		p.Kubectl("rollout", "status", "deployment/"+b.name, "--timeout=90s")
	}
}

func backend(name, image string, labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": labels["app"]}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "backend", Image: image, Env: []corev1.EnvVar{{Name: "COLOR", Value: name}, {Name: "PORT", Value: "8080"}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)},
				}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		}},
	}}
}
