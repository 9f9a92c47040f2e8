//go:build apitest

package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/authority"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// configMap creates or updates a ConfigMap.
func (c *cluster) configMap(name string, data map[string]string) {
	c.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	err := env.Client.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)
	object.Data = data
	if err != nil {
		c.create(object)
	} else if err := env.Client.Update(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// allowConfigMaps lets the gateway read these as well.
func (c *cluster) allowConfigMaps(names ...string) {
	c.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "edge"}}
	c.change(role, func() {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names, Verbs: []string{"get", "list", "watch"}})
	})
}

// vault is a backend that speaks TLS only, and lets only those in who show a certificate of its own authority.
type vault struct {
	backend

	plain   atomic.Int64 // connections on which something else than TLS was spoken
	checks  atomic.Int64 // requests of health checks
	current atomic.Pointer[tls.Certificate]
}

func newVault(t *testing.T, servers, clients *authority.Authority, name string) *vault {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ownAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	v := &vault{}
	v.current.Store(servers.Issue(t, x509.Certificate{DNSNames: []string{name}}))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			v.checks.Add(1)
		}
		_, _ = fmt.Fprintf(w, "%s to %s", r.TLS.PeerCertificates[0].DNSNames[0], r.TLS.ServerName)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Config.ErrorLog = log.New(spoken{&v.plain}, "", 0)
	server.TLS = &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return v.current.Load(), nil },
		ClientAuth:     tls.RequireAndVerifyClientCert, ClientCAs: clients.Pool(),
	}
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	at := listener.Addr().(*net.TCPAddr)
	v.backend = backend{ip: at.IP.String(), port: at.Port}
	return v
}

// spoken counts what net/http says of clients that speak HTTP without TLS.
type spoken struct{ plain *atomic.Int64 }

func (s spoken) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "HTTP request to an HTTPS server") || strings.Contains(string(line), "does not look like a TLS handshake") {
		s.plain.Add(1)
	}
	return len(line), nil
}

func pair(t *testing.T, from *authority.Authority, name string) map[string][]byte {
	t.Helper()
	crt, key := from.IssuePEM(t, x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}
}

func TestABackendIsReachedWithTLSOrNotAtAll(t *testing.T) {
	c := newCluster(t, "shown")
	servers, clients := authority.New(t, "servers"), authority.New(t, "clients")
	v := newVault(t, servers, clients, "vault.internal")
	c.service("vault")
	c.endpoints("vault", v.backend)
	g := c.spec(`
backendPolicies: [{name: vault, port: 80, tls: {hostname: vault.internal, caCertificates: [{name: servers}], clientCertificateRef: {name: shown}}}]
healthChecks: [{name: vault, port: 80, path: /healthz, periodSeconds: 1}]
routes:
- {name: vault, backendService: {name: vault, port: 80}}
- {name: asked, path: /asked, directResponse: {statusCode: 200, body: in}, auth: {external: {backendService: {name: vault, port: 80}}}}`)
	r := c.run()
	lacks := func(reason, message string) {
		t.Helper()
		r.serves(g, reason+": "+message, reason+": "+message, reason+": "+message)
		if got := r.ask("/"); !strings.HasPrefix(got, "50") {
			t.Errorf("%s: a request got %q", reason, got)
		}
		if got := r.ask("/asked"); !strings.HasPrefix(got, "503") {
			t.Errorf("%s: a question got %q", reason, got)
		}
	}
	lacks("ConfigMapNotFound", `tls.caCertificates[0]: ConfigMap "servers" may not be read by the gateway`)
	c.allowConfigMaps("servers")
	lacks("ConfigMapNotFound", `tls.caCertificates[0]: ConfigMap "servers" does not exist`)
	c.configMap("servers", map[string]string{"ca.crt": ""})
	lacks("InvalidCACertificates", `tls.caCertificates[0]: key "ca.crt" of ConfigMap "servers" cannot be used`)
	c.configMap("servers", map[string]string{"other": string(servers.PEM())})
	lacks("KeyNotFound", `tls.caCertificates[0]: ConfigMap "servers" has no key "ca.crt"`)
	begin := time.Now()
	c.configMap("servers", map[string]string{"ca.crt": string(servers.PEM())})
	lacks("SecretNotFound", `tls.clientCertificateRef: Secret "shown" does not exist`)
	t.Logf("said after %v", time.Since(begin))
	half := pair(t, clients, "gateway")
	half[corev1.TLSPrivateKeyKey] = pair(t, clients, "gateway")[corev1.TLSPrivateKeyKey]
	c.secret("shown", half)
	lacks("InvalidCertificate", `tls.clientCertificateRef: Secret "shown"`)
	c.secret("shown", pair(t, clients, "gateway"))
	r.serves(g)
	r.answers("/", "gateway to vault.internal")
	r.answers("/asked", "in")
	environment.Eventually(t, func() error {
		if v.checks.Load() == 0 {
			return fmt.Errorf("no health check has arrived")
		}
		return nil
	})
	// A certificate of another authority, or for another name, is not trusted.
	for what, wrong := range map[string]*tls.Certificate{
		"another authority": authority.New(t, "other").Issue(t, x509.Certificate{DNSNames: []string{"vault.internal"}}),
		"another name":      servers.Issue(t, x509.Certificate{DNSNames: []string{"other.internal"}}),
		"expired":           servers.Issue(t, x509.Certificate{DNSNames: []string{"vault.internal"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}),
	} {
		right := v.current.Swap(wrong)
		c.secret("shown", pair(t, clients, "next")) // new connections
		environment.Eventually(t, func() error {
			if got := r.ask("/"); !strings.HasPrefix(got, "50") {
				return fmt.Errorf("%s: got %q", what, got)
			}
			return nil
		})
		v.current.Store(right)
		r.answers("/", "next to vault.internal")
	}
	c.delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "servers"}})
	lacks("ConfigMapNotFound", `ConfigMap "servers" does not exist`)
	if n := v.plain.Load(); n > 0 {
		t.Errorf("%d times something was sent to it without TLS", n)
	}
}

