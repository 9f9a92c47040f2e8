//go:build apitest

package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// unreadable answers reads of one object with an error of the API server, while it is on. It begins after some reads.
type unreadable struct {
	next         http.RoundTripper
	path         string
	on           atomic.Bool
	spared, hits atomic.Int64
}

func (u *unreadable) RoundTrip(request *http.Request) (*http.Response, error) {
	if u.on.Load() && request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, u.path) && u.spared.Add(-1) < 0 {
		u.hits.Add(1)
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Status: "500", Header: http.Header{}, Request: request, Body: io.NopCloser(strings.NewReader("etcd is away")),
		}, nil
	}
	return u.next.RoundTrip(request)
}

// A certificate that is not granted any more goes, though another one cannot be read at that moment. That one stays.
func TestACertificateGoesWithItsGrantWhateverElseFails(t *testing.T) {
	f := newFixture(t)
	failing := &unreadable{path: "/namespaces/" + f.other + "/secrets/kept"}
	f.startOperator(func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { failing.next = next; return failing })
	})
	revoked, kept := f.certificate(f.other, "revoked"), f.certificate(f.other, "kept")
	grants := map[string]*gatewayv1.ReferenceGrant{}
	for _, secret := range []*corev1.Secret{revoked, kept} {
		grant := f.grant()
		grant.Name = secret.Name
		grant.Spec.To = []gatewayv1.ReferenceGrantTo{{Kind: "Secret", Name: ptr(gatewayv1.ObjectName(secret.Name))}}
		grants[secret.Name] = grant
		f.create(secret, grant)
	}
	g := f.gateway(secure(f.other, "revoked"), secure(f.other, "kept"))
	g.Spec.Listeners[2].Name, g.Spec.Listeners[2].Port = "kept", 8443
	f.create(f.class, g)
	copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
	holds := func(wantRevoked bool) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get(copies); err != nil {
				return err
			}
			if _, found := copied.Find(copies, client.ObjectKeyFromObject(kept)); !found {
				return errors.New("the certificate that is granted has no copy")
			}
			if _, found := copied.Find(copies, client.ObjectKeyFromObject(revoked)); found != wantRevoked {
				return errors.New("the copy of the other one does not follow its grant")
			}
			return nil
		})
	}
	holds(true)
	failing.on.Store(true)
	f.delete(grants["revoked"])
	holds(false)
}

// While the only certificate cannot be read there is nothing to copy, and no Secret without anything is made.
func TestNoCopyIsMadeOfNothing(t *testing.T) {
	f := newFixture(t)
	failing := &unreadable{path: "/namespaces/" + f.other + "/secrets/web"}
	failing.on.Store(true)
	failing.spared.Store(1) // it can still be checked
	f.startOperator(func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { failing.next = next; return failing })
	})
	g := f.gateway(secure(f.other, "web"))
	secret := f.certificate(f.other, "web")
	f.create(secret, f.grant(), f.class, g)
	copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
	environment.Eventually(t, func() error {
		if failing.hits.Load() < 2 {
			return errors.New("it was not tried to copy the certificate twice yet")
		}
		return nil
	})
	if err := f.get(copies); !apierrors.IsNotFound(err) {
		t.Errorf("the copies while nothing can be copied: %v, %v", copies.Data, err)
	}
	failing.on.Store(false)
	environment.Eventually(t, func() error {
		if err := f.get(copies); err != nil {
			return err
		}
		if _, found := copied.Find(copies, client.ObjectKeyFromObject(secret)); !found {
			return errors.New("the certificate has no copy")
		}
		return nil
	})
}

// readsContent notes lists and watches of Secrets with their content.
type readsContent struct {
	next http.RoundTripper
	path atomic.Pointer[string]
}

func (c *readsContent) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.Path
	if request.Method == http.MethodGet && strings.HasSuffix(path, "/secrets") && !strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata") {
		c.path.Store(&path)
	}
	return c.next.RoundTrip(request)
}

// Writing the copies of certificates does not make the operator keep the content of every Secret.
func TestCopiesOfCertificatesLeaveOtherSecretsUnread(t *testing.T) {
	f := newFixture(t)
	reads := &readsContent{}
	f.startOperator(func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { reads.next = next; return reads })
	})
	g := f.gateway(secure(f.other, "web"))
	f.create(f.certificate(f.other, "web"), f.grant(), f.class, g)
	copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
	environment.Eventually(t, func() error { return f.get(copies) })
	if path := reads.path.Load(); path != nil {
		t.Errorf("the operator reads %s with the content", *path)
	}
}
