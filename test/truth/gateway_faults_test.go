//go:build e2e

package truth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

const (
	// gatewayName is the name of the APIGateway that a fault is about.
	gatewayName = "edge"
	// badRoute is the name of the route that a fault is about; the route "good" is before it.
	badRoute = "bad"
)

var theGateway = &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: gatewayName}}

type gatewayEdit = func(*trial, *slipwayv1alpha1.APIGatewaySpec)

// gateway returns an APIGateway with one good route, changed as asked.
func (f *trial) gateway(edits ...gatewayEdit) *slipwayv1alpha1.APIGateway {
	gateway := &slipwayv1alpha1.APIGateway{
		ObjectMeta: metav1.ObjectMeta{Name: gatewayName},
		Spec: slipwayv1alpha1.APIGatewaySpec{
			Routes: []slipwayv1alpha1.Route{{Name: "good", Path: "/good", BackendService: &slipwayv1alpha1.BackendService{Name: appName, Port: 8080}}},
			// Other gateways of the cluster have routes for any host, too.
			Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeClusterIP},
		},
	}
	for _, edit := range edits {
		edit(f, &gateway.Spec)
	}
	return gateway
}

// serving creates an application and, when it serves, the gateway before it.
func serving(edits ...gatewayEdit) func(*trial) {
	return func(f *trial) {
		f.Create(f.app())
		f.Eventually(func() error {
			app := &slipwayv1alpha1.WebApp{}
			if err := f.Get(appName, app); err != nil {
				return err
			}
			if !truth.Ready(app) {
				return errors.New("the application is not ready")
			}
			return nil
		})
		f.Create(f.gateway(edits...))
	}
}

func editingGateway(edits ...gatewayEdit) func(*trial) {
	return func(f *trial) {
		livetest.Update(f.Fixture, gatewayName, &slipwayv1alpha1.APIGateway{}, func(gateway *slipwayv1alpha1.APIGateway) {
			for _, edit := range edits {
				edit(f, &gateway.Spec)
			}
		})
	}
}

// bad adds a route.
func bad(change func(*slipwayv1alpha1.Route)) gatewayEdit {
	return func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) {
		route := slipwayv1alpha1.Route{Name: badRoute, Path: "/bad", BackendService: &slipwayv1alpha1.BackendService{Name: appName, Port: 8080}}
		change(&route)
		s.Routes = append(s.Routes, route)
	}
}

// withoutBad removes it.
func withoutBad(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) {
	s.Routes = slices.DeleteFunc(s.Routes, func(r slipwayv1alpha1.Route) bool { return r.Name == badRoute })
}

func leadsTo(service slipwayv1alpha1.ServiceName, port int32) gatewayEdit {
	return bad(func(r *slipwayv1alpha1.Route) { r.BackendService.Name, r.BackendService.Port = service, port })
}

