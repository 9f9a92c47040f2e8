//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	secureHost = "edge.example.com"
	// takenHost belongs to another gateway, which is older.
	takenHost = "taken.example.com"
	rivalName = "another" // of the same second: the first by name
	goodURL   = "http://edge.example.com/good"
	badURL    = "http://edge.example.com/bad"
	secureURL = "https://edge.example.com/good"
	apiKey    = "a key of the test"
)

// gatewayTrouble is one way to get a gateway into trouble, and out of it.
type gatewayTrouble struct {
	reason string
	// prepare is done before, and no part of what is measured. Optional.
	prepare func(*gatewayFixture)
	// cause makes it, and says is what status must then say.
	cause func(*gatewayFixture)
	says  []gatewayCheck
	// meanwhile is checked while it lasts. Optional.
	meanwhile func(*gatewayFixture)
	// mend ends it.
	mend func(*gatewayFixture)
}

// Whatever is wrong with one route, a certificate or an image: status says so at once, and
// that it is mended, and the good route answers all the time. It runs before the parallel
// tests: it measures, and takes the webhook away.
func TestATroubledGatewaySaysWhyAndServesOn(t *testing.T) {
	f := newGatewayFixture(newFixture(t))
	first, second := f.newCertificate(secureHost), f.newCertificate(secureHost)
	f.Create(f.demo(appName, 8080), f.tlsSecret("tls", first), f.rival())
	f.Create(f.troubledGateway())
	f.waitGateway(gatewayReady(2, 1))
	through := f.through(first, second)
	load := []*livetest.Traffic{f.Traffic(through, goodURL), f.Traffic(through, secureURL)}

	for _, trouble := range append(routeTroubles(), secretTroubles(second)...) {
		f.goThrough(trouble)
	}
	f.serves(second)
	f.goThrough(expiredCertificate())
	f.goThrough(invalidRegex())
	f.goThrough(hostConflict())
	f.goThrough(incompatibleImage())
	for _, l := range load {
		l.Stop("a gateway in every trouble")
	}
	if cluster.Local {
		f.goThrough(pausedReplica())
	}
	f.wasTruthful()
}

// goThrough gets the gateway into a trouble and out of it.
func (f *gatewayFixture) goThrough(trouble gatewayTrouble) {
	f.Helper()
	if trouble.prepare != nil {
		trouble.prepare(f)
	}
	f.promptly(trouble.reason+" is named", func() { trouble.cause(f) }, trouble.says...)
	if trouble.meanwhile != nil {
		trouble.meanwhile(f)
	}
	f.promptly(trouble.reason+" is cleared", func() { trouble.mend(f) }, gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, ""))
}

// troubledGateway has one good route, and a certificate.
func (f *gatewayFixture) troubledGateway() *slipwayv1alpha1.APIGateway {
	return &slipwayv1alpha1.APIGateway{
		ObjectMeta: metav1.ObjectMeta{Name: gatewayName},
		Spec: slipwayv1alpha1.APIGatewaySpec{
			Replicas: ptr(int32(2)),
			Routes:   []slipwayv1alpha1.Route{{Name: "good", Path: "/good", BackendService: &slipwayv1alpha1.BackendService{Name: appName, Port: 8080}}},
			TLS:      []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "tls"}}},
			// Other gateways of the cluster have routes for any host, too.
			Expose: &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeClusterIP},
		},
	}
}

// rival has a host, and no pods.
func (f *gatewayFixture) rival() *slipwayv1alpha1.APIGateway {
	rival := f.troubledGateway()
	rival.Name = rivalName
	rival.Spec = slipwayv1alpha1.APIGatewaySpec{Replicas: ptr(int32(0)), Routes: rival.Spec.Routes, Expose: f.exposedByIngress()}
	rival.Spec.Routes[0].Host = takenHost
	return rival
}

