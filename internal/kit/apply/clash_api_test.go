//go:build apitest

package apply_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// The number of a port is its key, so to change it is to put another port of the same name
// in its place.
func TestAPortWhoseNumberSomebodyChangedIsRepaired(t *testing.T) {
	theirs := corev1.ServicePort{Name: "theirs", Port: 9}
	tests := map[string]struct {
		edit     func(*corev1.Service)
		want     []corev1.ServicePort
		reported []string
	}{
		"another number": {
			func(s *corev1.Service) { s.Spec.Ports[0].Port = 9090 },
			nil,
			[]string{`Service "shop": spec.ports[80/TCP] was removed; restored`},
		},
		"another number, beside a port of theirs": {
			func(s *corev1.Service) { s.Spec.Ports[0].Port = 9090; s.Spec.Ports = append(s.Spec.Ports, theirs) },
			[]corev1.ServicePort{theirs},
			[]string{`Service "shop": spec.ports[80/TCP] was removed; restored`},
		},
		"another protocol": {
			func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP },
			nil,
			[]string{`Service "shop": spec.ports[80/TCP] was removed; restored`},
		},
		"the name given to another port": {
			func(s *corev1.Service) {
				s.Spec.Ports[0].Name = "old"
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "http", Port: 9090})
			},
			nil,
			[]string{`Service "shop": spec.ports[80/TCP].name was changed by "somebody"; restored`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			reported := f.repairs()
			f.mustApply(80, &corev1.Service{}, apply.Created)
			f.edit(tc.edit)
			f.mustApply(80, f.current(), apply.Updated)
			f.mustApply(80, f.current(), apply.Unchanged)
			onlyNumbers := cmpopts.IgnoreFields(corev1.ServicePort{}, "Protocol", "TargetPort")
			anyOrder := cmpopts.SortSlices(func(a, b corev1.ServicePort) bool { return a.Port < b.Port })
			want := append([]corev1.ServicePort{{Name: "http", Port: 80}}, tc.want...)
			if diff := cmp.Diff(want, f.current().Spec.Ports, onlyNumbers, anyOrder); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.reported, *reported); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			// Nothing of the repair stays: the port goes when it is no longer desired.
			f.mustApply(81, f.current(), apply.Updated)
			if diff := cmp.Diff(append([]corev1.ServicePort{{Name: "http", Port: 81}}, tc.want...), f.current().Spec.Ports, onlyNumbers, anyOrder); diff != "" {
				t.Errorf("ports after another statement (-want +got):\n%s", diff)
			}
			for _, entry := range f.current().ManagedFields {
				if entry.Manager == "slipway-test" && entry.Operation != metav1.ManagedFieldsOperationApply {
					t.Errorf("our own %s stays in the managed fields", entry.Operation)
				}
			}
		})
	}
}

// The ports of a container are such a list, too.
func TestAContainerPortWhoseNumberSomebodyChangedIsRepaired(t *testing.T) {
	f := newFixture(t)
	labels := map[string]string{"app": "shop"}
	desired := appsv1ac.Deployment("shop", f.owner.Namespace).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion("slipway.dev/v1alpha1").WithKind("WebApp").WithName(f.owner.Name).WithUID(f.owner.UID).WithController(true)).
		WithSpec(appsv1ac.DeploymentSpec().WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(
				corev1ac.Container().WithName("app").WithImage("shop:1").
					WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080).WithProtocol(corev1.ProtocolTCP))))))
	current := func() *appsv1.Deployment {
		deployment := &appsv1.Deployment{}
		err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.owner.Namespace, Name: "shop"}, deployment)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return deployment
	}
	for _, want := range []apply.Change{apply.Created, apply.Updated, apply.Unchanged} {
		got, err := f.applier.Apply(t.Context(), f.owner, apply.Child{Desired: desired, Current: current()})
		if err != nil || got != want {
			t.Fatalf("apply: %s, %v, want %s", got, err, want)
		}
		if ports := current().Spec.Template.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 8080 {
			t.Errorf("after %s: the ports are %+v", want, ports)
		}
		if want == apply.Created {
			edited := current()
			edited.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 9090
			if err := env.Client.Update(t.Context(), edited, client.FieldOwner("somebody")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An operator that sees an earlier version of an object must not take a port from anybody.
func TestAStaleCacheClaimsNoPort(t *testing.T) {
	f := newFixture(t)
	f.mustApply(80, &corev1.Service{}, apply.Created)
	f.edit(func(s *corev1.Service) { s.Spec.Ports[0].Port = 9090 })
	seen := f.current()
	f.edit(func(s *corev1.Service) { s.Labels["theirs"] = "yes" })
	before := f.current()
	_, err := f.apply(80, seen)
	if policy := (&outcome.Error{}); !errors.As(err, &policy) || policy.Kind != outcome.Quiet {
		t.Errorf("the answer is %v", err)
	}
	if diff := cmp.Diff(before, f.current()); diff != "" {
		t.Errorf("the Service was changed (-want +got):\n%s", diff)
	}
}
