//go:build apitest

package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestAGatewayServesWhatTheClusterSays(t *testing.T) {
	c := newCluster(t)
	one, two := newBackend(t, "one"), newBackend(t, "two")
	r := c.run()
	if r.ready() {
		t.Error("ready without an APIGateway")
	}
	g := c.spec(`routes: [{name: app, path: /app, backendService: {name: app, port: 80}}]`)
	r.serves(g, `BackendNotFound: Service "app" does not exist`)
	if !r.ready() {
		t.Error("not ready with a table")
	}
	r.answers("/app", "503")
	c.service("app")
	r.serves(g, `NoEndpoints: no endpoint of Service "app" is ready on port 80`)
	c.endpoints("app", one)
	r.serves(g)
	r.answers("/app", "one")

	g = c.spec(`routes: [{name: app, path: /app, backendService: {name: app, port: 81}}]`)
	r.serves(g, `PortNotFound: Service "app" has no port 81`)
	g = c.spec(`routes: [{name: app, path: /app, backendService: {name: app, port: 80}}, {name: new, path: /new, directResponse: {statusCode: 200, body: hello}}]`)
	r.serves(g)
	r.answers("/new", "hello")
	r.answers("/app", "one")

	one.leaving = true
	c.endpoints("app", one, two)
	r.answers("/app", "two")
	two.leaving = true
	c.endpoints("app", two)
	r.answers("/app", "two") // no other backend is left
	c.endpoints("app")
	r.serves(g, `NoEndpoints: no endpoint`)
	r.answers("/app", "503")

	c.delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "app"}})
	r.serves(g, `BackendNotFound: Service "app" does not exist`)
	g = c.spec(`routes: [{name: new, path: /new, directResponse: {statusCode: 200, body: again}}]`)
	r.serves(g)
	r.answers("/app", "404")
	r.answers("/new", "again")
}