// exposedByIngress is the same place for all gateways of the test, and for no other.
func (f *gatewayFixture) exposedByIngress() *slipwayv1alpha1.Expose {
	return &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeIngress, IngressClassName: ptr(f.Namespace)}
}

func (f *gatewayFixture) tlsSecret(name string, c *certificate) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS, Data: c.data}
}

// routeTroubles are those of a Service: one after the other, all with the same route.
func routeTroubles() []gatewayTrouble {
	refers := func(reason string) []gatewayCheck {
		return []gatewayCheck{
			routeNotLive("bad", reason),
			gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRoutesNotLive),
			gatewayIs(slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, reason),
		}
	}
	port := func(port int32) func(*gatewayFixture) {
		return func(f *gatewayFixture) { f.editService(func(s *corev1.ServiceSpec) { s.Ports[0].Port = port }) }
	}
	selects := func(app string) func(*gatewayFixture) {
		return func(f *gatewayFixture) {
			f.editService(func(s *corev1.ServiceSpec) { s.Selector = map[string]string{slipwayv1alpha1.LabelWebApp: app} })
		}
	}
	return []gatewayTrouble{
		{
			reason: slipwayv1alpha1.ReasonBackendNotFound,
			cause: func(f *gatewayFixture) {
				f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) {
					s.Routes = append(s.Routes, slipwayv1alpha1.Route{Name: "bad", Path: "/bad", BackendService: &slipwayv1alpha1.BackendService{Name: "other", Port: 9090}})
				})
			},
			says: refers(slipwayv1alpha1.ReasonBackendNotFound),
			mend: func(f *gatewayFixture) {
				f.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.ServiceSpec{
					Selector: map[string]string{slipwayv1alpha1.LabelWebApp: appName},
					Ports:    []corev1.ServicePort{{Port: 9090, TargetPort: intstr.FromInt32(8080)}},
				}})
			},
		},
		{reason: slipwayv1alpha1.ReasonPortNotFound, cause: port(9091), says: refers(slipwayv1alpha1.ReasonPortNotFound), mend: port(9090)},
		{
			reason: slipwayv1alpha1.ReasonNoEndpoints, cause: selects("nobody"), mend: selects(appName),
			says: []gatewayCheck{
				routeNotLive("bad", slipwayv1alpha1.ReasonNoEndpoints),
				gatewayIs(slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionTrue, ""),
			},
		},
	}
}

// secretTroubles are those of a Secret of a route, and of a certificate, which ends with
// another one than it began with.
func secretTroubles(next *certificate) []gatewayTrouble {
	return []gatewayTrouble{
		{
			reason: slipwayv1alpha1.ReasonSecretNotFound,
			cause: func(f *gatewayFixture) {
				f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) {
					s.Routes[1].Auth = &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: "keys"}}}
				})
			},
			says: []gatewayCheck{
				routeNotLive("bad", slipwayv1alpha1.ReasonSecretNotFound),
				gatewayIs(slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, slipwayv1alpha1.ReasonSecretNotFound),
			},
			meanwhile: func(f *gatewayFixture) { f.refusesWith(http.StatusInternalServerError, apiKey) },
			mend: func(f *gatewayFixture) {
				hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(apiKey)))
				f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"client": hash}})
			},
		},
		{
			reason: slipwayv1alpha1.ReasonInvalidCertificate,
			// The route of the trouble before asks for the key by now.
			prepare: func(f *gatewayFixture) { f.refusesWith(http.StatusUnauthorized, "") },
			cause: func(f *gatewayFixture) {
				f.editTLS("tls", &certificate{data: map[string][]byte{corev1.TLSCertKey: []byte("no certificate"), corev1.TLSPrivateKeyKey: []byte("no key")}})
			},
			says: []gatewayCheck{
				gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalidCertificate),
				gatewayIs(slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalidCertificate),
			},
			mend: func(f *gatewayFixture) { f.editTLS("tls", next) },
		},
	}
}

