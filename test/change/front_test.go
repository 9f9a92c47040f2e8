//go:build e2e || change

package change

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// front is what a gateway is made of: an APIGateway, or a Gateway and its routes.
type front interface {
	// create makes it, with the routes of the run.
	create(r *run)
	// deployment is the name of its Deployment, and of its Service.
	deployment(r *run) string
	// replicas is how many pods are wanted.
	replicas(r *run) (int32, error)
	// apply writes the routes of the run, and live waits until status says that every pod serves them.
	apply(r *run)
	live(r *run)
	// scale scales it to 5 or back to 1, and returns which.
	scale(r *run) int32
	// upgrade makes the operator replace the pods.
	upgrade(r *run, c change)
	// switchListener adds a listener, or removes it.
	switchListener(r *run, c change)
}

// ofAPIGateway is an APIGateway.
type ofAPIGateway struct{}

func (*ofAPIGateway) create(r *run) {
	r.Helper()
	r.must(cluster.Create(r.Context(), &slipwayv1alpha1.APIGateway{ObjectMeta: r.named(gateway), Spec: slipwayv1alpha1.APIGatewaySpec{
		// Without it, the release's own is meant.
		Image:  os.Getenv("GATEWAY_IMAGE"),
		Routes: r.routes,
		TLS:    []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "cert"}}},
		Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeClusterIP},
		// Of the requests that do not fail few are logged.
		AccessLog: &slipwayv1alpha1.AccessLog{SamplePercent: ptr(int32(1))},
	}}))
}

func (*ofAPIGateway) deployment(*run) string { return gateway }

func (*ofAPIGateway) replicas(r *run) (int32, error) {
	g := &slipwayv1alpha1.APIGateway{}
	if err := cluster.Get(r.Context(), r.key(gateway), g); err != nil {
		return 0, err
	}
	return *g.Spec.Replicas, nil
}

func (*ofAPIGateway) apply(r *run) {
	r.Helper()
	r.update(func(spec *slipwayv1alpha1.APIGatewaySpec) { spec.Routes = r.routes })
}

func (*ofAPIGateway) live(r *run) {
	r.Helper()
	r.eventually(func() error {
		g := &slipwayv1alpha1.APIGateway{}
		if err := cluster.Get(r.Context(), r.key(gateway), g); err != nil {
			return err
		}
		routes := g.Status.Routes
		if g.Status.ObservedGeneration != g.Generation || routes.Live != routes.Total || routes.Total != int32(len(g.Spec.Routes)) {
			return fmt.Errorf("generation %d of %d, %d of %d routes are live: %v", g.Status.ObservedGeneration, g.Generation, routes.Live, routes.Total, g.Status.Conditions)
		}
		return nil
	})
}

func (*ofAPIGateway) scale(r *run) (next int32) {
	r.Helper()
	r.update(func(spec *slipwayv1alpha1.APIGatewaySpec) {
		next = otherScale(*spec.Replicas)
		spec.Replicas = &next
	})
	return next
}

func otherScale(is int32) int32 {
	if is == 5 {
		return 1
	}
	return 5
}

func (*ofAPIGateway) upgrade(r *run, c change) {
	r.Helper()
	r.update(func(spec *slipwayv1alpha1.APIGatewaySpec) {
		spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: *resource.NewQuantity(int64(64<<20+c.number<<10), resource.BinarySI),
		}}
	})
}

func (*ofAPIGateway) switchListener(r *run, _ change) {
	r.Helper()
	r.Fatal("an APIGateway has no listeners")
}

// update changes the spec of the APIGateway.
func (r *run) update(change func(*slipwayv1alpha1.APIGatewaySpec)) {
	r.Helper()
	r.eventually(func() error {
		g := &slipwayv1alpha1.APIGateway{}
		if err := cluster.Get(r.Context(), r.key(gateway), g); err != nil {
			return err
		}
		change(&g.Spec)
		return cluster.Update(r.Context(), g)
	})
}