func service(name string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// routeTrouble is what a gateway says one of whose routes cannot be served.
func routeTrouble(reason string, more ...claim) []claim {
	return append([]claim{
		{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonRoutesNotLive},
		{route: true, reason: reason},
		serves,
	}, more...)
}

// unresolved is what a gateway says for a name that leads nowhere.
func unresolved(reason string) claim {
	return claim{condition: slipwayv1alpha1.ConditionResolvedRefs, status: metav1.ConditionFalse, reason: reason}
}

// routeFaults keep one route from being served, and no other.
func routeFaults() map[string]fault {
	mend := editingGateway(withoutBad)
	other := func(spec corev1.ServiceSpec) func(*trial) {
		return func(f *trial) {
			f.Create(service("other", spec))
			editingGateway(leadsTo("other", 9090))(f)
		}
	}
	return map[string]fault{
		"a route to a Service that does not exist": {
			subject: theGateway, usual: true, start: serving(), cause: editingGateway(leadsTo("other", 9090)), mend: mend,
			says:  routeTrouble(slipwayv1alpha1.ReasonBackendNotFound, unresolved(slipwayv1alpha1.ReasonBackendNotFound)),
			names: []string{`Service "other"`, "backendService"},
		},
		"a route to a port that does not exist": {
			subject: theGateway, start: serving(), cause: editingGateway(leadsTo(appName, 9090)), mend: mend,
			says:  routeTrouble(slipwayv1alpha1.ReasonPortNotFound, unresolved(slipwayv1alpha1.ReasonPortNotFound)),
			names: []string{`Service "shop"`, "9090"},
		},
		"a route to a Service without pods": {
			subject: theGateway, usual: true, start: serving(), mend: mend,
			cause: other(corev1.ServiceSpec{Selector: map[string]string{"app": "nobody"}, Ports: []corev1.ServicePort{{Port: 9090}}}),
			says:  routeTrouble(slipwayv1alpha1.ReasonNoEndpoints),
			names: []string{`Service "other"`, "9090"},
		},
		"a route to a Service outside of the cluster": {
			subject: theGateway, start: serving(), mend: mend,
			cause: other(corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}),
			says:  routeTrouble(slipwayv1alpha1.ReasonUnsupportedService),
			names: []string{`Service "other"`},
		},
		"a route to a port of UDP": {
			subject: theGateway, start: serving(), mend: mend,
			cause: other(corev1.ServiceSpec{Selector: map[string]string{"app": "nobody"}, Ports: []corev1.ServicePort{{Port: 9090, Protocol: corev1.ProtocolUDP}}}),
			says:  routeTrouble(slipwayv1alpha1.ReasonPortNotFound),
			names: []string{`Service "other"`, "9090"},
		},
		"keys in a Secret that does not exist": {
			subject: theGateway, usual: true, start: serving(), mend: mend,
			cause: editingGateway(bad(func(r *slipwayv1alpha1.Route) {
				r.Auth = &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: "keys"}}}
			})),
			says:  routeTrouble(slipwayv1alpha1.ReasonSecretNotFound, unresolved(slipwayv1alpha1.ReasonSecretNotFound)),
			names: []string{`Secret "keys"`},
		},
		"passwords that are none": {
			subject: theGateway, start: serving(), mend: mend,
			cause: func(f *trial) {
				f.Create(secret("users", "shop"))
				editingGateway(bad(func(r *slipwayv1alpha1.Route) {
					r.Auth = &slipwayv1alpha1.Auth{Basic: &slipwayv1alpha1.BasicAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: "users"}}}
				}))(f)
			},
			says:  routeTrouble(slipwayv1alpha1.ReasonInvalidSecret),
			names: []string{`Secret "users"`},
		},
		"public keys that cannot be fetched": {
			subject: theGateway, start: serving(), mend: mend,
			cause: editingGateway(bad(func(r *slipwayv1alpha1.Route) {
				r.Auth = &slipwayv1alpha1.Auth{JWT: &slipwayv1alpha1.JWTAuth{Issuer: "https://issuer.example.com", Audiences: []string{"shop"}, JWKSURL: "http://shop.invalid:8080/keys"}}
			})),
			says:  routeTrouble(slipwayv1alpha1.ReasonKeysNotFetched),
			names: []string{"jwksURL"},
		},
		"the application behind a route is deleted": {
			subject: theGateway, usual: true, lasts: true, start: serving(),
			cause: func(f *trial) {
				f.Delete(f.app())
				f.Gone(appName, &corev1.Service{})
			},
			says: []claim{{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonRoutesNotLive}},
		},
	}
}