// Authorities and certificates change while requests go through, first to a bundle with both as one does it.
func TestRotationOfAuthoritiesAndCertificatesLosesNoRequest(t *testing.T) {
	c := newCluster(t, "shown")
	c.allowConfigMaps("servers")
	old, next, clients := authority.New(t, "old"), authority.New(t, "next"), authority.New(t, "clients")
	v := newVault(t, old, clients, "vault.internal")
	c.configMap("servers", map[string]string{"ca.crt": string(old.PEM())})
	c.secret("shown", pair(t, clients, "a"))
	c.service("vault")
	c.endpoints("vault", v.backend)
	g := c.spec(`
backendPolicies: [{name: vault, port: 80, tls: {hostname: vault.internal, caCertificates: [{name: servers}], clientCertificateRef: {name: shown}}}]
routes: [{name: vault, backendService: {name: vault, port: 80}}]`)
	r := c.run()
	r.serves(g)
	r.answers("/", "a to vault.internal")

	stop, lost, sent := make(chan struct{}), atomic.Int64{}, atomic.Int64{}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				request, _ := http.NewRequest(http.MethodGet, "http://"+r.http.String()+"/", nil)
				response, err := transport.RoundTrip(request)
				sent.Add(1)
				if err != nil {
					lost.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK {
					lost.Add(1)
				}
			}
		})
	}
	for i := range 10 {
		name := fmt.Sprintf("r%d", i)
		c.configMap("servers", map[string]string{"ca.crt": string(old.PEM()) + string(next.PEM())})
		c.secret("shown", pair(t, clients, name))
		r.answers("/", name+" to vault.internal")
		v.current.Store(next.Issue(t, x509.Certificate{DNSNames: []string{"vault.internal"}}))
		c.configMap("servers", map[string]string{"ca.crt": string(next.PEM())})
		c.secret("shown", pair(t, clients, name+"-after"))
		r.answers("/", name+"-after to vault.internal")
		old, next = next, authority.New(t, name)
	}
	close(stop)
	wait.Wait()
	if lost.Load() > 0 || sent.Load() < 100 {
		t.Errorf("%d of %d requests are lost", lost.Load(), sent.Load())
	}
	t.Logf("%d requests through 40 changes, %d lost", sent.Load(), lost.Load())
}

// The schema says what a policy can ask for.
func TestTheSchemaOfTLSToBackends(t *testing.T) {
	c := newCluster(t)
	for text, says := range map[string]string{
		`{hostname: a.internal}`: "",
		`{hostname: a.internal, caCertificates: [{name: ca}, {kind: Secret, name: a.b, key: x.pem}], subjectAltNames: ["*.a", "spiffe://a/b"], clientCertificateRef: {name: own}}`: "",
		`{hostname: ""}`:    "hostname",
		`{hostname: "*.a"}`: "hostname",
		`{hostname: a, caCertificates: [{kind: Pod, name: a}]}`: "kind",
		`{hostname: a, caCertificates: [{name: ../a}]}`:         "name",
		`{hostname: a, subjectAltNames: ["a b"]}`:               "subjectAltNames",
		`{hostname: a, subjectAltNames: ["spiffe://a b"]}`:      "subjectAltNames",
		`{hostname: a, clientCertificateRef: {name: A}}`:        "clientCertificateRef",
	} {
		object := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, GenerateName: "edge-"}}
		object.Spec = specOf(t, `backendPolicies: [{name: a, port: 1, tls: `+text+`}]`)
		err := env.Client.Create(t.Context(), object)
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: got %v, want an error about %s", text, err, says)
		}
	}
}
