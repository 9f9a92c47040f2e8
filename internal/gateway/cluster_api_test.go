//go:build apitest

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// cluster is a namespace with what a gateway pod needs: a service account with the Role of
// a gateway. No controllers of Kubernetes run.
type cluster struct {
	t         *testing.T
	namespace string
	access    *rest.Config
	wire      *wire
}

func newCluster(t *testing.T, secrets ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, namespace: env.Namespace(t)}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "edge"}}
	c.create(account)
	c.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Rules: rules(secrets)})
	c.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "edge"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "edge"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.namespace, Name: "edge"}},
	})
	token := &authenticationv1.TokenRequest{}
	if err := env.Client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	c.wire = newWire(t, server.Host)
	c.access = &rest.Config{
		Host: "https://" + c.wire.address, BearerToken: token.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: env.Config.CAData},
	}
	c.access.Wrap(c.wire.record)
	return c
}

// rules are the rules of the Role that the operator gives to a gateway called edge.
func rules(secrets []string) []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"slipway.dev"}, Resources: []string{"apigateways"}, ResourceNames: []string{"edge"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
	}
	if len(secrets) > 0 {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: read})
	}
	return rules
}

// allow sets which Secrets the gateway may read.
func (c *cluster) allow(secrets ...string) {
	c.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "edge"}}
	c.change(role, func() { role.Rules = rules(secrets) })
}

func (c *cluster) create(object client.Object) {
	c.t.Helper()
	object.SetNamespace(c.namespace)
	if err := env.Client.Create(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) delete(object client.Object) {
	c.t.Helper()
	object.SetNamespace(c.namespace)
	if err := env.Client.Delete(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) change(object client.Object, edit func()) {
	c.t.Helper()
	if err := env.Client.Get(c.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		c.t.Fatal(err)
	}
	edit()
	if err := env.Client.Update(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// spec creates or updates the APIGateway. It returns the generation.
func (c *cluster) spec(text string) int64 {
	c.t.Helper()
	spec := specOf(c.t, text)
	object := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "edge"}}
	if err := env.Client.Get(c.t.Context(), client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	object.Spec = spec
	if object.UID == "" {
		c.create(object)
	} else if err := env.Client.Update(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
	return object.Generation
}

func specOf(t testing.TB, text string) slipwayv1alpha1.APIGatewaySpec {
	t.Helper()
	var spec slipwayv1alpha1.APIGatewaySpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// service creates a Service with port 80.
func (c *cluster) service(name string) {
	c.t.Helper()
	c.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "web", Port: 80}}},
	})
}

// endpoints creates or updates the EndpointSlice of a Service.
func (c *cluster) endpoints(service string, backends ...backend) {
	c.t.Helper()
	c.slice(service+"-1", service, backends...)
}

// slice is one of several EndpointSlices of a Service: its endpoints have one port, that of the last.
func (c *cluster) slice(name, service string, backends ...backend) {
	c.t.Helper()
	object := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service},
	}}
	err := env.Client.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)
	object.AddressType = discoveryv1.AddressTypeIPv4
	object.Endpoints, object.Ports = nil, nil
	for _, b := range backends {
		object.Ports = []discoveryv1.EndpointPort{{Name: new("web"), Port: new(int32(b.port))}}
		object.Endpoints = append(object.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{b.ip}, Conditions: discoveryv1.EndpointConditions{Ready: new(!b.leaving), Serving: new(true), Terminating: new(b.leaving)},
		})
	}
	if err != nil {
		c.create(object)
	} else if err := env.Client.Update(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// secret creates or updates a Secret.
func (c *cluster) secret(name string, data map[string][]byte) {
	c.t.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	err := env.Client.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)
	object.Data = data
	if err != nil {
		c.create(object)
	} else if err := env.Client.Update(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// backend is an endpoint. Its server answers with its name.
type backend struct {
	name    string
	ip      string
	port    int
	leaving bool
	release chan struct{} // requests for /slow wait for it
}

// newBackend listens on a non-loopback address, because an EndpointSlice must not have a
// loopback address.
func newBackend(t testing.TB, name string) backend { return newBackendAt(t, name, "0") }

func newBackendAt(t testing.TB, name, port string) backend {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ownAddress(t), port))
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-release
		}
		_, _ = io.WriteString(w, name)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	at := listener.Addr().(*net.TCPAddr)
	return backend{name: name, ip: at.IP.String(), port: at.Port, release: release}
}