// expiredCertificate happens without anybody doing anything: a second certificate is good
// for a few seconds.
func expiredCertificate() gatewayTrouble {
	const host = "soon.example.com"
	return gatewayTrouble{
		reason: slipwayv1alpha1.ReasonCertificateExpired,
		prepare: func(f *gatewayFixture) {
			soon := f.newCertificateUntil(host, time.Now().Add(10*time.Second))
			f.Create(f.tlsSecret("soon", soon))
			f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) {
				s.TLS = append(s.TLS, slipwayv1alpha1.GatewayTLS{SecretRef: slipwayv1alpha1.LocalReference{Name: "soon"}})
			})
			f.waitGateway(gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, ""))
			<-time.After(time.Until(soon.leaf.NotAfter))
		},
		cause: func(*gatewayFixture) {}, // time passes
		says: []gatewayCheck{
			gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonCertificateExpired),
			gatewayIs(slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, slipwayv1alpha1.ReasonCertificateExpired),
		},
		mend: func(f *gatewayFixture) { f.editTLS("soon", f.newCertificate(host)) },
	}
}

// hostConflict comes in while the webhook is not there, too.
func hostConflict() gatewayTrouble {
	return gatewayTrouble{
		reason: slipwayv1alpha1.ReasonHostConflict,
		cause: func(f *gatewayFixture) {
			f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) {
				s.Expose, s.Routes[1].Host = f.exposedByIngress(), takenHost
			})
		},
		says: []gatewayCheck{
			routeNotLive("bad", slipwayv1alpha1.ReasonHostConflict),
			gatewayIs(slipwayv1alpha1.ConditionAccepted, metav1.ConditionFalse, slipwayv1alpha1.ReasonHostConflict),
		},
		mend: func(f *gatewayFixture) {
			if err := cluster.Delete(f.Context(), mustGet(f.fixture, rivalName, &slipwayv1alpha1.APIGateway{})); err != nil {
				f.Fatal(err)
			}
		},
	}
}

// invalidRegex comes in although the webhook refuses it: while the webhook is not there.
func invalidRegex() gatewayTrouble {
	regex := func(s *slipwayv1alpha1.APIGatewaySpec) {
		s.Routes[1].Path, s.Routes[1].PathType = "/(", slipwayv1alpha1.PathRegularExpression
	}
	return gatewayTrouble{
		reason: slipwayv1alpha1.ReasonInvalidRegex,
		prepare: func(f *gatewayFixture) {
			f.Eventually(func() error {
				gateway := mustGet(f.fixture, gatewayName, &slipwayv1alpha1.APIGateway{})
				regex(&gateway.Spec)
				err := cluster.Update(f.Context(), gateway, client.DryRunAll)
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.routes[1]") {
					return fmt.Errorf("the answer to an expression that does not compile is %q, want it refused with the field", fmt.Sprint(err))
				}
				return nil
			})
			f.removeWebhook()
		},
		cause: func(f *gatewayFixture) { f.editGateway(regex) },
		says: []gatewayCheck{
			routeNotLive("bad", slipwayv1alpha1.ReasonInvalidRegex),
			gatewayIs(slipwayv1alpha1.ConditionAccepted, metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalidRegex),
			gatewayIs(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonInvalidRegex),
		},
		mend: func(f *gatewayFixture) {
			f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) { s.Routes[1].Path = "/bad|/worse" })
		},
	}
}

// incompatibleImage runs a program that knows nothing of gateways. The pods that serve
// are not taken away for it.
func incompatibleImage() gatewayTrouble {
	return gatewayTrouble{
		reason: slipwayv1alpha1.ReasonImageIncompatible,
		prepare: func(f *gatewayFixture) {
			f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) { s.Image = cluster.DemoImage })
			f.Eventually(func() error { // from when it runs, it can be known
				for _, pod := range f.gatewayPods() {
					if pod.Spec.Containers[0].Image == cluster.DemoImage && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil {
						return nil
					}
				}
				return errors.New("no pod runs the image")
			})
		},
		cause: func(*gatewayFixture) {}, // the image runs
		says: []gatewayCheck{
			gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonImageIncompatible),
			gatewayIs(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, slipwayv1alpha1.ReasonImageIncompatible),
			gatewayIs(slipwayv1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
		},
		mend: func(f *gatewayFixture) { f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) { s.Image = "" }) },
	}
}

