package watch

import (
	"crypto/x509"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// copies puts the Secret with the copies into its store: these bundles, by namespace/name.
func (f *gatewayFixture) copies(bundles map[types.NamespacedName][]byte) {
	f.t.Helper()
	data := map[string][]byte{}
	for name, pem := range bundles {
		copied.PutBundle(data, name, copied.Bundle{Authorities: pem, Version: "1"})
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-certificates", ResourceVersion: "1"}, Data: data}
	f.must(f.secrets.watched["edge-certificates"].store.Replace([]any{secret}, ""))
}

// tls is how the only backend is reached.
func (f *gatewayFixture) tls() *model.BackendTLS {
	f.t.Helper()
	last := f.applied[len(f.applied)-1].Proxy.Table
	if len(last.Backends) != 1 {
		f.t.Fatalf("%d backends", len(last.Backends))
	}
	return last.Backends[0].TLS
}

func (f *gatewayFixture) policy(generation int64, spec string) {
	f.t.Helper()
	f.must(f.policies.watched[""].store.Update(gatewayAPIObject(f.t, "a", "app", generation, spec)))
	f.look(f.t.Context())
}

const appPolicy = `{targetRefs: [{group: "", kind: Service, name: app}], validation: {hostname: app.internal, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}`

func TestABackendWithAPolicyIsReachedWithTLSOnly(t *testing.T) {
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	name := types.NamespacedName{Namespace: "a", Name: "ca"}
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	f.backend("a")
	f.look(t.Context())
	if got := f.tls(); got != nil {
		t.Fatalf("without a policy: %+v", got)
	}
	f.policy(1, appPolicy)
	f.copies(nil)
	f.look(t.Context())
	unreachable := func(when string) {
		t.Helper()
		// The route is there, and has no backend that it may use.
		if last := f.applied[len(f.applied)-1].Proxy.Table; len(last.Routes) != 1 || len(last.Backends) != 0 {
			t.Errorf("%s: %d routes, %d backends", when, len(last.Routes), len(last.Backends))
		}
	}
	unreachable("before there is a copy")
	f.copies(map[types.NamespacedName][]byte{name: ca.PEM()})
	f.look(t.Context())
	got := f.tls()
	if got == nil || got.ServerName != "app.internal" || !got.Roots.Equal(ca.Pool()) {
		t.Fatalf("with the copy: %+v", got)
	}
	first := got.Identity
	f.copies(map[types.NamespacedName][]byte{name: other.PEM()})
	f.look(t.Context())
	if got := f.tls(); got == nil || got.Identity == first || !got.Roots.Equal(other.Pool()) {
		t.Errorf("with other authorities: %+v", got)
	}
	f.copies(nil)
	f.look(t.Context())
	unreachable("when nobody is trusted any more")
	f.copies(map[types.NamespacedName][]byte{name: []byte("x")})
	f.look(t.Context())
	unreachable("when the authorities cannot be read")
	f.copies(map[types.NamespacedName][]byte{name: ca.PEM()})
	f.policy(2, `{targetRefs: [{group: "", kind: Service, name: app}], stricter: true, validation: {hostname: app.internal, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}`)
	unreachable("with a field that nobody knows")
	f.policy(3, `{targetRefs: [{group: "", kind: Service, name: app}], validation: []}`)
	unreachable("with a spec of another form")
	if problems := f.board.Current().Problems; len(problems) == 0 || problems[0].Field != "BackendTLSPolicy a/app" {
		t.Errorf("says %+v", problems)
	}
	f.policy(4, appPolicy)
	if got := f.tls(); got == nil || got.Identity != first {
		t.Errorf("mended: %+v", got)
	}
	f.must(f.policies.watched[""].store.Delete(gatewayAPIObject(t, "a", "app", 4, appPolicy)))
	f.look(t.Context())
	if got := f.tls(); got != nil {
		t.Errorf("without the policy: %+v", got)
	}
}

func TestAPolicyForOtherServicesWakesNobody(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	f.backend("a")
	f.look(t.Context())
	woken := func() bool {
		select {
		case <-f.woken:
			return true
		default:
			return false
		}
	}
	woken() // for what has changed until now
	f.must(f.policies.watched[""].store.Update(gatewayAPIObject(t, "b", "app", 1, appPolicy)))
	if woken() {
		t.Error("a policy for a Service that no route names is looked at")
	}
	f.must(f.policies.watched[""].store.Update(gatewayAPIObject(t, "a", "app", 1, appPolicy)))
	if !woken() {
		t.Error("a policy for a Service of a route is not looked at")
	}
}

func TestClientsOfAListenerProveWhoTheyAre(t *testing.T) {
	ca := authority.New(t, "ca")
	crt, key := ca.IssuePEM(t, x509.Certificate{DNSNames: []string{"edge.test"}})
	name := types.NamespacedName{Namespace: "infra", Name: "clients"}
	f := newGatewayFixture(t)
	f.gateway(1, `{gatewayClassName: slipway,
		tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}},
		listeners: [{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: edge}]}}]}`)
	f.synced()
	f.look(t.Context())
	edge := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", ResourceVersion: "1"},
		Data:       map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key},
	}
	f.must(f.secrets.watched["edge"].store.Replace([]any{edge}, ""))
	f.copies(nil)
	f.look(t.Context())
	last := func() GatewayConfig { return f.applied[len(f.applied)-1] }
	if got := last(); len(got.Secure) != 1 || len(got.Secure[0].Certificates) != 0 || len(got.Ports) != 0 || len(f.board.Current().Listeners) != 0 {
		t.Fatalf("without authorities it serves %+v", got)
	}
	f.copies(map[types.NamespacedName][]byte{name: ca.PEM()})
	f.look(t.Context())
	got := last()
	if diff := cmp.Diff(map[Port]bool{{443, proxy.PortTLS}: true}, got.Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if len(got.Secure) != 1 || got.Secure[0].Clients == nil || got.Secure[0].Clients.Optional || !got.Secure[0].Clients.Roots.Equal(ca.Pool()) {
		t.Fatalf("serves %+v", got.Secure)
	}
	before := f.board.Current().Listeners[0].Digest
	f.gateway(2, `{gatewayClassName: slipway,
		tls: {frontend: {default: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}},
		listeners: [{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: edge}]}}]}`)
	f.look(t.Context())
	if got := last().Secure[0].Clients; !got.Optional || got.Identity == "" {
		t.Errorf("serves %+v", got)
	}
	if f.board.Current().Listeners[0].Digest == before {
		t.Error("a listener that checks nothing any more has the same digest")
	}
}
