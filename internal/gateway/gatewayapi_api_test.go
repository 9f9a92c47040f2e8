//go:build apitest

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/gateway/revision"
	"github.com/slipway-dev/slipway/internal/gatewayapi/borrowed"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

const (
	gatewayAPI = "sigs.k8s.io/gateway-api"
	crds       = "config/crd/standard/gateway.networking.k8s.io_"
)

// site is a cluster with the Gateway API, and the rights of the pods of a Gateway.
type site struct{ *cluster }

func newSite(t *testing.T, secrets ...string) *site {
	t.Helper()
	if err := env.InstallModule(t.Context(), gatewayAPI, crds+"gateways.yaml", crds+"httproutes.yaml", crds+"grpcroutes.yaml", crds+"referencegrants.yaml"); err != nil {
		t.Fatal(err)
	}
	return newSiteWithout(t, secrets...)
}

// newSiteWithout installs no kinds.
func newSiteWithout(t *testing.T, secrets ...string) *site {
	t.Helper()
	c := &site{newCluster(t, secrets...)}
	read := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gateways", "httproutes", "grpcroutes", "referencegrants"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"services", "namespaces"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.namespace},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.namespace, Name: "edge"}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// elsewhere is the same site, in another namespace.
func (c *site) elsewhere(t *testing.T) *site {
	t.Helper()
	other := *c.cluster
	other.namespace = env.Namespace(t)
	return &site{&other}
}

// put creates an object of the Gateway API, or changes its spec.
func (c *site) put(kind, name, spec string) *unstructured.Unstructured {
	c.t.Helper()
	object := c.object(kind, name)
	err := env.Client.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &parsed); err != nil {
		c.t.Fatal(err)
	}
	object.Object["spec"] = parsed
	if err != nil {
		err = env.Client.Create(c.t.Context(), object)
	} else {
		err = env.Client.Update(c.t.Context(), object)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return object
}

func (c *site) object(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion("gateway.networking.k8s.io/v1")
	object.SetKind(kind)
	object.SetNamespace(c.namespace)
	object.SetName(name)
	return object
}

// serve makes a Service with an endpoint.
func (c *site) serve(name string, b backend) {
	c.service(name)
	c.endpoints(name, b)
}

func routeDigest(object *unstructured.Unstructured) string {
	return revision.RouteDigest(object.GetUID(), object.GetGeneration())
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// runGateway starts a gateway for the Gateway called edge, until the end of the test.
func (c *site) runGateway(change ...func(*Options)) *running {
	c.t.Helper()
	addresses := make(chan *running, 1)
	r := &running{t: c.t, log: &lockedbuffer.Buffer{}, accessLog: &lockedbuffer.Buffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	options := Options{
		Kind: KindGateway, Gateway: "edge", Namespace: c.namespace, Access: c.access, Version: "1.2.3", BorrowedCertificates: "edge-certificates",
		HTTP: ":8080", HTTPS: ":8443", Admin: "127.0.0.1:0", DrainTimeout: time.Minute,
		Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), AccessLog: r.accessLog,
		Listening: func(_, _, admin net.Addr) {
			r.admin = admin
			addresses <- r
		},
	}
	for _, f := range change {
		f(&options)
	}
	done := make(chan error, 1)
	go func() { done <- Run(ctx, options) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
		if c.t.Failed() {
			c.t.Logf("the gateway's log:\n%s", r.log)
		}
	})
	return <-addresses
}

// says waits until the gateway reports that it serves these routes and these listeners.
func (r *running) says(routes []string, listeners ...string) {
	r.t.Helper()
	environment.Eventually(r.t, func() error {
		got := r.revision()
		var names []string
		for _, l := range got.Listeners {
			names = append(names, l.Name)
		}
		slices.Sort(got.Routes)
		slices.Sort(routes)
		if !slices.Equal(got.Routes, routes) || !slices.Equal(names, listeners) {
			return fmt.Errorf("serves routes %q and listeners %q, want %q and %q: %+v", got.Routes, names, routes, listeners, got)
		}
		return nil
	})
}

// gets sends a request to a port. It returns the body of a 200, otherwise the status or the error.
func gets(port int, host, path string) string {
	request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return err.Error()
	}
	request.Host = host
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return response.Status[:3]
	}
	return string(body)
}

// answersOn waits until a request gets this answer.
func (r *running) answersOn(port int, host, path, want string) {
	r.t.Helper()
	environment.Eventually(r.t, func() error {
		if got := gets(port, host, path); got != want {
			return fmt.Errorf("%s%s on port %d: got %q, want %q", host, path, port, got, want)
		}
		return nil
	})
}