// gatewayFaults are about all of a gateway.
func gatewayFaults() map[string]fault {
	certificate := func(edit func(*trial) map[string][]byte, hosts ...slipwayv1alpha1.HostName) func(*trial) {
		return func(f *trial) {
			f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tls"}, Type: corev1.SecretTypeTLS, Data: edit(f)})
			editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) {
				s.TLS = []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "tls"}, Hosts: hosts}}
			})(f)
		}
	}
	without := editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) { s.TLS = nil })
	return map[string]fault{
		"a certificate that is none": {
			subject: theGateway, usual: true, start: serving(), mend: without,
			cause: certificate(func(*trial) map[string][]byte {
				return map[string][]byte{corev1.TLSCertKey: []byte("no certificate"), corev1.TLSPrivateKeyKey: []byte("no key")}
			}),
			says:  trouble(slipwayv1alpha1.ReasonInvalidCertificate, unresolved(slipwayv1alpha1.ReasonInvalidCertificate), serves),
			names: []string{`Secret "tls"`},
		},
		"a certificate that has expired": {
			subject: theGateway, start: serving(), mend: without,
			cause: certificate(func(f *trial) map[string][]byte { return f.certificate("edge.example.com", -time.Minute) }),
			says:  trouble(slipwayv1alpha1.ReasonCertificateExpired, serves),
			names: []string{`Secret "tls"`},
		},
		"a certificate for another host": {
			subject: theGateway, usual: true, start: serving(), mend: without,
			cause: certificate(func(f *trial) map[string][]byte { return f.certificate("other.example.com", time.Hour) }, "edge.example.com"),
			says:  trouble(slipwayv1alpha1.ReasonCertificateMismatch, serves),
			names: []string{`Secret "tls"`, "edge.example.com"},
		},
		"no Secret for the certificate": {
			subject: theGateway, start: serving(), mend: without,
			cause: editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) {
				s.TLS = []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "tls"}}}
			}),
			says:  trouble(slipwayv1alpha1.ReasonSecretNotFound, serves),
			names: []string{`Secret "tls"`},
		},
		"gateway pods that no node can take": {
			subject: theGateway, start: serving(), usual: true,
			cause: editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) {
				s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}}
			}),
			known: podCondition(corev1.PodScheduled, corev1.ConditionFalse),
			says:  trouble(slipwayv1alpha1.ReasonUnschedulable, serves), warns: slipwayv1alpha1.ReasonUnschedulable,
			names: []string{`pod "edge-`, "spec.resources.requests.cpu"},
			mend:  editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) { s.Resources = nil }), good: rolledOut,
		},
		"gateway pods of an image that does not exist": {
			subject: theGateway, start: serving(),
			cause: editingGateway(func(f *trial, s *slipwayv1alpha1.APIGatewaySpec) { s.Image = f.Registry() + "/unknown:1" }),
			known: waits("ErrImagePull", "ImagePullBackOff"),
			says:  trouble(slipwayv1alpha1.ReasonImageNotFound, serves),
			names: []string{`pod "edge-`, "spec.image"},
			mend:  editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) { s.Image = "" }), good: rolledOut,
		},
		"an image that is no gateway": {
			subject: theGateway, start: serving(),
			cause: editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) { s.Image = cluster.DemoImage }),
			known: pod(func(p *corev1.Pod) bool {
				return p.Spec.Containers[0].Image == cluster.DemoImage && p.Labels[slipwayv1alpha1.LabelAPIGateway] != "" &&
					len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil
			}),
			says:  trouble(slipwayv1alpha1.ReasonImageIncompatible, serves),
			names: []string{"spec.image"},
			mend:  editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) { s.Image = "" }), good: rolledOut,
		},
		"a gateway's Service of somebody else": {
			subject: theGateway, usual: true,
			cause: func(f *trial) {
				f.Create(service(gatewayName, corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 81}}}))
				serving()(f)
			},
			known: func(o client.Object) bool { _, ok := o.(*slipwayv1alpha1.APIGateway); return ok },
			says:  trouble(slipwayv1alpha1.ReasonNameConflict, stalled),
			names: []string{`Service "edge"`},
			mend:  func(f *trial) { f.Delete(service(gatewayName, corev1.ServiceSpec{})) }, good: rolledOut,
		},
		"a Gateway for the outside that is not permitted": {
			subject: theGateway, start: serving(), usual: true,
			cause: editingGateway(func(_ *trial, s *slipwayv1alpha1.APIGatewaySpec) {
				s.Expose = &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeHTTPRoute, Gateway: &slipwayv1alpha1.ParentGateway{LocalReference: slipwayv1alpha1.LocalReference{Name: "public"}}}
			}),
			says:  trouble(slipwayv1alpha1.ReasonExposeNotPermitted, serves, stalled),
			names: []string{`Gateway "`, "spec.expose.gateway"},
			mend:  editingGateway(func(f *trial, s *slipwayv1alpha1.APIGatewaySpec) { s.Expose = f.gateway().Spec.Expose }),
		},
		"a gateway that is deleted in the foreground": {
			subject: theGateway, start: serving(),
			cause: func(f *trial) {
				livetest.Update(f.Fixture, gatewayName, &slipwayv1alpha1.APIGateway{}, func(g *slipwayv1alpha1.APIGateway) { g.Finalizers = []string{"slipway.dev/truth"} })
				f.Cleanup(func() {
					_, _ = f.RunKubectl(cleanup(), "patch", "apigateway", gatewayName, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
				})
				f.Delete(f.gateway(), client.PropagationPolicy(metav1.DeletePropagationForeground))
			},
			says: []claim{{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonTerminating}},
		},
	}
}

// certificate makes one for a host that signs itself and is valid for so long from now on,
// in the form of a TLS Secret.
func (f *trial) certificate(host string, valid time.Duration) map[string][]byte {
	f.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		f.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.Fatal(fmt.Errorf("the key of a certificate: %w", err))
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}
