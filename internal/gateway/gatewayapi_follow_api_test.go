//go:build apitest

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestCertificatesAreThoseOfTheListener(t *testing.T) {
	c := newSite(t, "own", "edge-certificates")
	other := c.elsewhere(t)
	own, theirs := newCertificate(t, "a.example.com"), newCertificate(t, "b.example.com")
	c.secret("own", own.data)
	name := types.NamespacedName{Namespace: other.namespace, Name: "theirs"}
	copies := map[string][]byte{}
	copied.Put(copies, name, copied.Certificate{Certificate: theirs.data[corev1.TLSCertKey], PrivateKey: theirs.data[corev1.TLSPrivateKeyKey], Version: "77"})
	c.secret("edge-certificates", copies)
	one, two := environment.FreePort(t), environment.FreePort(t)
	listener := func(name string, port int, host, secret string) string {
		return fmt.Sprintf("{name: %s, port: %d, protocol: HTTPS, hostname: %s, tls: {certificateRefs: [{%s}]}}", name, port, host, secret)
	}
	both := gatewaySpec(listener("own", one, "a.example.com", "name: own"), listener("theirs", two, "b.example.com", "name: theirs, namespace: "+other.namespace))
	c.put("Gateway", "edge", both)
	r := c.runGateway()
	r.says(nil, "own")
	if got := serialOn(one, "a.example.com"); got != own.serial {
		t.Errorf("got certificate %s, want %s", got, own.serial)
	}
	if got := serialOn(two, "b.example.com"); !strings.Contains(got, "refused") {
		t.Errorf("without a grant: got %s", got)
	}
	other.put("ReferenceGrant", "grant", `{from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: `+c.namespace+`}], to: [{group: "", kind: Secret, name: theirs}]}`)
	r.says(nil, "own", "theirs")
	if got := serialOn(two, "b.example.com"); got != theirs.serial {
		t.Errorf("got certificate %s, want %s", got, theirs.serial)
	}
	if got, want := r.revision().Listeners[1].Digest, document.ListenerDigest(int32(two), true, "b.example.com", []string{name.String() + "@77"}); got != want {
		t.Errorf("got digest %s, want %s", got, want)
	}

	next := newCertificate(t, "a.example.com")
	c.secret("own", next.data)
	secret := &corev1.Secret{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "own"}, secret); err != nil {
		t.Fatal(err)
	}
	want := document.ListenerDigest(int32(one), true, "a.example.com", []string{c.namespace + "/own@" + secret.ResourceVersion})
	environment.Eventually(t, func() error {
		if got := r.revision().Listeners[0].Digest; got != want {
			return fmt.Errorf("got digest %s, want %s", got, want)
		}
		return nil
	})
	if got := serialOn(one, "a.example.com"); got != next.serial {
		t.Errorf("after the rotation: got certificate %s, want %s", got, next.serial)
	}
	c.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "own"}})
	environment.Eventually(t, func() error {
		if got := r.revision(); len(got.Problems) != 1 || got.Problems[0].Reason != "SecretNotFound" {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
	if got := serialOn(one, "a.example.com"); got != next.serial {
		t.Errorf("the Secret was deleted: got certificate %s, want the last one", got)
	}
	other.delete(other.object("ReferenceGrant", "grant"))
	r.says(nil, "own")
	if got := serialOn(two, "b.example.com"); !strings.Contains(got, "refused") {
		t.Errorf("the grant is gone: got %s", got)
	}
}

func TestGRPCRoutesAreServed(t *testing.T) {
	c := newSite(t)
	b := newGRPCBackend(t)
	c.serve("app", b)
	port := environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	route := c.put("GRPCRoute", "route", `{parentRefs: [{name: edge}], rules: [{matches: [{method: {service: shop.Users, method: Get}}], `+to("app")+`}]}`)
	r := c.runGateway()
	r.says([]string{routeDigest(route)}, "http")
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	call := func(method string) string {
		request, err := http.NewRequest(http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", port, method), strings.NewReader("call"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/grpc")
		request.Header.Set("Te", "trailers")
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return fmt.Sprintf("%d %s %s", response.StatusCode, body, response.Trailer.Get("Grpc-Status"))
	}
	if got := call("/shop.Users/Get"); got != "200 call 0" {
		t.Errorf("got %q", got)
	}
	if got := call("/shop.Users/Put"); strings.HasPrefix(got, "200 call") {
		t.Errorf("another method got %q", got)
	}
}

// newGRPCBackend answers calls with what they send.
func newGRPCBackend(t *testing.T) backend {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ownAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	at := listener.Addr().(*net.TCPAddr)
	return backend{ip: at.IP.String(), port: at.Port}
}

func TestKindsThatTheClusterDoesNotHaveAreNoError(t *testing.T) {
	before := env
	bare, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		env = before
		if err := bare.Stop(); err != nil {
			t.Error(err)
		}
	})
	env = bare
	if err := env.InstallModule(t.Context(), gatewayAPI, crds+"gateways.yaml", crds+"httproutes.yaml"); err != nil {
		t.Fatal(err)
	}
	t.Run("gateway", func(t *testing.T) {
		c := newSiteWithout(t)
		c.serve("app", newBackend(t, "app"))
		port := environment.FreePort(t)
		c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
		c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{`+to("app")+`}]}`)
		r := c.runGateway()
		r.answersOn(port, "a", "/", "app")
		if view := r.revision().View; view == nil || !view.Current {
			t.Errorf("got view %+v", view)
		}
		if log := r.log.String(); strings.Count(log, "the cluster does not have this kind") != 7 {
			t.Errorf("the log does not name the seven kinds once:\n%s", log)
		}
		if err := env.InstallModule(t.Context(), gatewayAPI, crds+"grpcroutes.yaml"); err != nil {
			t.Fatal(err)
		}
		route := c.put("GRPCRoute", "grpc", `{parentRefs: [{name: edge}], hostnames: [g.example.com], rules: [{`+to("app")+`}]}`)
		environment.Eventually(t, func() error {
			if got := r.revision().Routes; !slices.Contains(got, routeDigest(route)) {
				return fmt.Errorf("the new kind is not served: %q", got)
			}
			return nil
		})
	})
}

func TestAFieldOfALaterVersionIsNotIgnored(t *testing.T) {
	c := newSite(t)
	c.serve("app", newBackend(t, "app"))
	port := environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	definition := c.object("", "httproutes.gateway.networking.k8s.io")
	definition.SetNamespace("")
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
		t.Fatal(err)
	}
	restored := definition.DeepCopy()
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		rules := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "rules", "items", "properties", "audience"}
		if err := unstructured.SetNestedMap(version.(map[string]any), map[string]any{"type": "string"}, rules...); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Update(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		restored.SetResourceVersion("")
		if err := env.Client.Patch(context.Background(), restored, client.Merge); err != nil {
			t.Error(err)
		}
	})
	spec := `{parentRefs: [{name: edge}], rules: [{matches: [{path: {value: /for}}], audience: staff, ` + to("app") + `}, {matches: [{path: {value: /}}], ` + to("app") + `}]}`
	environment.Eventually(t, func() error { // until the API server keeps the new field
		route := c.put("HTTPRoute", "route", spec)
		rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
		if rules[0].(map[string]any)["audience"] == nil {
			return errors.New("the field was pruned")
		}
		return nil
	})
	// A watch that began before would go on without the field, until the API server ends it.
	r := c.runGateway()
	r.answersOn(port, "a", "/for/staff", "500")
	r.answersOn(port, "a", "/", "app")
	got := r.revision()
	if len(got.Routes) != 0 || len(got.Problems) != 1 || got.Problems[0].Reason != "UnsupportedValue" || !strings.Contains(got.Problems[0].Message, "rules[0].audience") {
		t.Errorf("got %+v", got)
	}
}

// TestNoRequestFailsWhileRoutesChange sends requests to a route that stays.
func TestNoRequestFailsWhileRoutesChange(t *testing.T) {
	const requests = 10000
	c := newSite(t)
	other := c.elsewhere(t)
	c.serve("app", newBackend(t, "app"))
	other.serve("there", newBackend(t, "app"))
	other.put("ReferenceGrant", "grant", `{from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: `+c.namespace+`}], to: [{group: "", kind: Service}]}`)
	port, second := environment.FreePort(t), environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	c.put("HTTPRoute", "stays", `{parentRefs: [{name: edge}], hostnames: [a.example.com], rules: [{`+to("app")+`}]}`)
	r := c.runGateway()
	r.answersOn(port, "a.example.com", "/", "app")
	var sent, failed atomic.Int64
	var wait sync.WaitGroup
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	defer transport.CloseIdleConnections()
	for range 4 {
		wait.Go(func() {
			for sent.Add(1) <= requests {
				request, _ := http.NewRequest(http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/", port), strings.NewReader("body"))
				request.Host = "a.example.com"
				response, err := transport.RoundTrip(request)
				if err != nil {
					failed.Add(1)
					t.Error(err)
					continue
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || string(body) != "app" {
					failed.Add(1)
					t.Errorf("got %s %q, %v", response.Status, body, err)
				}
			}
		})
	}
	changes := 0
	for ; sent.Load() < requests; changes++ {
		switch changes % 4 {
		case 0:
			c.put("HTTPRoute", "stays", `{parentRefs: [{name: edge}], hostnames: [a.example.com], rules: [{backendRefs: [{name: there, namespace: `+other.namespace+`, port: 80}]}]}`)
		case 1:
			c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, ""), httpListener("second", second, "")))
		case 2:
			c.put("HTTPRoute", "stays", `{parentRefs: [{name: edge}], hostnames: [a.example.com], rules: [{`+to("app")+`}]}`)
			c.put("HTTPRoute", "other", `{parentRefs: [{name: edge}], hostnames: [b.example.com], rules: [{`+to("app")+`}]}`)
		case 3:
			c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
			c.delete(c.object("HTTPRoute", "other"))
		}
	}
	wait.Wait()
	t.Logf("%d requests, %d failed, %d changes", requests, failed.Load(), changes)
	if changes < 10 {
		t.Errorf("only %d changes", changes)
	}
}
