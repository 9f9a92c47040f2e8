//go:build e2e

package e2e

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
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

const (
	// gatewayName is the name of a test's APIGateway.
	gatewayName = "edge"
	// gatewayGoal is how soon its status names what is wrong, and that it is mended.
	gatewayGoal = 2 * time.Second
)

// gatewayFixture is a test with an APIGateway and everything that its status has said.
type gatewayFixture struct {
	*fixture
	said *livetest.Record
}

func newGatewayFixture(f *fixture) *gatewayFixture {
	f.Helper()
	return &gatewayFixture{fixture: f, said: f.Record(&slipwayv1alpha1.APIGatewayList{})}
}

// gatewayCheck looks at an APIGateway whose status speaks of its current spec.
type gatewayCheck func(*slipwayv1alpha1.APIGateway) error

// waitGateway waits until every check is content with a status of the current spec.
func (f *gatewayFixture) waitGateway(checks ...gatewayCheck) *slipwayv1alpha1.APIGateway {
	f.Helper()
	gateway := &slipwayv1alpha1.APIGateway{}
	f.Eventually(func() error {
		if err := f.Get(gatewayName, gateway); err != nil {
			return err
		}
		return content(gateway, checks)
	})
	return gateway
}

func content(gateway *slipwayv1alpha1.APIGateway, checks []gatewayCheck) error {
	if gateway.Status.ObservedGeneration != gateway.Generation {
		return errors.New("status speaks of an older generation")
	}
	for _, check := range checks {
		if err := check(gateway); err != nil {
			return err
		}
	}
	return nil
}

// promptly does something and waits until status says so, no longer than gatewayGoal. The
// time counts from before it is done: the write is part of it.
func (f *gatewayFixture) promptly(what string, do func(), checks ...gatewayCheck) {
	f.Helper()
	start := time.Now()
	do()
	f.saysPromptly(what, start, checks...)
}

// saysPromptly does so for something that is done already, or has happened.
func (f *gatewayFixture) saysPromptly(what string, since time.Time, checks ...gatewayCheck) {
	f.Helper()
	f.waitGateway(checks...)
	said := f.said.First(since, what, func(s livetest.Sighting) bool {
		gateway, ok := s.Object.(*slipwayv1alpha1.APIGateway)
		return ok && gateway.Name == gatewayName && content(gateway, checks) == nil
	})
	took := said.At.Sub(since).Round(time.Millisecond)
	f.Measured("%s after %v", what, took)
	if took > gatewayGoal {
		f.Errorf("%s took %v, want at most %v", what, took, gatewayGoal)
	}
}

// wasTruthful checks that no status that was ever written contradicts itself.
func (f *gatewayFixture) wasTruthful() {
	f.Helper()
	checked := 0
	for _, s := range f.said.All() {
		gateway, ok := s.Object.(*slipwayv1alpha1.APIGateway)
		if !ok || gateway.Status.ObservedGeneration == 0 {
			continue
		}
		checked++
		if err := truth.Check(gateway); err != nil {
			f.Errorf("a status was not true: %v\n%+v", err, gateway.Status)
		}
	}
	if checked == 0 {
		f.Error("no status was seen: the test proves nothing")
	}
}

// gatewayIs checks a condition, as is does for applications.
func gatewayIs(conditionType string, status metav1.ConditionStatus, reason string) gatewayCheck {
	return func(gateway *slipwayv1alpha1.APIGateway) error {
		c := meta.FindStatusCondition(gateway.Status.Conditions, conditionType)
		switch {
		case c == nil:
			return fmt.Errorf("no condition %s, want %s %s", conditionType, status, reason)
		case c.Status != status || (reason != "" && c.Reason != reason):
			return fmt.Errorf("%s is %s %s (%s), want %s %s", conditionType, c.Status, c.Reason, c.Message, status, reason)
		}
		return nil
	}
}

// gatewayReady checks that every replica serves every route.
func gatewayReady(replicas int32, routes int) gatewayCheck {
	return func(gateway *slipwayv1alpha1.APIGateway) error {
		status := gateway.Status
		if status.ReadyReplicas != replicas || status.Replicas != replicas || int(status.Routes.Live) != routes || int(status.Routes.Total) != routes {
			return fmt.Errorf("status is %+v, want %d replicas and %d routes", status, replicas, routes)
		}
		return gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")(gateway)
	}
}

// routeNotLive checks that one route is not live, for a reason, and that no other is named.
func routeNotLive(name, reason string) gatewayCheck {
	return func(gateway *slipwayv1alpha1.APIGateway) error {
		routes := gateway.Status.Routes
		if len(routes.NotLive) != 1 || routes.NotLive[0].Name != name || routes.NotLive[0].Reason != reason || routes.Live != routes.Total-1 {
			return fmt.Errorf("the routes are %+v, want %s not live because of %s", routes, name, reason)
		}
		return gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, "")(gateway)
	}
}

// editGateway changes the latest version of the spec.
func (f *gatewayFixture) editGateway(change func(*slipwayv1alpha1.APIGatewaySpec)) {
	f.Helper()
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: gatewayName, Namespace: f.Namespace}}
	update(f.fixture, gateway, func(g *slipwayv1alpha1.APIGateway) { change(&g.Spec) })
}

// gatewayPods returns the gateway's pods that are not on their way out.
func (f *gatewayFixture) gatewayPods() []corev1.Pod {
	f.Helper()
	list := &corev1.PodList{}
	err := cluster.List(f.Context(), list, client.InNamespace(f.Namespace), client.MatchingLabels{slipwayv1alpha1.LabelAPIGateway: gatewayName})
	if err != nil {
		f.Fatalf("list the gateway's pods: %v", err)
	}
	return livecluster.Staying(list.Items)
}

// through returns a client that reaches every host at the gateway's Service, with a
// connection for each request and, for https, one of these certificates.
func (f *gatewayFixture) through(certificates ...*certificate) *http.Client {
	f.Helper()
	address := mustGet(f.fixture, gatewayName, &corev1.Service{}).Spec.ClusterIP
	roots := x509.NewCertPool()
	for _, c := range certificates {
		roots.AddCert(c.leaf)
	}
	dialer := &net.Dialer{}
	return &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: roots},
			DialContext: func(ctx context.Context, network, host string) (net.Conn, error) {
				_, port, err := net.SplitHostPort(host)
				if err != nil {
					return nil, err
				}
				return dialer.DialContext(ctx, network, net.JoinHostPort(address, port))
			},
		},
	}
}

// certificate is one that signs itself, with its key.
type certificate struct {
	leaf *x509.Certificate
	data map[string][]byte
}

// newCertificate makes a certificate for a host that outlives the test, in the form of a
// TLS Secret.
func (f *gatewayFixture) newCertificate(host string) *certificate {
	f.Helper()
	return f.newCertificateUntil(host, time.Now().Add(time.Hour))
}

func (f *gatewayFixture) newCertificateUntil(host string, end time.Time) *certificate {
	f.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		f.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		f.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		f.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.Fatal(err)
	}
	return &certificate{leaf: leaf, data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}}
}

// demo returns an application of the demo that listens at a port.
func (f *fixture) demo(name string, port int32) *slipwayv1alpha1.WebApp {
	return f.app(env("PORT", slipwayv1alpha1.EnvValue(fmt.Sprint(port))), func(app *slipwayv1alpha1.WebApp) {
		app.Name, app.Spec.Port = name, port
	})
}
