package watch

import (
	"crypto/x509"
	"testing"
	"time"

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
