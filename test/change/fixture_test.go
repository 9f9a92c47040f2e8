//go:build e2e || change

package change

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

const (
	// patience is how long what should come may take; most of it is room for a busy machine,
	// where the operator may lose its Lease and wait until the kubelet starts it again.
	patience = 6 * time.Minute
	gateway  = "edge"
	host     = "app.example.com"
	// The ports of the backends' Services, by what is spoken at them.
	portHTTP1, portH2C, portGRPC = 80, 81, 90
)

// backends are the colors of the backends: two that are alike, and that serve on for a
// while when they are told to end, as they should; and one that ends at once.
const (
	blue, green, abrupt = "blue", "green", "abrupt"
)

// run is a gateway, its backends and its clients.
type run struct {
	*testing.T
	namespace string
	rate      int
	record    *record
	// front is what the gateway is made of, and routes are what it is to serve.
	front     front
	routes    []slipwayv1alpha1.Route
	extras    *extras
	authority *authority
	tls       *tls.Config
	// address is the cluster IP of the gateway's Service.
	address string
}

func newRun(t *testing.T, rate int, front front) *run {
	t.Helper()
	r := &run{T: t, rate: rate, front: front, record: newRecord(t.Logf), extras: &extras{}, authority: newAuthority(t)}
	r.tls = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.authority.pool, ServerName: host}
	image := os.Getenv("ECHO_IMAGE")
	if image == "" {
		t.Skip("ECHO_IMAGE is not set: there is no image of hack/echo")
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "change-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	r.must(cluster.Create(t.Context(), namespace))
	r.namespace = namespace.Name
	t.Cleanup(func() {
		if err := cluster.Delete(cleanupContext(t), namespace); err != nil {
			t.Errorf("delete the namespace: %v", err)
		}
	})
	r.watchPods()
	for color, delay := range map[string]string{blue: "5s", green: "5s", abrupt: "0s"} {
		r.must(cluster.Create(t.Context(), r.backend(color, delay, image)))
		r.must(cluster.Create(t.Context(), r.service(color)))
	}
	r.must(cluster.Create(t.Context(), &corev1.Secret{
		ObjectMeta: r.named("cert"), Type: corev1.SecretTypeTLS, Data: r.authority.issue(t),
	}))
	r.start()
	return r
}

// start creates the gateway and waits until it serves through its Service.
func (r *run) start() {
	r.Helper()
	r.routes = []slipwayv1alpha1.Route{
		route("web", "/web/", blue, portHTTP1),
		route("h2", "/h2/", blue, portH2C),
		route("streams", "/streams/", blue, portHTTP1),
		route("grpc", "/grpc.testing.TestService/", blue, portGRPC),
		route("abrupt", "/abrupt/", abrupt, portHTTP1),
	}
	// Its endpoints take connections and end them before they have read a request.
	r.routes[4].Retries = &slipwayv1alpha1.Retries{
		Attempts: ptr(int32(3)), RetryOn: []slipwayv1alpha1.RetryCause{slipwayv1alpha1.RetryConnectFailure, slipwayv1alpha1.RetryReset},
	}
	var first []*extra
	for range 10 {
		x := r.extras.next()
		first = append(first, x)
		r.routes = append(r.routes, route("", x.path, blue, portHTTP1))
	}
	r.front.create(r)
	r.front.live(r)
	service := &corev1.Service{}
	r.must(cluster.Get(r.Context(), r.key(r.front.deployment(r)), service))
	r.address = service.Spec.ClusterIP
	r.settled() // no backend is without a pod that is ready
	for _, url := range []string{"http://" + host + "/web/", "https://" + host + "/web/", "http://" + host + "/abrupt/get"} {
		r.eventually(func() error {
			_, err := r.getAt(url) //nolint:bodyclose,nolintlint // found now and then: it is closed by getAt
			return err
		})
	}
	for _, x := range first {
		r.extras.add(x)
	}
}

func route(name, path, color string, port int32) slipwayv1alpha1.Route {
	return slipwayv1alpha1.Route{
		Name: name, Host: host, Path: path,
		BackendService: &slipwayv1alpha1.BackendService{Name: slipwayv1alpha1.ServiceName(color), Port: port},
	}
}

func (r *run) backend(color, delay, image string) *appsv1.Deployment {
	labels := map[string]string{"app": color}
	return &appsv1.Deployment{ObjectMeta: r.named(color), Spec: appsv1.DeploymentSpec{
		Replicas: ptr(int32(2)),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr(intstr.FromInt32(0)), MaxSurge: ptr(intstr.FromInt32(1)),
		}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr(int64(60)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "echo", Image: image,
				Env: []corev1.EnvVar{{Name: "COLOR", Value: color}, {Name: "LEAVE_DELAY", Value: delay}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)},
				}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		}},
	}}
}

func (r *run) service(color string) *corev1.Service {
	return &corev1.Service{ObjectMeta: r.named(color), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": color},
		Ports: []corev1.ServicePort{
			{Name: "http", Port: portHTTP1, TargetPort: intstr.FromInt32(8080)},
			{Name: "h2c", Port: portH2C, TargetPort: intstr.FromInt32(8080), AppProtocol: ptr("kubernetes.io/h2c")},
			{Name: "grpc", Port: portGRPC, TargetPort: intstr.FromInt32(9090), AppProtocol: ptr("kubernetes.io/h2c")},
		},
	}}
}

// answer is what get looks at.
type answer struct {
	header http.Header
	tls    *tls.ConnectionState
}

// get asks the gateway once, on a connection of its own.
func (r *run) get(scheme, path string) (*answer, error) { return r.getAt(scheme + "://" + host + path) }

// getAt is get for an address.
func (r *run) getAt(url string) (*answer, error) { return r.getWithin(requestTimeout, url) }

// getWithin is getAt with a limit of its own.
func (r *run) getWithin(limit time.Duration, url string) (*answer, error) {
	transport := r.transport(http1)
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return &answer{response.Header, response.TLS}, nil
}

func (r *run) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name}
}

func (r *run) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: name}
}

func (r *run) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *run) eventually(check func() error) {
	r.Helper()
	r.must(livecluster.Eventually(r.Context(), patience, check))
}

// cleanupContext is one for what is done after a test.
func cleanupContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func ptr[T any](value T) *T { return &value }

// authority issues the certificates of the gateway.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	pool        *x509.CertPool
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool(), serial: 1}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err, errCreate, errParse error
	var der []byte
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err == nil {
		der, errCreate = x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
		a.certificate, errParse = x509.ParseCertificate(der)
	}
	if err := errors.Join(err, errCreate, errParse); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.certificate)
	return a
}

// issue returns the content of a Secret with a new certificate, whose serial number is
// a.serial then.
func (a *authority) issue(t *testing.T) map[string][]byte {
	t.Helper()
	a.serial++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, errCreate := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	secret, errKey := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(errCreate, errKey); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
}