// serialOn returns the serial number of the certificate that a name gets on a port, or the error.
func serialOn(port int, host string) string {
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func httpListener(name string, port int, rest string) string {
	return fmt.Sprintf("{name: %s, port: %d, protocol: HTTP%s}", name, port, rest)
}

func gatewaySpec(listeners ...string) string {
	return "{gatewayClassName: slipway, listeners: [" + strings.Join(listeners, ", ") + "]}"
}

func to(service string) string { return "backendRefs: [{name: " + service + ", port: 80}]" }

func TestTwoHTTPRoutesAreMatchedByHostAndPath(t *testing.T) {
	c := newSite(t)
	one, two := newBackend(t, "one"), newBackend(t, "two")
	c.serve("one", one)
	c.serve("two", two)
	port := freePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	r := c.runGateway()
	environment.Eventually(t, func() error {
		if !r.ready() {
			return errors.New("not ready")
		}
		return nil
	})
	r.says(nil, "http")
	if got := gets(port, "a.example.com", "/"); got != "404" {
		t.Errorf("without a route: got %q", got)
	}
	first := c.put("HTTPRoute", "first", `{parentRefs: [{name: edge}], hostnames: [a.example.com, "*.b.example.com"], rules: [{matches: [{path: {value: /}}], `+to("one")+`}]}`)
	second := c.put("HTTPRoute", "second", `{parentRefs: [{name: edge}], hostnames: [a.example.com], rules: [{name: api, matches: [{path: {value: /api}}], `+to("two")+`}]}`)
	c.put("HTTPRoute", "others", `{parentRefs: [{name: other}], rules: [{`+to("two")+`}]}`)
	r.says([]string{routeDigest(first), routeDigest(second)}, "http")
	for _, want := range []struct{ host, path, answer string }{
		{"a.example.com", "/", "one"},
		{"a.example.com", "/api/users", "two"},
		{"a.example.com", "/apis", "one"},
		{"x.b.example.com", "/api", "one"},
		{"b.example.com", "/", "404"},
		{"c.example.com", "/", "404"},
	} {
		if got := gets(port, want.host, want.path); got != want.answer {
			t.Errorf("%s%s: got %q, want %q", want.host, want.path, got, want.answer)
		}
	}
	_, metrics := fetch(r.admin, "/metrics")
	if want := fmt.Sprintf(`slipway_gateway_requests_total{gateway="%[1]s/edge",route="%[1]s/second/api",status="2xx"}`, c.namespace); !strings.Contains(metrics, want) {
		t.Errorf("no %s in\n%s", want, metrics)
	}
	environment.Eventually(t, func() error {
		if want := fmt.Sprintf(`"route":"%s/second/api"`, c.namespace); !strings.Contains(r.accessLog.String(), want) {
			return fmt.Errorf("no %s in the access log", want)
		}
		return nil
	})
	first = c.put("HTTPRoute", "first", `{parentRefs: [{name: edge}], hostnames: [a.example.com], rules: [{`+to("two")+`}]}`)
	r.says([]string{routeDigest(first), routeDigest(second)}, "http")
	r.answersOn(port, "a.example.com", "/", "two")
	r.answersOn(port, "x.b.example.com", "/", "404")
	c.delete(c.object("HTTPRoute", "second"))
	r.says([]string{routeDigest(first)}, "http")
}

func TestAGrantGivesABackendOfAnotherNamespaceAndTakesIt(t *testing.T) {
	c := newSite(t)
	other := c.elsewhere(t)
	b := newBackend(t, "there")
	other.serve("app", b)
	port := freePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	route := c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: app, namespace: `+other.namespace+`, port: 80}]}]}`)
	r := c.runGateway()
	r.says([]string{routeDigest(route)}, "http")
	r.answersOn(port, "a", "/", "500")
	grant := `{from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: ` + c.namespace + `}], to: [{group: "", kind: Service}]}`
	other.put("ReferenceGrant", "grant", grant)
	r.answersOn(port, "a", "/", "there")
	other.delete(other.object("ReferenceGrant", "grant"))
	begin := time.Now()
	r.answersOn(port, "a", "/", "500")
	if took := time.Since(begin); took > time.Second {
		t.Errorf("the grant was gone, and the backend was used %v longer", took)
	}
}

func TestAnInvalidBackendKeepsItsShare(t *testing.T) {
	c := newSite(t)
	c.serve("app", newBackend(t, "app"))
	port := freePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
	c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: app, port: 80, weight: 1}, {name: none, port: 80, weight: 1}]}]}`)
	r := c.runGateway()
	r.answersOn(port, "a", "/", "app")
	counts := map[string]int{}
	for range 200 {
		counts[gets(port, "a", "/")]++
	}
	if counts["app"]+counts["500"] != 200 || counts["500"] < 60 || counts["500"] > 140 {
		t.Errorf("got %v, want about a half with 500", counts)
	}
}

