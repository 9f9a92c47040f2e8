package watch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// A handshake with a long key costs a core for so long that others get none.
func TestACertificateWithALongKeyIsNotServed(t *testing.T) {
	crt, key := authority.New(t, "ca").IssueRSA(t, 16384)
	const why = "cannot be used: the certificate has an RSA key of 16384 bits, and those of more than 8192 bits are not used"
	t.Run("of an APIGateway", func(t *testing.T) {
		in := apigateway.Input{Secrets: map[string]map[string][]byte{"tls": {corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}}}
		of := &target{tls: []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "tls"}}}}
		certificates, _, problems, _ := (&keyring{}).read(of, &in, time.Now())
		want := []document.Problem{{
			Route: -1, Name: "tls", Field: "spec.tls[0].secretRef", Reason: slipwayv1alpha1.ReasonInvalidCertificate,
			Message: `tls.crt and tls.key of Secret "tls" ` + why,
		}}
		if diff := cmp.Diff(want, problems); diff != "" || len(certificates) != 0 {
			t.Errorf("%d certificates, problems (-want +got):\n%s", len(certificates), diff)
		}
	})
	t.Run("of a listener", func(t *testing.T) {
		name := types.NamespacedName{Namespace: "infra", Name: "tls"}
		content := func(types.NamespacedName) (_, _ []byte, version string, found bool) { return crt, key, "1", true }
		pairs, secrets, problems, _ := (&gatewayKeyring{}).read([]types.NamespacedName{name}, time.Now(), content)
		message := `tls.crt and tls.key of Secret "infra/tls" ` + why
		want := []document.Problem{{
			Route: -1, Name: "infra/tls", Field: "Secret infra/tls", Reason: slipwayv1alpha1.ReasonInvalidCertificate, Message: message,
		}}
		if diff := cmp.Diff(want, problems); diff != "" || len(pairs) != 0 {
			t.Errorf("%d certificates, problems (-want +got):\n%s", len(pairs), diff)
		}
		if diff := cmp.Diff(map[types.NamespacedName]gatewayapi.Secret{name: {Problem: message}}, secrets); diff != "" {
			t.Errorf("Secrets (-want +got):\n%s", diff)
		}
	})
	t.Run("of authorities", func(t *testing.T) {
		name := types.NamespacedName{Namespace: "a", Name: "ca"}
		known := bundles{name: {Authorities: crt}}.known()
		want := "certificate 1 has an RSA key of 16384 bits, and those of more than 8192 bits are not used"
		if diff := cmp.Diff(map[types.NamespacedName]gatewayapi.Bundle{name: {Problem: want}}, known); diff != "" {
			t.Errorf("bundles (-want +got):\n%s", diff)
		}
	})
}

func TestABackendIsNotShownACertificateWithALongKey(t *testing.T) {
	crt, key := authority.New(t, "ca").IssueRSA(t, 16384)
	f := newFixture(t)
	f.spec("u", 1, `{routes: [{name: app, path: /, backendService: {name: app, port: 80}}],
		backendPolicies: [{name: app, port: 80, tls: {hostname: app.internal, clientCertificateRef: {name: own}}}]}`)
	f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"))
	f.look(t.Context())
	f.secret("own", map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key})
	f.look(t.Context())
	const why = `InvalidCertificate: tls.clientCertificateRef: Secret "own": the certificate to show and its key: the certificate has an RSA key of 16384 bits`
	f.says(1, "spec.backendPolicies[app:80] "+why, "spec.routes[0] InvalidCertificate: ")
}
