//go:build apitest

package optional_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// A kind that may not be read holds nothing up. It is named once, and read when the right is there.
func TestAKindThatMayNotBeReadIsReadWhenItMay(t *testing.T) {
	install(t, "gatewayclasses")
	var logged atomic.Int64
	user := "of-" + env.Namespace(t)
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: operator.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Logger: funcr.New(func(_, line string) {
			if strings.Contains(line, "has no right to list and watch a kind") && strings.Contains(line, `"GatewayClass"`) {
				logged.Add(1)
			}
		}, funcr.Options{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	class := &gatewayv1.GatewayClass{}
	kinds, err := optional.New(mgr, optional.Options{
		Budget: optional.Budget{ByObject: map[client.Object]cache.ByObject{class: {}}}, Required: []client.Object{class}, MayBeForbidden: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, kinds.Setup)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := kinds.Find(); err != nil || kinds.Running() || logged.Load() != 1 {
		t.Errorf("without the right it is read: %v (%v), which was told %d times", kinds.Running(), err, logged.Load())
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{gatewayv1.GroupName}, Resources: []string{"gatewayclasses"}, Verbs: []string{"get", "list", "watch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	made := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: user}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/any"}}
	for _, object := range []client.Object{role, binding, made} {
		if err := env.Client.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	environment.Eventually(t, func() error {
		if err := kinds.Find(); err != nil {
			return err
		}
		if !kinds.Running() {
			return errors.New("it is not read")
		}
		return kinds.Get(ctx, client.ObjectKeyFromObject(made), &gatewayv1.GatewayClass{})
	})
}
