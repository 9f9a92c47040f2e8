//go:build apitest

package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
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
	if err := env.InstallModule(t.Context(), gatewayAPI, crds+"gateways.yaml", crds+"httproutes.yaml", crds+"grpcroutes.yaml", crds+"referencegrants.yaml", crds+"backendtlspolicies.yaml", crds+"listenersets.yaml",
		crds+"tlsroutes.yaml", crds+"tcproutes.yaml", crds+"udproutes.yaml"); err != nil {
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
		{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gateways", "httproutes", "grpcroutes", "referencegrants", "backendtlspolicies", "listenersets", "tlsroutes", "tcproutes", "udproutes"}, Verbs: read},
		{APIGroups: []string{"slipway.dev"}, Resources: []string{"gatewaypolicies"}, Verbs: read},
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
	if kind == "GatewayPolicy" {
		object.SetAPIVersion("slipway.dev/v1alpha1")
	}
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
	return document.RouteDigest(object.GetUID(), object.GetGeneration())
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
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	return getsOn(transport, port, host, path)
}

// getsOn is gets on the connections of a transport.
func getsOn(transport *http.Transport, port int, host, path string) string {
	request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return err.Error()
	}
	request.Host = host
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