func TestARouteIsLiveOnceItsPublicKeysAreThere(t *testing.T) {
	c := newCluster(t)
	var published atomic.Bool
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !published.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `{"keys": [{"kty": "OKP", "crv": "Ed25519", "use": "sig", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
	}))
	t.Cleanup(issuer.Close)
	g := c.spec(`routes: [{name: shop, path: /, directResponse: {statusCode: 200}, auth: {jwt: {issuer: "https://id.example.com", jwksURL: "` + issuer.URL + `/"}}}]`)
	r := c.run()
	r.serves(g, "KeysNotFetched: auth.jwt.jwksURL: no public keys could be fetched from "+issuer.URL)
	published.Store(true)
	r.serves(g)
}

func TestARequestUnderWayOutlivesItsEndpointItsRouteAndTheGatewaysEnd(t *testing.T) {
	c := newCluster(t)
	one, two := newBackend(t, "one"), newBackend(t, "two")
	c.service("app")
	c.endpoints("app", one)
	g := c.spec(`routes: [{name: app, backendService: {name: app, port: 80}}]`)
	r := c.run()
	r.serves(g)
	response, err := http.Get("http://" + r.http.String() + "/slow")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	one.leaving = true
	c.endpoints("app", one, two)
	r.answers("/", "two")
	g = c.spec(`routes: [{name: new, path: /new, backendService: {name: app, port: 80}}]`)
	r.serves(g)
	r.answers("/", "404")

	r.stop()
	environment.Eventually(t, func() error {
		if r.ready() {
			return errors.New("still ready")
		}
		return nil
	})
	g = c.spec(`routes: [{name: last, path: /last, backendService: {name: app, port: 80}}]`)
	r.serves(g) // a draining gateway still follows changes
	close(one.release)
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "one" {
		t.Errorf("got %q, error %v", body, err)
	}
}

func TestAGatewayServesOnWhenItsAPIGatewayIsGoneAndTheNewOneWhenThereIsOne(t *testing.T) {
	c := newCluster(t)
	for range 3 {
		c.spec(`routes: [{name: old, path: /old, directResponse: {statusCode: 200, body: old}}]`)
		c.spec(`routes: [{name: old, path: /older, directResponse: {statusCode: 200, body: old}}]`)
	}
	old := c.spec(`routes: [{name: old, path: /old, directResponse: {statusCode: 200, body: old}}]`)
	r := c.run()
	r.serves(old)
	uid := r.revision().UID
	c.delete(&slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge"}})
	// A change after the deletion is seen after the deletion.
	c.service("later")
	r.answers("/old", "old")
	if !r.ready() || r.revision().Generation != old {
		t.Errorf("ready: %t, serves %+v", r.ready(), r.revision())
	}
	g := c.spec(`routes: [{name: new, path: /new, directResponse: {statusCode: 200, body: new}}]`)
	if g >= old {
		t.Fatalf("the new APIGateway has generation %d, the old one had %d", g, old)
	}
	r.serves(g)
	r.answers("/new", "new")
	r.answers("/old", "404")
	if r.revision().UID == uid {
		t.Error("the UID is the old one's")
	}
}

func TestAGatewayServesOnWhileTheAPIServerIsAway(t *testing.T) {
	c := newCluster(t)
	c.service("app")
	c.endpoints("app", newBackend(t, "one"))
	g := c.spec(`routes: [{name: app, path: /app, backendService: {name: app, port: 80}}]`)
	r := c.run()
	r.serves(g)
	c.wire.cut()
	next := c.spec(`routes: [{name: app, path: /app, backendService: {name: app, port: 80}}, {name: new, path: /new, directResponse: {statusCode: 200, body: new}}]`)
	two := newBackend(t, "two")
	c.endpoints("app", two)
	for range 100 {
		if got := r.ask("/app"); got != "one" {
			t.Fatalf("got %q", got)
		}
	}
	if !r.ready() || r.revision().Generation != g {
		t.Errorf("ready: %t, serves %+v", r.ready(), r.revision())
	}
	c.wire.mend()
	r.serves(next)
	r.answers("/new", "new")
	r.answers("/app", "two")
}

// A dead connection looks like one on which nothing happens.
func TestAGatewayThatIsCutOffSaysSoAndStandsByWhenItIsTold(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1") // as the program sets it
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	c := newCluster(t, "keys")
	c.secret("keys", map[string][]byte{"alice": hashOf("a")})
	g := c.spec(`routes: [{name: app, path: /app, directResponse: {statusCode: 200, body: one}, auth: {apiKey: {secretRef: {name: keys}, header: X-Key}}}]`)
	r := c.run()
	r.serves(g)
	r.answers("/app", "one", "X-Key: a")
	seen := r.revision()
	if !seen.Current() || seen.Stale() || len(seen.Routes) != 1 {
		t.Fatalf("got %+v, want a current view and one route", seen)
	}
	if tell(r.admin, "/revision?standby=true"); !r.ready() {
		t.Error("a gateway that hears the API server can be told not to be ready")
	}

	undo := c.wire.silence()
	defer undo()
	begin := time.Now()
	_, _ = fetch(r.admin, fmt.Sprintf("/revision?wait=%d", seen.Revision))
	stale := r.revision()
	t.Logf("said to be stale after %v", time.Since(begin))
	// One second until the API server is pinged, one for its answer, and the patience.
	if took := time.Since(begin); took > 4*time.Second || !stale.Stale() {
		t.Fatalf("after %v: %+v, want a stale view", took, stale.View)
	}
	environment.Eventually(t, func() error {
		if got := r.revision().View; !slices.Equal(got.Of, []string{"APIGateway", "EndpointSlices", "Secrets", "Services"}) {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
	if !r.ready() {
		t.Error("not ready, and nobody has said that others are")
	}
	r.answers("/app", "one", "X-Key: a")
	if tell(r.admin, "/revision?standby=true"); r.ready() {
		t.Error("ready though others are current")
	}
	r.answers("/app", "one", "X-Key: a") // requests that still come are served

	c.secret("keys", map[string][]byte{"alice": hashOf("b")})
	g = c.spec(`routes: [{name: app, path: /app, directResponse: {statusCode: 200, body: two}, auth: {apiKey: {secretRef: {name: keys}, header: X-Key}}}]`)
	undo()
	begin = time.Now()
	environment.Eventually(t, func() error {
		if got := r.revision(); !got.Current() {
			return fmt.Errorf("still stale: %+v", got.View)
		}
		return nil
	})
	t.Logf("current again after %v", time.Since(begin))
	// A gateway that reports that it is current serves the latest configuration.
	if got := r.revision(); got.Generation != g || !r.ready() {
		t.Errorf("serves %+v, ready: %v", got, r.ready())
	}
	r.answers("/app", "two", "X-Key: b")
}

func hashOf(key string) []byte {
	hash := sha256.Sum256([]byte(key))
	return []byte("sha256:" + hex.EncodeToString(hash[:]))
}

func TestASecretIsFollowed(t *testing.T) {
	c := newCluster(t, "keys")
	const routes = `routes:
- {name: open, path: /open, directResponse: {statusCode: 200, body: open}}
- {name: keys, path: /keys, directResponse: {statusCode: 200, body: in}, auth: {apiKey: {secretRef: {name: keys}}}}`
	g := c.spec(routes)
	r := c.run()
	r.serves(g, `SecretNotFound: auth.apiKey.secretRef: Secret "keys" does not exist`)
	r.answers("/keys", "500", "X-Api-Key: first")
	c.secret("keys", map[string][]byte{"alice": hashOf("first")})
	r.serves(g)
	r.answers("/keys", "in", "X-Api-Key: first")
	c.secret("keys", map[string][]byte{"alice": hashOf("second")})
	r.answers("/keys", "401", "X-Api-Key: first")
	r.answers("/keys", "in", "X-Api-Key: second")
	c.secret("keys", map[string][]byte{"alice": []byte("CANARY-value")})
	r.serves(g, `InvalidSecret: key "alice" of Secret "keys" cannot be used`)
	r.answers("/keys", "500", "X-Api-Key: second")
	c.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}})
	r.serves(g, `SecretNotFound: auth.apiKey.secretRef: Secret "keys" does not exist`)
	r.answers("/open", "open")
}

func TestASecretThatMayNotBeReadIsNamedAndReadAsSoonAsItMay(t *testing.T) {
	c := newCluster(t)
	c.secret("keys", map[string][]byte{"alice": hashOf("first")})
	g := c.spec(`routes:
- {name: open, path: /open, directResponse: {statusCode: 200, body: open}}
- {name: keys, path: /keys, directResponse: {statusCode: 200, body: in}, auth: {apiKey: {secretRef: {name: keys}}}}`)
	r := c.run()
	r.serves(g, `SecretNotFound: auth.apiKey.secretRef: Secret "keys" may not be read by the gateway`)
	r.answers("/open", "open")
	c.allow("keys")
	r.serves(g)
	r.answers("/keys", "in", "X-Api-Key: first")
}

// The operator does not see a new spec earlier than the gateway does. So the gateway may
// need a Secret before it has the right to read it.
func TestARouteStaysUpWhileTheRightToItsNextSecretIsOnItsWay(t *testing.T) {
	c := newCluster(t, "old")
	c.secret("old", map[string][]byte{"alice": hashOf("key")})
	c.secret("new", map[string][]byte{"alice": hashOf("key")})
	spec := func(secret string) int64 {
		return c.spec(`routes: [{name: keys, path: /keys, directResponse: {statusCode: 200, body: in}, auth: {apiKey: {secretRef: {name: ` + secret + `}}}}]`)
	}
	g := spec("old")
	r := c.run()
	r.serves(g)
	g = spec("new")
	r.answers("/keys", "in", "X-Api-Key: key")
	c.allow("new")
	environment.Eventually(t, func() error {
		if got := r.ask("/keys", "X-Api-Key: key"); got != "in" {
			t.Fatalf("got %s", got)
		}
		if got := r.revision(); got.Generation != g || len(got.Problems) > 0 {
			return fmt.Errorf("serves %+v", got)
		}
		return nil
	})
}

// Each Secret has its own watch, and an HTTP/2 connection has a limited number of streams.
func TestMoreSecretsAreFollowedThanAConnectionHasStreams(t *testing.T) {
	const count = 300
	var names, routes []string
	for i := range count {
		names = append(names, fmt.Sprintf("keys-%d", i))
		routes = append(routes, fmt.Sprintf("{path: /%d, directResponse: {statusCode: 200, body: in}, auth: {apiKey: {secretRef: {name: keys-%d}}}}", i, i))
	}
	c := newCluster(t, names...)
	for _, name := range names {
		c.secret(name, map[string][]byte{"alice": hashOf("first")})
	}
	g := c.spec("routes: [" + strings.Join(routes, ", ") + "]")
	r := c.run()
	r.serves(g)
	for _, i := range []int{0, count - 1} {
		c.secret(names[i], map[string][]byte{"alice": hashOf("second")})
		r.answers(fmt.Sprintf("/%d", i), "in", "X-Api-Key: second")
	}
}

func TestAGatewayAsksForNothingThatItsRoleDoesNotAllow(t *testing.T) {
	c := newCluster(t, "keys", "edge-tls")
	c.service("app")
	c.endpoints("app", newBackend(t, "one"))
	c.secret("keys", map[string][]byte{"alice": hashOf("key")})
	c.secret("edge-tls", newCertificate(t, "a.example.com").data)
	c.secret("other", map[string][]byte{"x": []byte("CANARY-other")})
	g := c.spec(`
tls: [{secretRef: {name: edge-tls}}]
routes: [{name: app, path: /app, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}]`)
	r := c.run()
	r.serves(g)
	r.answers("/app", "one", "X-Api-Key: key")
	want := map[string]bool{}
	for path, selector := range map[string]string{
		"/apis/slipway.dev/v1alpha1/namespaces/%s/apigateways":   "metadata.name=edge",
		"/api/v1/namespaces/%s/services":                         "",
		"/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices": "",
		"/api/v1/namespaces/%s/secrets?metadata.name=keys":       "metadata.name=keys",
		"/api/v1/namespaces/%s/secrets?metadata.name=edge-tls":   "metadata.name=edge-tls",
	} {
		path, _, _ = strings.Cut(fmt.Sprintf(path, c.namespace), "?")
		want["GET "+path+" "+selector+" 200 OK"] = true
	}
	if diff := cmp.Diff(want, c.wire.questions()); diff != "" {
		t.Error(diff)
	}
}
