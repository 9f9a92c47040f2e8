package watch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const hello = `{name: hello, directResponse: {statusCode: 200}}`

func forbidden(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, errors.New("no Role"))
}

func withKeys(name, secret string) string {
	return `{name: ` + name + `, directResponse: {statusCode: 200}, auth: {apiKey: {secretRef: {name: ` + secret + `}}}}`
}

func TestNothingIsServedBeforeEverythingIsKnown(t *testing.T) {
	f := newFixture(t)
	unfinished := func(what string) {
		t.Helper()
		f.look(t.Context())
		if len(f.applied) != 0 {
			t.Fatalf("served without %s", what)
		}
		f.says(0)
	}
	unfinished("an APIGateway")
	f.spec("u", 3, `routes: [`+withKeys("keys", "keys")+`]`)
	unfinished("Services")
	f.must(f.services.Replace(nil, ""))
	unfinished("EndpointSlices")
	f.must(f.slices.Replace(nil, ""))
	unfinished("the Secret")
	f.secret("keys", map[string][]byte{"alice": []byte("sha256:" + strings.Repeat("ab", 32))})
	f.look(t.Context())
	f.says(3)
	if f.routes() != "keys" || f.options.Board.Current().UID != "u" {
		t.Errorf("got routes %q of %+v", f.routes(), f.options.Board.Current())
	}
}

func TestAnOlderGenerationIsNeverServed(t *testing.T) {
	f := newFixture(t)
	f.synced()
	f.spec("u", 5, `routes: [`+hello+`]`)
	f.look(t.Context())
	f.spec("u", 4, `routes: [{name: stale, directResponse: {statusCode: 200}}]`)
	f.look(t.Context())
	f.says(5)
	if f.routes() != "hello" {
		t.Errorf("got routes %q", f.routes())
	}
	f.must(f.gateways.Replace(nil, "")) // the APIGateway is deleted
	f.look(t.Context())
	f.says(5)
	f.spec("v", 1, `routes: [{name: new, directResponse: {statusCode: 200}}]`)
	f.look(t.Context())
	f.says(1)
	if f.routes() != "new" || f.options.Board.Current().UID != "v" {
		t.Errorf("got routes %q of %+v", f.routes(), f.options.Board.Current())
	}
}

func TestASpecWaitsForTheSecretsItNames(t *testing.T) {
	f := newFixture(t)
	key := map[string][]byte{"alice": []byte("sha256:" + strings.Repeat("ab", 32))}
	f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"))
	f.spec("u", 1, `routes: [{name: app, path: /app, backendService: {name: app, port: 80}}, `+withKeys("keys", "old")+`]`)
	f.look(t.Context())
	f.secret("old", key)
	f.look(t.Context())
	f.says(1)

	f.spec("u", 2, `routes: [`+withKeys("keys", "new")+`]`)
	f.look(t.Context())
	f.says(1)
	f.must(f.slices.Update(sliceObject("app", "app-1")))
	f.look(t.Context())
	f.says(1, "NoEndpoints") // the served target is still followed
	f.failed["new"](forbidden("new"))
	again := f.look(t.Context())
	f.says(1, "NoEndpoints")
	if want := f.clock.Now().Add(grace); !again.Equal(want) {
		t.Errorf("looks again at %v, want %v", again, want)
	}
	f.clock.Step(grace)
	f.look(t.Context())
	f.says(2, `keys spec.routes[0] SecretNotFound: auth.apiKey.secretRef: Secret "new" may not be read by the gateway`)
	f.woke()
	f.secret("new", key)
	if !f.woke() {
		t.Error("the Secret woke nobody")
	}
	f.look(t.Context())
	f.says(2)
	f.must(f.stores["new"].Replace(nil, ""))
	f.look(t.Context())
	f.says(2, `SecretNotFound: auth.apiKey.secretRef: Secret "new" does not exist`)
	if f.secrets.watched["old"] != nil {
		t.Error("a Secret is watched that nobody names")
	}
}