func TestListenersComeAndGo(t *testing.T) {
	c := newSite(t)
	c.serve("app", newBackend(t, "app"))
	one, two := freePort(t), freePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("one", one, "")))
	route := c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{`+to("app")+`}]}`)
	r := c.runGateway()
	r.says([]string{routeDigest(route)}, "one")
	if got := gets(one, "a", "/"); got != "app" {
		t.Errorf("got %q", got)
	}
	g := c.put("Gateway", "edge", gatewaySpec(httpListener("one", one, ""), httpListener("two", two, ", hostname: b.example.com")))
	r.says([]string{routeDigest(route)}, "one", "two")
	if got := r.revision(); got.UID != g.GetUID() || got.Generation != g.GetGeneration() || got.Listeners[1].Digest != revision.ListenerDigest(int32(two), false, "b.example.com", nil) {
		t.Errorf("got %+v", got)
	}
	if got := gets(two, "b.example.com", "/"); got != "app" {
		t.Errorf("on the second port: got %q", got)
	}
	if got := gets(two, "a.example.com", "/"); got != "404" {
		t.Errorf("another host on the second port: got %q", got)
	}
	c.put("Gateway", "edge", gatewaySpec(httpListener("one", one, "")))
	r.says([]string{routeDigest(route)}, "one")
	if got := gets(two, "b.example.com", "/"); !strings.Contains(got, "refused") {
		t.Errorf("on the closed port: got %q", got)
	}

	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	number := taken.Addr().(*net.TCPAddr).Port
	c.put("Gateway", "edge", gatewaySpec(httpListener("one", one, ""), httpListener("taken", number, "")))
	environment.Eventually(t, func() error {
		if got := r.revision(); len(got.Problems) != 1 || got.Problems[0].Reason != "PortUnavailable" {
			return fmt.Errorf("got %+v", got)
		}
		return nil
	})
	r.says([]string{routeDigest(route)}, "one")
	if got := gets(one, "a", "/"); got != "app" || !r.ready() {
		t.Errorf("beside a port that is taken: got %q, ready %t", got, r.ready())
	}
	taken.Close()
	r.says([]string{routeDigest(route)}, "one", "taken")
	r.answersOn(number, "a", "/", "app")
}

func TestCertificatesAreThoseOfTheListener(t *testing.T) {
	c := newSite(t, "own", "edge-certificates")
	other := c.elsewhere(t)
	own, theirs := newCertificate(t, "a.example.com"), newCertificate(t, "b.example.com")
	c.secret("own", own.data)
	name := types.NamespacedName{Namespace: other.namespace, Name: "theirs"}
	copies := map[string][]byte{}
	borrowed.Put(copies, name, borrowed.Certificate{Certificate: theirs.data[corev1.TLSCertKey], PrivateKey: theirs.data[corev1.TLSPrivateKeyKey], Version: "77"})
	c.secret("edge-certificates", copies)
	one, two := freePort(t), freePort(t)
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
	if got, want := r.revision().Listeners[1].Digest, revision.ListenerDigest(int32(two), true, "b.example.com", []string{name.String() + "@77"}); got != want {
		t.Errorf("got digest %s, want %s", got, want)
	}

	next := newCertificate(t, "a.example.com")
	c.secret("own", next.data)
	secret := &corev1.Secret{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "own"}, secret); err != nil {
		t.Fatal(err)
	}
	want := revision.ListenerDigest(int32(one), true, "a.example.com", []string{c.namespace + "/own@" + secret.ResourceVersion})
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
	port := freePort(t)
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
		port := freePort(t)
		c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
		c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{`+to("app")+`}]}`)
		r := c.runGateway()
		r.answersOn(port, "a", "/", "app")
		if view := r.revision().View; view == nil || !view.Current {
			t.Errorf("got view %+v", view)
		}
		if log := r.log.String(); strings.Count(log, "the cluster does not have this kind") != 2 {
			t.Errorf("the log does not name the two kinds once:\n%s", log)
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
	port := freePort(t)
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
	port, second := freePort(t), freePort(t)
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
