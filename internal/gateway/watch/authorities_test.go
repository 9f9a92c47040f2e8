package watch

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

func TestASpecWaitsForTheAuthoritiesItNamesAndFollowsThem(t *testing.T) {
	f := newFixture(t)
	ca := authority.New(t, "ca")
	f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"))
	f.spec("u", 1, `routes: [{name: app, backendService: {name: app, port: 80}}]`)
	f.look(t.Context())
	f.says(1)
	f.spec("u", 2, `
routes: [{name: app, backendService: {name: app, port: 80}}]
backendPolicies: [{name: app, port: 80, tls: {hostname: app.internal, caCertificates: [{name: ca}, {kind: Secret, name: more}]}}]`)
	f.look(t.Context())
	f.says(1) // requests do not go out without TLS when it is asked for, and not before it can be had
	f.secret("more", map[string][]byte{"ca.crt": ca.PEM()})
	f.look(t.Context())
	f.says(1)
	f.configMap("ca", map[string]string{"ca.crt": string(ca.PEM())})
	if !f.woke() {
		t.Error("the ConfigMap woke nobody")
	}
	f.look(t.Context())
	f.says(2)
	before := f.applied[len(f.applied)-1].Proxy.Table.Backends[0].TLS.Identity

	f.configMap("ca", map[string]string{"ca.crt": string(authority.New(t, "next").PEM())})
	f.look(t.Context())
	f.says(2)
	if after := f.applied[len(f.applied)-1].Proxy.Table.Backends[0].TLS.Identity; after == before {
		t.Error("other authorities have made no difference")
	}

	f.must(f.maps["ca"].Replace(nil, ""))
	f.look(t.Context())
	f.says(2, `app:80 spec.backendPolicies[app:80] ConfigMapNotFound: tls.caCertificates[0]: ConfigMap "ca" does not exist`, "app spec.routes[0] ConfigMapNotFound")
	if n := len(f.applied[len(f.applied)-1].Proxy.Table.Backends); n != 0 {
		t.Errorf("%d backends are reached", n)
	}
	f.spec("u", 3, `routes: [{name: app, backendService: {name: app, port: 80}}]`)
	f.look(t.Context())
	f.look(t.Context())
	f.says(3)
	if f.configMaps.watched["ca"] != nil || f.secrets.watched["more"] != nil {
		t.Error("what nobody names is watched")
	}
}

func TestAConfigMapThatMayNotBeReadIsSaid(t *testing.T) {
	f := newFixture(t)
	f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"))
	f.spec("u", 1, `
routes: [{name: app, backendService: {name: app, port: 80}}]
backendPolicies: [{name: app, port: 80, tls: {hostname: app.internal, caCertificates: [{name: ca}]}}]`)
	f.look(t.Context())
	f.failed["ca"](forbidden("ca"))
	f.clock.Step(grace)
	f.look(t.Context())
	f.says(1, `ConfigMapNotFound: tls.caCertificates[0]: ConfigMap "ca" may not be read by the gateway`, `spec.routes[0] ConfigMapNotFound`)
}

func TestACertificateThatIsShownIsSaidToHaveExpired(t *testing.T) {
	f := newFixture(t)
	crt, key := authority.New(t, "ca").IssuePEM(t, x509.Certificate{DNSNames: []string{"gateway"}, NotAfter: f.clock.Now().Add(time.Hour)})
	f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"))
	f.spec("u", 1, `
routes: [{name: app, backendService: {name: app, port: 80}}]
backendPolicies: [{name: app, port: 80, tls: {hostname: app.internal, clientCertificateRef: {name: own}}}]`)
	f.look(t.Context())
	f.secret("own", map[string][]byte{"tls.crt": crt, "tls.key": key})
	again := f.look(t.Context())
	f.says(1)
	if again.IsZero() || again.After(f.clock.Now().Add(time.Hour+time.Second)) {
		t.Fatalf("it looks again at %v", again)
	}
	f.clock.SetTime(again)
	f.look(t.Context())
	f.says(1, `own spec.backendPolicies[app:80].tls.clientCertificateRef CertificateExpired: the certificate in Secret "own" has expired`)
}

func TestClientsAreAskedForCertificatesOrNobodyIsLetIn(t *testing.T) {
	f := newFixture(t)
	ca := authority.New(t, "ca")
	f.synced()
	const spec = `
routes: [{name: hello, directResponse: {statusCode: 200}}]
clientCertificates: {caCertificates: [{name: clients}], mode: AllowInsecureFallback, nameHeader: x-client-name}
`
	check := func() *proxy.ClientCheck { return f.applied[len(f.applied)-1].Clients }
	f.spec("u", 1, spec+`tls: [{secretRef: {name: own}}]`+"\nexpose: {type: ClusterIP}")
	f.look(t.Context())
	crt, key := ca.IssuePEM(t, x509.Certificate{DNSNames: []string{"a.test"}})
	f.secret("own", map[string][]byte{"tls.crt": crt, "tls.key": key})
	f.must(f.maps["clients"].Replace(nil, ""))
	f.look(t.Context())
	f.says(1, `clientCertificates spec.clientCertificates ConfigMapNotFound: caCertificates[0]: ConfigMap "clients" does not exist`)
	if got := check(); got == nil || got.Optional || !got.Roots.Equal(x509.NewCertPool()) {
		t.Errorf("without authorities the check is %+v", got)
	}
	f.configMap("clients", map[string]string{"ca.crt": string(ca.PEM())})
	f.look(t.Context())
	f.says(1)
	if got := check(); !got.Optional || !got.Roots.Equal(ca.Pool()) {
		t.Errorf("the check is %+v", got)
	}
	if got := f.applied[len(f.applied)-1].Proxy.ClientHeaders; got.Name != "X-Client-Name" || got.Fingerprint != "" {
		t.Errorf("the headers are %+v", got)
	}
	f.spec("u", 2, spec+`tls: [{secretRef: {name: own}}]`)
	f.look(t.Context())
	f.says(2, `spec.clientCertificates Invalid: what spec.expose.type asks for ends the TLS of clients`)
	f.spec("u", 3, spec)
	f.look(t.Context())
	f.says(3, `spec.clientCertificates Invalid: without spec.tls nobody can show a certificate`)
	f.spec("u", 4, `clientCertificates: {caCertificates: [{name: clients}], pins: [a]}`)
	f.look(t.Context())
	if got := f.options.Board.Current(); got.Generation != 3 || got.Rejected == nil {
		t.Errorf("with a later field it serves %+v", got)
	}
}