func TestAnAPIServerThatIsAwayDoesNotMakeASecretUnreadable(t *testing.T) {
	f := newFixture(t)
	f.synced()
	f.spec("u", 1, `routes: [`+withKeys("keys", "keys")+`]`)
	f.look(t.Context())
	f.failed["keys"](errors.New("connection refused"))
	f.clock.Step(time.Hour)
	if again := f.look(t.Context()); len(f.applied) != 0 || !again.IsZero() {
		t.Errorf("served %d times, looks again at %v", len(f.applied), again)
	}
}

func TestTheLastGoodTableIsKept(t *testing.T) {
	for name, spec := range map[string]string{
		"a type of another version": `routes: [{name: [a]}]`,
		"a range that is none":      `{trustedProxies: [10.0.0.1], routes: [` + hello + `]}`,
		"a list that is none":       `routes: {}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.synced(serviceObject("app", web))
			f.spec("u", 1, `routes: [`+hello+`, {name: app, path: /app, backendService: {name: app, port: 80}}]`)
			f.look(t.Context())
			f.says(1, "NoEndpoints")
			f.spec("u", 2, spec)
			f.look(t.Context())
			f.says(1, "NoEndpoints")
			got := f.options.Board.Current().Rejected
			if got == nil || got.Generation != 2 || got.Reason != "ImageIncompatible" || !strings.HasPrefix(got.Message, "spec") {
				t.Errorf("got %+v", got)
			}
			f.must(f.slices.Add(sliceObject("app", "app-1", "10.0.0.1")))
			f.look(t.Context())
			f.says(1) // the old table with new endpoints
			if f.options.Board.Current().Rejected == nil {
				t.Error("it is not said any more that generation 2 is not served")
			}
			f.spec("u", 3, `routes: [`+hello+`]`)
			f.look(t.Context())
			f.says(3)
			if got := f.options.Board.Current().Rejected; got != nil {
				t.Errorf("still rejected: %+v", got)
			}
		})
	}
}

func TestWhatCannotBeAppliedIsRejectedUntilItCan(t *testing.T) {
	f := newFixture(t)
	f.synced()
	f.refuse = true
	f.spec("u", 1, `routes: [`+hello+`]`)
	f.look(t.Context())
	f.says(0)
	if got := f.options.Board.Current().Rejected; got == nil || got.Generation != 1 || got.Message != "refused" {
		t.Errorf("got %+v", got)
	}
	f.refuse = false
	f.look(t.Context())
	f.says(1)
	if got := f.options.Board.Current().Rejected; got != nil {
		t.Errorf("still rejected: %+v", got)
	}
}

// An unknown field may be one that restricts access.
func TestAFieldThatIsNotKnownCostsItsRouteAndNoOther(t *testing.T) {
	f := newFixture(t)
	f.synced()
	f.spec("u", 1, `{pods: {nodeSelector: {a: b}}, routes: [`+hello+`, {name: later, path: /x, directResponse: {statusCode: 200}, mutualTLS: {mode: Strict}}]}`)
	f.look(t.Context())
	f.says(1, "later spec.routes[1] ImageIncompatible: mutualTLS: this version")
	if f.routes() != "hello later" {
		t.Errorf("got routes %q", f.routes())
	}
}

func TestARouteWithoutPublicKeysIsAProblemUntilThereAreSome(t *testing.T) {
	f := newFixture(t)
	f.synced()
	f.spec("u", 1, `
routes:
- {name: open, directResponse: {statusCode: 200}}
- {name: closed, path: /a, directResponse: {statusCode: 200}, auth: {jwt: {issuer: "https://id", jwksURL: "https://id/keys"}}}
- {name: other, path: /b, directResponse: {statusCode: 200}, auth: {jwt: {issuer: "https://id", jwksURL: "https://id/other"}}}
`)
	f.missing = map[string]bool{"https://id/keys": true}
	f.look(t.Context())
	f.says(1, "closed spec.routes[1] KeysNotFetched: auth.jwt.jwksURL: no public keys could be fetched from https://id/keys yet")
	f.missing = nil
	f.look(t.Context())
	f.says(1)
}

// A check with an unknown field could mark healthy endpoints as unhealthy.
func TestAHealthCheckWithAFieldThatIsNotKnownIsNotMade(t *testing.T) {
	f := newFixture(t)
	f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"), serviceObject("api", web), sliceObject("api", "api-1", "10.0.0.2"))
	f.spec("u", 1, `{healthChecks: [{name: app, port: 80, statuses: [200]}, {name: api, port: 80, path: /healthz}, {name: other, port: 80}],
routes: [{name: app, backends: [{name: app, port: 80}, {name: api, port: 80}]}]}`)
	f.look(t.Context())
	f.says(1, "app:80 spec.healthChecks[app:80] ImageIncompatible: statuses: this version")
	for _, backend := range f.applied[0].Proxy.Table.Backends {
		if made := backend.HealthCheck != nil; made != (backend.ID == "api:80") {
			t.Errorf("%s: a check is made: %v", backend.ID, made)
		}
	}
	f.spec("u", 2, `{healthChecks: [{name: app, port: "80"}], routes: [`+hello+`]}`)
	f.look(t.Context())
	if got := f.options.Board.Current().Rejected; got == nil || !strings.HasPrefix(got.Message, "spec.healthChecks[0]") {
		t.Errorf("got %+v", got)
	}
}

func TestLimitsAreTheSpecs(t *testing.T) {
	f := newFixture(t)
	f.synced(serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1"), serviceObject("api", web), sliceObject("api", "api-1", "10.0.0.2"))
	f.spec("u", 1, `{backendPolicies: [{name: app, port: 80, maxRequests: 3}, {name: api, port: 80, outliers: 1}], connections: {max: 7},
routes: [{name: app, backends: [{name: app, port: 80}, {name: api, port: 80}]}]}`)
	f.look(t.Context())
	f.says(1, "api:80 spec.backendPolicies[api:80] ImageIncompatible: outliers: this version")
	got := f.applied[0].Proxy
	if limits := got.Table.Backends[1].Limits; limits.Requests != 3 || limits.Connections != 4096 || got.Connections.Total != 7 {
		t.Errorf("got %+v and %+v", limits, got.Connections)
	}
}

func TestTheProxiesOfTheClusterAreTrustedWhereOneStandsInFront(t *testing.T) {
	for spec, want := range map[string]int{
		`{}`:                               4,
		`{expose: {}}`:                     4,
		`{expose: {type: Ingress}}`:        4,
		`{expose: {type: HTTPRoute}}`:      4,
		`{expose: {type: ClusterIP}}`:      0,
		`{expose: {type: LoadBalancer}}`:   0,
		`{trustedProxies: []}`:             0,
		`{trustedProxies: [192.0.2.0/24]}`: 1,
	} {
		read, err := keepVersion(gatewayObject(t, "u", 1, spec)).read()
		if err != nil || len(read.config.TrustedProxies) != want {
			t.Errorf("%s: trusts %v, error %v, want %d ranges", spec, read.config.TrustedProxies, err, want)
		}
	}
}

func TestABurstOfChangesIsOneTable(t *testing.T) {
	f := newFixture(t)
	f.synced(serviceObject("app", web))
	f.spec("u", 1, `routes: [{name: app, backendService: {name: app, port: 80}}]`)
	ctx, cancel := context.WithCancel(t.Context())
	blocked, release := make(chan int), make(chan struct{})
	f.options.Apply = func(config Config) (map[Port]error, error) {
		blocked <- len(config.Proxy.Table.Backends[0].Endpoints)
		<-release
		return nil, nil
	}
	done := make(chan struct{})
	go func() { defer close(done); f.loop(ctx, f.look) }()
	if got := <-blocked; got != 0 {
		t.Errorf("got %d endpoints", got)
	}
	addresses := []string{}
	for _, address := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		addresses = append(addresses, address)
		f.must(f.slices.Update(sliceObject("app", "app-1", addresses...)))
	}
	release <- struct{}{}
	if got := <-blocked; got != 3 {
		t.Errorf("got %d endpoints, want all 3 at once", got)
	}
	release <- struct{}{}
	cancel()
	<-done
}

func TestACertificateExpiresByItself(t *testing.T) {
	f := newFixture(t)
	f.synced()
	f.spec("u", 1, `{tls: [{secretRef: {name: edge}}, {secretRef: {name: later}, hosts: [b.example.com]}], routes: [`+hello+`]}`)
	f.look(t.Context())
	now := f.clock.Now()
	f.secret("edge", newCertificate(t, now.Add(-time.Hour), now.Add(48*time.Hour)))
	f.secret("later", newCertificateFor(t, now.Add(24*time.Hour), now.Add(96*time.Hour), "b.example.com"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.loop(ctx, f.look) }()
	defer func() { cancel(); <-done }()
	f.passes(0, "CertificateExpired: the certificate in Secret \"later\" is not valid yet")
	f.passes(24*time.Hour, "")
	f.passes(24*time.Hour+time.Minute, "CertificateExpired: the certificate in Secret \"edge\" has expired")
	f.passes(48*time.Hour, "CertificateExpired: the certificate in Secret \"edge\" has expired", "CertificateExpired: the certificate in Secret \"later\" has expired")
}

// passes moves the time, hour by hour, until exactly these problems are published.
func (f *fixture) passes(duration time.Duration, problems ...string) {
	f.t.Helper()
	until := f.clock.Now().Add(duration)
	deadline := time.Now().Add(10 * time.Second)
	for {
		if f.clock.HasWaiters() && f.clock.Now().Before(until) {
			f.clock.Step(min(until.Sub(f.clock.Now()), time.Hour))
			continue
		}
		var got []string
		document := f.options.Board.Current()
		for _, p := range document.Problems {
			got = append(got, p.Reason+": "+p.Message)
		}
		if document.Generation == 1 && strings.Join(got, "\n") == strings.Join(problems, "\n") {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("at %v: got problems %q, want %q", f.clock.Now(), got, problems)
		}
	}
}

func TestASecretThatTurnsBadLeavesItsLastCertificateInUse(t *testing.T) {
	f := newFixture(t)
	f.synced()
	f.spec("u", 1, `{tls: [{secretRef: {name: a}}, {secretRef: {name: b}}, {secretRef: {name: b}, clientCA: {}}]}`)
	f.look(t.Context())
	now := f.clock.Now()
	good := newCertificate(t, now.Add(-time.Hour), now.Add(time.Hour))
	f.secret("a", good)
	f.secret("b", newCertificate(t, now.Add(-time.Hour), now.Add(time.Hour)))
	f.look(t.Context())
	const unknown = "b spec.tls[2].secretRef ImageIncompatible: this version of the gateway does not know the field clientCA"
	f.says(1, unknown)
	served := func() int { return len(f.applied[len(f.applied)-1].Certificates) }
	f.secret("a", map[string][]byte{corev1.TLSCertKey: []byte("x"), corev1.TLSPrivateKeyKey: []byte("CANARY")})
	f.look(t.Context())
	f.says(1, "a spec.tls[0].secretRef InvalidCertificate: tls.crt and tls.key of Secret \"a\" are no certificate with its key", unknown)
	if served() != 2 {
		t.Errorf("%d certificates are served, want 2", served())
	}
	f.spec("u", 2, `{tls: [{secretRef: {name: b}}]}`)
	f.look(t.Context())
	f.spec("u", 3, `{tls: [{secretRef: {name: a}}]}`)
	f.look(t.Context())
	f.secret("a", nil)
	f.look(t.Context())
	f.says(3, "InvalidCertificate")
	if served() != 0 {
		t.Error("a certificate is served that nothing named in between")
	}
}

func TestARouteWithoutAProviderIsAProblemUntilThereIsOne(t *testing.T) {
	f := newFixture(t)
	f.synced()
	const spec = `
routes:
- {name: login, directResponse: {statusCode: 200}, auth: {oidc: {issuer: "https://id", clientID: shop, clientSecretRef: {name: login, key: secret}}}}
`
	f.spec("u", 1, spec)
	f.look(t.Context())
	f.secret("login", map[string][]byte{"issuer": []byte("https://id"), "secret": []byte("0123456789abcdef")})
	f.missing = map[string]bool{"https://id/.well-known/openid-configuration": true}
	f.look(t.Context())
	f.says(1, "login spec.routes[0] ProviderNotFetched: auth.oidc.issuer: what the provider publishes at https://id/.well-known/openid-configuration could not")
	f.missing = nil
	f.look(t.Context())
	f.says(1)
}