// pausedReplica does not see a change that the other one serves.
func pausedReplica() gatewayTrouble {
	var paused *corev1.Pod
	return gatewayTrouble{
		reason: slipwayv1alpha1.ReasonReplicaBehind,
		cause: func(f *gatewayFixture) {
			paused = &f.gatewayPods()[0]
			if err := cluster.PauseGateway(paused); err != nil {
				f.Fatal(err)
			}
			f.Cleanup(func() { _ = cluster.ResumeGateway(paused) })
			f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) { s.Routes = s.Routes[:1] })
		},
		says: []gatewayCheck{
			gatewayIs(slipwayv1alpha1.ConditionProgrammed, metav1.ConditionFalse, slipwayv1alpha1.ReasonReplicaBehind),
			gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonReplicaBehind),
		},
		mend: func(f *gatewayFixture) {
			if err := cluster.ResumeGateway(paused); err != nil {
				f.Fatal(err)
			}
		},
	}
}

// refusesWith asks the bad route, with a key or without, and wants a refusal.
func (f *gatewayFixture) refusesWith(status int, key string) {
	f.Helper()
	request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, badURL, http.NoBody)
	if err != nil {
		f.Fatal(err)
	}
	if key != "" {
		request.Header.Set("X-API-Key", key)
	}
	response, err := f.through().Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != status {
		f.Errorf("%s is answered with %s, want %d", badURL, response.Status, status)
	}
}

// serves waits until every one of many handshakes gets the certificate.
func (f *gatewayFixture) serves(c *certificate) {
	f.Helper()
	through := f.through(c)
	f.Eventually(func() error {
		for range 10 {
			response, err := through.Get(secureURL)
			if err != nil {
				return err
			}
			_ = response.Body.Close()
			if state := response.TLS; !servedIn(state, c) {
				return errors.New("another certificate is served")
			}
		}
		return nil
	})
}

func servedIn(state *tls.ConnectionState, c *certificate) bool {
	return state != nil && len(state.PeerCertificates) > 0 && bytes.Equal(state.PeerCertificates[0].Raw, c.leaf.Raw)
}

// editService changes the Service of the bad route.
func (f *gatewayFixture) editService(change func(*corev1.ServiceSpec)) {
	f.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: f.Namespace}}
	update(f.fixture, service, func(s *corev1.Service) { change(&s.Spec) })
}

// editTLS replaces the certificate in a Secret.
func (f *gatewayFixture) editTLS(name string, c *certificate) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Namespace}}
	update(f.fixture, secret, func(s *corev1.Secret) { s.Data = c.data })
}

// removeWebhook has the operator validate nothing until the test ends.
func (f *gatewayFixture) removeWebhook() {
	f.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := cluster.Get(f.Context(), types.NamespacedName{Name: "slipway.dev"}, configuration); err != nil {
		f.Fatal(err)
	}
	if err := cluster.Delete(f.Context(), configuration.DeepCopy()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		configuration.ResourceVersion, configuration.UID = "", ""
		if err := cluster.Create(context.Background(), configuration); err != nil { // the test's own context has ended
			f.Errorf("restore the webhook: %v", err)
		}
	})
	// The API server notices a moment later.
	f.Eventually(func() error {
		gateway := f.troubledGateway()
		gateway.Name, gateway.Namespace = "probe", f.Namespace
		gateway.Spec.Routes[0].Path, gateway.Spec.Routes[0].PathType = "/(", slipwayv1alpha1.PathRegularExpression
		return cluster.Create(f.Context(), gateway, client.DryRunAll)
	})
}
