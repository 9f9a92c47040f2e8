package watch

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/clock"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// manyRoutes returns an APIGateway as the API server sends it, with one Service for each of
// its routes.
func manyRoutes(b *testing.B, n int) (text []byte, services, slices []any) {
	b.Helper()
	gateway := &slipwayv1alpha1.APIGateway{
		TypeMeta:   metav1.TypeMeta{APIVersion: slipwayv1alpha1.SchemeGroupVersion.String(), Kind: "APIGateway"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "u", Generation: 1},
	}
	for i := range n {
		name := fmt.Sprintf("app-%d", i)
		gateway.Spec.Routes = append(gateway.Spec.Routes, slipwayv1alpha1.Route{
			Host: slipwayv1alpha1.HostName(name + ".example.com"), Path: "/api/", PathType: slipwayv1alpha1.PathPrefix,
			BackendService: &slipwayv1alpha1.BackendService{Name: slipwayv1alpha1.ServiceName(name), Port: 80},
		})
		services = append(services, serviceObject(name, web))
		slices = append(slices, sliceObject(name, name+"-1", fmt.Sprintf("10.0.%d.%d", i/250, i%250), fmt.Sprintf("10.1.%d.%d", i/250, i%250)))
	}
	text, err := json.Marshal(gateway)
	if err != nil {
		b.Fatal(err)
	}
	return text, services, slices
}

// BenchmarkChange measures the cost of a changed spec, and of a changed endpoint, from the
// bytes of the API server to the first request that uses the change.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{10, 1000} {
		text, services, slices := manyRoutes(b, n)
		decoder := serializer.NewCodecFactory(newScheme()).UniversalDeserializer()
		handler := proxy.New(proxy.Options{})
		s := New(Options{
			Namespace: "shop", Name: "edge", Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Board: document.NewBoard(clock.RealClock{}, "dev"),
			Apply: func(config Config) (map[Port]error, error) { handler.Set(config.Proxy); return nil, nil },
		})
		if err := s.services.Replace(services, ""); err != nil {
			b.Fatal(err)
		}
		if err := s.slices.Replace(slices, ""); err != nil {
			b.Fatal(err)
		}
		decode := func() runtime.Object {
			object, err := runtime.Decode(decoder, text)
			if err != nil {
				b.Fatal(err)
			}
			return object
		}
		current := decode().(*object)
		generation := int64(0)
		b.Run(fmt.Sprintf("decode/%d", n), func(b *testing.B) {
			for b.Loop() {
				decode()
			}
		})
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := keepVersion(current).read(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("spec/%d", n), func(b *testing.B) {
			for b.Loop() {
				generation++
				current.Generation = generation
				if err := s.gateways.Update(current); err != nil {
					b.Fatal(err)
				}
				s.look(b.Context())
			}
		})
		b.Run(fmt.Sprintf("endpoints/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.look(b.Context())
			}
		})
		if got := s.options.Board.Current(); got.Generation != generation || len(got.Problems) > 0 {
			b.Fatalf("serves %+v", got)
		}
	}
}
