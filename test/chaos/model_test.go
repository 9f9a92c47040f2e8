//go:build chaos

package chaos

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// mostReplicas bounds what the plan asks for. No autoscaler is asked for less, because
// one that has to scale down thinks about it for 15 s.
const mostReplicas = 3

// app is what one application should be. The numbers stand for values: two equal numbers
// are the same value.
type app struct {
	name string

	// What pods are made of.
	image, message, greeting int
	port                     int32
	// unused is a key of the application's Secret that it does not use.
	unused int

	// replicas is spec.replicas.
	replicas int32
	// least is the autoscaler's lower bound; 0: there is no autoscaler.
	least int32
	// pods is how many there should be. The cluster measures no CPU use, so an autoscaler
	// keeps the number within its bounds, and else as it finds it.
	pods int32

	// templates is how often something was changed that pods are made of.
	templates int
	since     sinceSettled
}

// sinceSettled is what was done to an application since the cluster was last compared
// with the model. It bounds how many pods may have come and gone.
type sinceSettled struct {
	created   bool
	scaled    bool
	templates int
	// more and fewer are how many pods were asked for in addition, and how many less.
	more, fewer int32
	// most is the highest number of pods asked for.
	most int32
}

func newApp(name string, value int) *app {
	pods := int32(1 + value%2)
	return &app{
		name: name, message: value, greeting: value, port: 8080, replicas: pods, pods: pods,
		since: sinceSettled{created: true, most: pods},
	}
}

// do changes the model. value is new, never used before.
func (a *app) do(o operation, value int) {
	switch o {
	case changeImage:
		a.image = 1 - a.image
	case changeMessage:
		a.message = value
	case changeGreeting:
		a.greeting = value
	case changePort:
		a.port = 8080 + 9090 - a.port
	case changeUnused:
		a.unused = value
		return
	case changeReplicas:
		// Another number of those from 0 to mostReplicas.
		a.replicas = (a.replicas + 1 + int32(value)%mostReplicas) % (mostReplicas + 1)
		a.scale()
		return
	case changeAutoscaling:
		// Off, or another lower bound.
		a.least = (a.least + 1 + int32(value)%mostReplicas) % (mostReplicas + 1)
		a.scale()
		return
	}
	a.templates++
	a.since.templates++
}

func (a *app) scale() {
	before := a.pods
	a.pods = max(a.pods, a.least)
	if a.least == 0 {
		a.pods = a.replicas
	}
	a.since.scaled = true
	a.since.more += max(0, a.pods-before)
	a.since.fewer += max(0, before-a.pods)
	a.since.most = max(a.since.most, a.pods)
}

// settled begins a new account of what is done.
func (a *app) settled() { a.since = sinceSettled{most: a.pods} }

// maxReplicas is the number of pods that a disruption budget is about.
func (a *app) maxReplicas() int32 {
	if a.least > 0 {
		return mostReplicas
	}
	return a.replicas
}

// imageName is the name of the demo's image, or the other one.
func (a *app) imageName() string {
	if a.image == 0 {
		return cluster.DemoImage
	}
	return livecluster.OtherNameOf(cluster.DemoImage)
}

// The values that the numbers stand for.
func (a *app) messageText() string  { return fmt.Sprintf("message %d.", a.message) }
func (a *app) greetingText() string { return fmt.Sprintf("greeting %d.", a.greeting) }

func (a *app) spec() slipwayv1alpha1.WebAppSpec {
	spec := slipwayv1alpha1.WebAppSpec{
		Image: a.imageName(), Port: a.port, Replicas: &a.replicas,
		Env: map[string]slipwayv1alpha1.EnvValue{
			"MESSAGE": slipwayv1alpha1.EnvValue(a.messageText()),
			"PORT":    slipwayv1alpha1.EnvValue(fmt.Sprint(a.port)),
		},
		EnvFrom: []slipwayv1alpha1.EnvFromSource{{
			SecretRef: &slipwayv1alpha1.LocalReference{Name: a.name}, Keys: []string{"GREETING"},
		}},
		Resources: &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m")}},
		Health:    &slipwayv1alpha1.HealthCheck{Path: "/healthz", PeriodSeconds: ptr(int32(1))},
	}
	if a.least > 0 {
		spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: &a.least, MaxReplicas: mostReplicas}
	}
	return spec
}

func (a *app) webApp(namespace string) *slipwayv1alpha1.WebApp {
	return &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: namespace}, Spec: a.spec()}
}

func (a *app) secret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: namespace},
		StringData: map[string]string{"GREETING": a.greetingText(), "UNUSED": fmt.Sprint(a.unused)},
	}
}

func ptr[T any](value T) *T { return &value }
