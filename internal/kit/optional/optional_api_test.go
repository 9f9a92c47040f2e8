//go:build apitest

package optional_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// A kind that is missing keeps none of the others from being read, is named once, and is found later.
func TestAKindThatIsMissingStopsNothingElse(t *testing.T) {
	var mutex sync.Mutex
	reported := map[string]int{}
	logger := funcr.New(func(_, line string) {
		mutex.Lock()
		defer mutex.Unlock()
		for _, kind := range []string{"Gateway", "HTTPRoute", "GRPCRoute"} {
			if strings.Contains(line, "does not have a kind") && strings.Contains(line, `"kind"="`+kind+`"`) {
				reported[kind]++
			}
		}
	}, funcr.Options{})
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Scheme: operator.Scheme(), Logger: logger, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	whole := cache.ByObject{}
	kinds, err := optional.New(mgr, optional.Options{
		Required: []client.Object{&gatewayv1.Gateway{}},
		Budget: optional.Budget{ByObject: map[client.Object]cache.ByObject{
			&gatewayv1.Gateway{}: whole, &gatewayv1.HTTPRoute{}: whole, &gatewayv1.GRPCRoute{}: whole, &corev1.Service{}: whole,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := kinds.Setup(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if kinds.Running() || kinds.Has(&corev1.Service{}) {
		t.Error("something is kept in memory though the kind that all is for is missing")
	}
	found := func(objects ...client.Object) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := kinds.Find(); err != nil {
				return err
			}
			for _, object := range objects {
				if !kinds.Has(object) {
					return errors.New("a kind was not found")
				}
			}
			return nil
		})
	}
	install(t, "gateways", "httproutes")
	found(&gatewayv1.Gateway{}, &gatewayv1.HTTPRoute{}, &corev1.Service{})
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: env.Namespace(t)}}
	if err := env.Client.Create(ctx, route); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error { return kinds.Get(ctx, client.ObjectKeyFromObject(route), &gatewayv1.HTTPRoute{}) })
	none := &gatewayv1.GRPCRouteList{}
	if err := kinds.List(ctx, none); err != nil || len(none.Items) > 0 {
		t.Errorf("of a kind that is missing there is %v (%v)", none.Items, err)
	}
	if err := kinds.Get(ctx, types.NamespacedName{Namespace: "default", Name: "any"}, &gatewayv1.GRPCRoute{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object of a kind that is missing: %v", err)
	}
	install(t, "grpcroutes")
	found(&gatewayv1.GRPCRoute{})
	mutex.Lock()
	defer mutex.Unlock()
	for kind, times := range reported {
		if times != 1 {
			t.Errorf("that %s is missing is told %d times", kind, times)
		}
	}
	if reported["GRPCRoute"] != 1 {
		t.Error("nobody is told that GRPCRoute is missing")
	}
}

func install(t *testing.T, kinds ...string) {
	t.Helper()
	var files []string
	for _, kind := range kinds {
		files = append(files, "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml")
	}
	if err := env.InstallModule(t.Context(), "sigs.k8s.io/gateway-api", files...); err != nil {
		t.Fatal(err)
	}
}
