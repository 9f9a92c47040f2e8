//go:build apitest

package optional_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// streams counts the open watches of the older version.
type streams struct {
	next http.RoundTripper
	open atomic.Int64
}

func (s *streams) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err == nil && strings.Contains(request.URL.Path, "/v1beta1/") && request.URL.Query().Get("watch") != "" && response.StatusCode == http.StatusOK {
		s.open.Add(1)
		response.Body = &counted{response.Body, sync.OnceFunc(func() { s.open.Add(-1) })}
	}
	return response, err
}

type counted struct {
	io.ReadCloser

	closed func()
}

func (c *counted) Close() error { c.closed(); return c.ReadCloser.Close() }

// lines counts what the log says of a kind.
type lines struct {
	mutex sync.Mutex
	of    map[string]int
}

func (l *lines) add(line string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, what := range []string{"does not have a kind", "has only an older version"} {
		if strings.Contains(line, what) && strings.Contains(line, `"ReferenceGrant"`) {
			l.of[what]++
		}
	}
}

func (l *lines) count(what string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.of[what]
}

// An older version is read while there is no newer one. Then the newer one is, and the older one is left.
func TestAnOlderVersionIsReadUntilThereIsANewerOne(t *testing.T) {
	log, watches := &lines{of: map[string]int{}}, &streams{}
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { watches.next = next; return watches })
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: operator.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Logger: funcr.New(func(_, line string) { log.add(line) }, funcr.Options{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	newer, older := &gatewayv1.ReferenceGrant{}, &gatewayv1beta1.ReferenceGrant{}
	kinds, err := optional.New(mgr, optional.Options{
		Budget: optional.Budget{ByObject: map[client.Object]cache.ByObject{newer: {}, older: {}}},
		Older:  map[client.Object]client.Object{newer: older},
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
	find := func(wantNewer, wantOlder bool) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := kinds.Find(); err != nil {
				return err
			}
			if kinds.Has(newer) != wantNewer || kinds.Has(older) != wantOlder {
				return fmt.Errorf("newer %t, older %t; want %t and %t", kinds.Has(newer), kinds.Has(older), wantNewer, wantOlder)
			}
			return nil
		})
	}
	find(false, false)

	if err := env.InstallOldGatewayAPI(ctx, "referencegrants"); err != nil {
		t.Fatal(err)
	}
	find(false, true)
	find(false, true)
	first := &gatewayv1beta1.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: env.Namespace(t)}, Spec: spec()}
	environment.Eventually(t, func() error { return client.IgnoreAlreadyExists(env.Client.Create(ctx, first)) })
	environment.Eventually(t, func() error {
		list := &gatewayv1beta1.ReferenceGrantList{}
		if err := kinds.List(ctx, list); err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d objects (%w)", len(list.Items), err)
		}
		return nil
	})

	install(t, "referencegrants")
	find(true, false)
	second := first.DeepCopy()
	second.Name, second.ResourceVersion = "second", ""
	if err := env.Client.Create(ctx, second); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		list := &gatewayv1.ReferenceGrantList{}
		if err := kinds.List(ctx, list); err != nil || len(list.Items) != 2 {
			return fmt.Errorf("%d objects (%w)", len(list.Items), err)
		}
		return nil
	})
	environment.Eventually(t, func() error {
		if open := watches.open.Load(); open != 0 {
			return fmt.Errorf("%d watches of the older version", open)
		}
		return nil
	})
	if none := (&gatewayv1beta1.ReferenceGrantList{}); kinds.List(ctx, none) != nil || len(none.Items) > 0 {
		t.Errorf("of the older version there is %v", none.Items)
	}
	for _, what := range []string{"does not have a kind", "has only an older version"} {
		if got := log.count(what); got != 1 {
			t.Errorf("that the cluster %s is told %d times, want once", what, got)
		}
	}
}

func TestAnOlderVersionNeedsABudget(t *testing.T) {
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Scheme: operator.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	newer, older := &gatewayv1.ReferenceGrant{}, &gatewayv1beta1.ReferenceGrant{}
	_, err = optional.New(mgr, optional.Options{
		Budget: optional.Budget{ByObject: map[client.Object]cache.ByObject{newer: {}}},
		Older:  map[client.Object]client.Object{newer: older},
	})
	if err == nil || !strings.Contains(err.Error(), "the cache budget has no ReferenceGrant") {
		t.Error(errors.Join(errors.New("want an error of the budget, got"), err))
	}
}

func spec() gatewayv1.ReferenceGrantSpec {
	return gatewayv1.ReferenceGrantSpec{
		From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "Gateway", Namespace: "default"}},
		To:   []gatewayv1.ReferenceGrantTo{{Kind: "Secret"}},
	}
}
