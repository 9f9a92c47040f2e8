//go:build apitest

package gateway_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// The rights that are shipped are enough, and they let the operator give the pods theirs.
func TestTheShippedRightsAreEnough(t *testing.T) {
	f := newFixture(t)
	raw, err := os.ReadFile("../../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		t.Fatal(err)
	}
	role.Name = f.namespace
	f.create(role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.namespace},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.namespace}},
	})
	f.startOperator(func(config *rest.Config) { config.Impersonate = rest.ImpersonationConfig{UserName: f.namespace} })
	secret, g, route := f.certificate(f.other, "web"), f.gateway(secure(f.other, "web")), f.route("shop", "shop")
	f.create(f.class, f.grant(), secret, service(f.namespace, "shop"), g, route)
	f.running(g)
	tls := document.ServedListener{Name: "tls", Digest: document.ListenerDigest(443, true, "", []string{f.other + "/web@" + secret.ResourceVersion})}
	f.serve(g, []document.ServedListener{web(), tls}, route)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)
	if diff := cmp.Diff([]string{desired.Name(g)}, f.subjects()); diff != "" {
		t.Error(diff)
	}
}