func ownAddress(t testing.TB) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback, which an EndpointSlice must not have")
	return ""
}

// running is a running gateway.
type running struct {
	t                  testing.TB
	http, https, admin net.Addr
	log, accessLog     *lockedbuffer.Buffer
	stop               context.CancelFunc // stops it, which takes as long as draining
}

// run starts a gateway until the end of the test.
func (c *cluster) run() *running {
	c.t.Helper()
	addresses := make(chan *running, 1)
	r := &running{t: c.t, log: &lockedbuffer.Buffer{}, accessLog: &lockedbuffer.Buffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{
			FetchFrom: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // where servers of tests are
			Gateway:   "edge", Namespace: c.namespace, Access: c.access, Version: "1.2.3",
			HTTP: "127.0.0.1:0", HTTPS: "127.0.0.1:0", Admin: "127.0.0.1:0", DrainTimeout: time.Minute,
			Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), AccessLog: r.accessLog,
			Listening: func(http, https, admin net.Addr) {
				r.http, r.https, r.admin = http, https, admin
				addresses <- r
			},
		})
	}()
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

// revision is the gateway's answer of what it serves.
func (r *running) revision() document.Document {
	r.t.Helper()
	var doc document.Document
	code, body := fetch(r.admin, "/revision")
	if err := json.Unmarshal([]byte(body), &doc); code != http.StatusOK || err != nil {
		r.t.Fatalf("got %d %q: %v", code, body, err)
	}
	return doc
}

// serves waits until the gateway reports the generation and exactly these problems. For
// each problem it gives the reason and a part of the message.
func (r *running) serves(generation int64, problems ...string) {
	r.t.Helper()
	environment.Eventually(r.t, func() error {
		got := r.revision()
		if got.Generation != generation || got.Rejected != nil || len(got.Problems) != len(problems) {
			return fmt.Errorf("the gateway serves %+v, want generation %d and %d problems", got, generation, len(problems))
		}
		for i, want := range problems {
			reason, message, _ := strings.Cut(want, ": ")
			if p := got.Problems[i]; p.Reason != reason || !strings.Contains(p.Message, message) {
				return fmt.Errorf("got problem %+v, want %s", p, want)
			}
		}
		return nil
	})
}

// answers waits until a request gets this status or this body.
func (r *running) answers(path, want string, headers ...string) {
	r.t.Helper()
	environment.Eventually(r.t, func() error {
		if got := r.ask(path, headers...); got != want && !strings.HasPrefix(got, want+" ") {
			return fmt.Errorf("%s: got %q, want %q", path, got, want)
		}
		return nil
	})
}

// ask returns the body of a 200, otherwise the status.
func (r *running) ask(path string, headers ...string) string {
	request, err := http.NewRequest(http.MethodGet, "http://"+r.http.String()+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK || err != nil {
		return response.Status
	}
	return string(body)
}

// ready reports whether the gateway is ready for traffic.
func (r *running) ready() bool {
	code, _ := fetch(r.admin, "/readyz")
	return code == http.StatusOK
}

// Whoever may write Services and EndpointSlices names the gateway's own address. Its admin port is no backend.
func TestTheAdminPortIsNoBackend(t *testing.T) {
	c := newCluster(t)
	r := c.run()
	_, port, err := net.SplitHostPort(r.admin.String())
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]backend{"admin": newBackendAt(t, "inside", port), "other": newBackend(t, "other")} {
		c.service(name)
		c.endpoints(name, at)
	}
	r.serves(c.spec(`routes: [{name: admin, path: /admin, backendService: {name: admin, port: 80}}, {name: other, path: /other, backendService: {name: other, port: 80}}]`))
	r.answers("/other", "other")
	r.answers("/admin", "502")
}
