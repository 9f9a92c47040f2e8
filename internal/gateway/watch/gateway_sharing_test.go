package watch

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
)

const (
	sharedLimit   = `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: {rateLimit: {requests: 10, count: Gateway}}}`
	limitsOfOther = `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: {rateLimit: {requests: 10}}}`
)

// replicas puts the Service of the Gateway's own pods beside it, with their endpoints, and a Service of another Gateway.
func (f *gatewayFixture) replicas(ready []string, draining ...string) {
	f.t.Helper()
	own, other := serviceObject("edge", web), serviceObject("other", web)
	endpoints, foreign := sliceObject("edge", "edge-1", ready...), sliceObject("other", "other-1", "10.0.9.9")
	for _, address := range draining {
		no, yes := false, true
		endpoints.Endpoints = append(endpoints.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes},
		})
	}
	for _, object := range []metav1.Object{own, other, endpoints, foreign} {
		object.SetNamespace("infra")
	}
	f.must(f.services.watched["infra"].store.Replace([]any{own, other}, ""))
	f.must(f.slices.watched["infra"].store.Replace([]any{endpoints, foreign}, ""))
	f.look(f.t.Context())
}

// secretsInCommon sets the content of the Secret beside the pods.
func (f *gatewayFixture) secretsInCommon(data map[string][]byte) {
	f.t.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-certificates"}, Data: data}
	f.must(f.secrets.watched["edge-certificates"].store.Replace([]any{object}, ""))
	f.look(f.t.Context())
}

// newSharingFixture serves a route of namespace a, and remembers what is shared.
func newSharingFixture(t *testing.T) (*gatewayFixture, *toldSharing) {
	t.Helper()
	f, shared := newGatewayFixture(t), &toldSharing{}
	f.options.Shared = shared
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	f.backend("a")
	f.look(t.Context())
	return f, shared
}

func TestThePodsOfAGatewayAreConnectedWhileAPolicyNeedsIt(t *testing.T) {
	f, shared := newSharingFixture(t)
	if diff := cmp.Diff(peers.Settings{}, shared.settings); diff != "" || f.secrets.watched["edge-certificates"] != nil || f.watchedNamespaces() != "a" {
		t.Errorf("without a shared limit it reads %q: -want +got:\n%s", f.watchedNamespaces(), diff)
	}
	f.attach("a", "p", 1, sharedLimit)
	if got := f.watchedNamespaces(); got != "a infra" {
		t.Fatalf("with one it watches %q", got)
	}
	f.replicas([]string{"10.0.0.2", "10.0.0.1"}, "10.0.0.3")
	secret := bytes.Repeat([]byte("k"), copied.SecretBytes)
	f.secretsInCommon(map[string][]byte{copied.ReplicasKey: secret, copied.SessionsKey: bytes.Repeat([]byte("s"), copied.SecretBytes)})
	want := peers.Settings{Wanted: true, Secret: secret, Addresses: []string{"10.0.0.1:15022", "10.0.0.2:15022"}}
	if diff := cmp.Diff(want, shared.settings); diff != "" {
		t.Errorf("with one: -want +got:\n%s", diff)
	}
	if limit := f.only().RateLimit; limit == nil || !limit.Shared || len(f.board.Current().Problems) > 0 {
		t.Errorf("the limit is %+v, and it says %+v", limit, f.board.Current().Problems)
	}
	f.replicas(nil, "10.0.0.3")
	if got := strings.Join(shared.settings.Addresses, " "); got != "10.0.0.3:15022" {
		t.Errorf("while no pod is ready, the replicas are %q", got)
	}
	f.attach("a", "p", 2, limitsOfOther)
	f.look(t.Context())
	if shared.settings.Wanted || f.watchedNamespaces() != "a" {
		t.Errorf("without a shared limit the pods stay connected: %+v, and it watches %q", shared.settings, f.watchedNamespaces())
	}
}

// Where the pods do not reach each other, the routes are served, and it is told once, however many policies there are.
func TestALimitThatIsNotSharedIsTold(t *testing.T) {
	f, shared := newSharingFixture(t)
	f.attach("a", "p", 1, sharedLimit)
	f.replicas([]string{"10.0.0.1"})
	f.secretsInCommon(nil)
	f.attach("infra", "q", 1, `{targetRefs: [{kind: Gateway, name: edge}], overrides: {rateLimit: {requests: 5, count: Gateway}}}`)
	shared.trouble, shared.again = "nobody answers", f.clock.Now().Add(time.Second)
	if again := f.look(t.Context()); !again.Equal(shared.again) {
		t.Errorf("it looks again at %v", again)
	}
	got := f.board.Current()
	if len(got.Problems) != 1 || got.Problems[0].Reason != "LimitNotShared" || !strings.HasSuffix(got.Problems[0].Message, "meanwhile: nobody answers") {
		t.Errorf("it says %+v", got.Problems)
	}
	if len(got.Routes) != 3 || f.only().Unavailable != nil {
		t.Errorf("it serves %q", got.Routes)
	}
	shared.trouble = ""
	f.look(t.Context())
	if got := f.board.Current().Problems; len(got) > 0 {
		t.Errorf("in the end it says %+v", got)
	}
}

// A Secret of another name leads to no Service: the pods then count as one alone, and are not those of a Service of any name.
func TestWithoutAServiceOfItsOwnAGatewayHasNoReplicas(t *testing.T) {
	f, shared := newSharingFixture(t)
	f.options.BorrowedCertificates = "copies"
	f.attach("a", "p", 1, sharedLimit)
	f.must(f.secrets.watched["copies"].store.Replace(nil, ""))
	f.look(t.Context())
	if diff := cmp.Diff(peers.Settings{Wanted: true}, shared.settings); diff != "" || f.watchedNamespaces() != "a" {
		t.Errorf("it watches %q: -want +got:\n%s", f.watchedNamespaces(), diff)
	}
}
