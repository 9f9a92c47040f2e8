//go:build scale

package scale

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// patience is how long one reaction of the operator may take.
const patience = time.Minute

// latencies are how long something took each time.
type latencies []time.Duration

// percentile returns the smallest value that p percent of all are not above.
func (l latencies) percentile(p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(l))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}

func (l latencies) row(what string, goal time.Duration) (row, *bool) {
	p50, p99, worst := l.percentile(50), l.percentile(99), slices.Max(l)
	return row{
		What: what, Goal: fmt.Sprintf("p99 %v", goal),
		Measured: fmt.Sprintf("p50 %s, p99 %s, worst %s (%d samples)", ms(p50), ms(p99), ms(worst), len(l)),
		Values:   map[string]float64{"p50ms": inMS(p50), "p99ms": inMS(p99), "maxms": inMS(worst)},
	}, met(p99 <= goal)
}

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func ms(d time.Duration) string { return fmt.Sprintf("%.3g ms", inMS(d)) }

// measureSpecChange takes the time from the API server's answer to a change of a spec
// until the Deployment's watch shows it. Changes come one at a time, and the next one
// only when the status is current: nothing waits behind anything.
func measureSpecChange(t *testing.T, s *server, webApps *follower, apps []*slipwayv1alpha1.WebApp) latencies {
	t.Helper()
	deployments := follow(t, s, &appsv1.DeploymentList{})
	var taken latencies
	for i := range size.samples {
		app := apps[i*7%len(apps)]
		image := fmt.Sprintf("registry.example.com/shop:sample-%d", i)
		updated := deployments.expect(func(e event) bool {
			d, ok := e.object.(*appsv1.Deployment)
			return ok && imageOf(d) == image
		})
		// The status is current when it speaks of the generation that the change made.
		observed := webApps.expect(func(e event) bool {
			a, ok := e.object.(*slipwayv1alpha1.WebApp)
			return ok && a.UID == app.UID && a.Spec.Image == image && current(e)
		})
		if err := s.setImage(t, app, image); err != nil {
			t.Fatal(err)
		}
		answered := time.Now()
		taken = append(taken, max(0, receive(t, "the Deployment", updated, patience).Sub(answered)))
		receive(t, "the status", observed, patience)
	}
	return taken
}

// damage is something that a stranger does to a child.
type damage struct {
	name string
	// child is the kind that it is done to.
	child string
	do    func(t *testing.T, s *server, key types.NamespacedName) error
	// damaged and healed recognize the child after the damage, and as it should be.
	damaged, healed func(event) bool
}

// stranger is a field manager that is not the operator.
const stranger = client.FieldOwner("stranger")

func damages(image func(types.NamespacedName) string) []damage {
	deleted := func(e event) bool { return e.kind == watch.Deleted }
	added := func(e event) bool { return e.kind == watch.Added }
	of := func(key types.NamespacedName) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	}
	return []damage{
		{
			name: "Deployment edited", child: "Deployment",
			do: func(t *testing.T, s *server, key types.NamespacedName) error {
				patch := client.RawPatch(types.StrategicMergePatchType,
					[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"stranger"}]}}}}`))
				return s.client.Patch(t.Context(), &appsv1.Deployment{ObjectMeta: of(key)}, patch, stranger)
			},
			damaged: func(e event) bool { return imageOf(e.object.(*appsv1.Deployment)) == "stranger" },
			healed: func(e event) bool {
				d := e.object.(*appsv1.Deployment)
				return imageOf(d) == image(client.ObjectKeyFromObject(d))
			},
		},
		{
			name: "Service edited", child: "Service",
			do: func(t *testing.T, s *server, key types.NamespacedName) error {
				patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/ports/0/targetPort","value":9}]`))
				return s.client.Patch(t.Context(), &corev1.Service{ObjectMeta: of(key)}, patch, stranger)
			},
			damaged: func(e event) bool { return e.object.(*corev1.Service).Spec.Ports[0].TargetPort.IntVal == 9 },
			healed:  func(e event) bool { return e.object.(*corev1.Service).Spec.Ports[0].TargetPort.StrVal == "http" },
		},
		{
			name: "Deployment deleted", child: "Deployment",
			do: func(t *testing.T, s *server, key types.NamespacedName) error {
				return s.client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: of(key)})
			},
			damaged: deleted, healed: added,
		},
		{
			name: "Service deleted", child: "Service",
			do: func(t *testing.T, s *server, key types.NamespacedName) error {
				return s.client.Delete(t.Context(), &corev1.Service{ObjectMeta: of(key)})
			},
			damaged: deleted, healed: added,
		},
	}
}

// measureDrift takes the time from the API server's answer to a damage until the
// child's watch shows it healed.
func measureDrift(t *testing.T, s *server, p *process, apps []*slipwayv1alpha1.WebApp) latencies {
	t.Helper()
	followers := map[string]*follower{
		"Deployment": follow(t, s, &appsv1.DeploymentList{}),
		"Service":    follow(t, s, &corev1.ServiceList{}),
	}
	images := map[types.NamespacedName]string{}
	deployments := &appsv1.DeploymentList{}
	if err := s.client.List(t.Context(), deployments); err != nil {
		t.Fatal(err)
	}
	for i := range deployments.Items {
		images[client.ObjectKeyFromObject(&deployments.Items[i])] = imageOf(&deployments.Items[i])
	}
	all := damages(func(key types.NamespacedName) string { return images[key] })
	var taken latencies
	for i := range size.samples {
		d := all[i%len(all)]
		key := client.ObjectKeyFromObject(apps[i*7%len(apps)])
		var seen bool
		healed := followers[d.child].expect(func(e event) bool {
			if client.ObjectKeyFromObject(e.object) != key {
				return false
			}
			seen = seen || d.damaged(e)
			return seen && d.healed(e)
		})
		if err := d.do(t, s, key); err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		answered := time.Now()
		taken = append(taken, max(0, receive(t, d.name, healed, patience).Sub(answered)))
	}
	p.rest(t)
	return taken
}
