package gatewayapi

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// BenchmarkBuild builds the graph of a Gateway with many routes. The operator and each pod do so after each burst of changes.
func BenchmarkBuild(b *testing.B) {
	for _, routes := range []int{10, 1000, 5000} {
		b.Run(fmt.Sprintf("%d_routes", routes), func(b *testing.B) {
			in := Input{
				Gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge"}, Spec: gatewayv1.GatewaySpec{
					Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
				}},
				Services: map[types.NamespacedName]Service{{Namespace: "infra", Name: "web"}: {Ports: map[int32]Port{80: {}}}},
			}
			port, path := int32(80), "/"
			for i := range routes {
				route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: fmt.Sprintf("r%d", i)}}
				route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "edge"}}
				route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%d.example.com", i))}
				route.Spec.Rules = []gatewayv1.HTTPRouteRule{{
					Matches:     []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: &path}}},
					BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Port: &port}}}},
				}}
				in.HTTPRoutes = append(in.HTTPRoutes, route)
			}
			b.ReportAllocs()
			for b.Loop() {
				if g := Build(in); len(g.Rules) != routes {
					b.Fatalf("%d rules, want %d", len(g.Rules), routes)
				}
			}
		})
	}
}
