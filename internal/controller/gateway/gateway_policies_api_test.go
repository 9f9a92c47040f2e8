//go:build apitest

package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

func keyHash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return []byte("sha256:" + hex.EncodeToString(sum[:]))
}

// attach is a policy that asks for the keys in a Secret.
func attach(namespace, name, kind, target, section, secret string) *slipwayv1alpha1.GatewayPolicy {
	return &slipwayv1alpha1.GatewayPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: slipwayv1alpha1.GatewayPolicySpec{
			TargetRefs: []slipwayv1alpha1.PolicyTargetReference{{Kind: kind, Name: target, SectionName: section}},
			Defaults: &slipwayv1alpha1.GatewayPolicySettings{
				Auth: &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: secret}}},
			},
		},
	}
}

func keys(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// waitPolicyOf waits for a condition in our entry of a policy, and returns its message.
func (f *fixture) waitPolicyOf(policy *slipwayv1alpha1.GatewayPolicy, conditionType string, status metav1.ConditionStatus, reason string) (message string) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(policy); err != nil {
			return err
		}
		for _, entry := range policy.Status.Ancestors {
			if entry.ControllerName == string(gateway.Controller) {
				if c := meta.FindStatusCondition(entry.Conditions, conditionType); c != nil {
					message = c.Message
				}
				return has(entry.Conditions, policy.Generation, conditionType, status, reason)
			}
		}
		return errors.New("no entry of ours")
	})
	return message
}

// copied is what the pods can read of a Secret of another namespace.
func (f *fixture) copied(g *gatewayv1.Gateway, of *corev1.Secret, want map[string][]byte) {
	f.Helper()
	environment.Eventually(f, func() error {
		copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
		if err := client.IgnoreNotFound(f.get(copies)); err != nil {
			return err
		}
		got, _ := copied.FindCredentials(copies, client.ObjectKeyFromObject(of))
		if diff := cmp.Diff(want, got.Data); diff != "" {
			return fmt.Errorf("the copy (-want +got):\n%s", diff)
		}
		for key, content := range copies.Data {
			if strings.Contains(string(content), "private") {
				f.Errorf("%s holds what is no hash", key)
			}
		}
		return nil
	})
}

func TestAGatewayPolicyIsJudged(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	const accepted, live = slipwayv1alpha1.ConditionPolicyAccepted, slipwayv1alpha1.ConditionPolicyLive
	g, route := f.gateway(), f.route("shop", "app")
	policy, younger := attach(f.namespace, "keys", "HTTPRoute", "shop", "", "keys"), attach(f.namespace, "keys-b", "HTTPRoute", "shop", "", "keys")
	section, foreign := attach(f.namespace, "section", "Gateway", g.Name, "no-such", "keys"), attach(f.namespace, "foreign", "HTTPRoute", "of-others", "", "keys")
	f.create(f.class, g, service(f.namespace, "app"), route, policy)
	f.create(younger, section, foreign)
	if got := f.waitPolicyOf(policy, accepted, "False", slipwayv1alpha1.ReasonPolicyInvalid); !strings.Contains(got, `spec.defaults.auth.apiKey.secretRef: Secret "keys" does not exist`) {
		t.Errorf("without the Secret it says %q", got)
	}
	secret := keys(f.namespace, "keys", map[string][]byte{"alice": keyHash("alice")})
	f.create(secret)
	f.waitPolicyOf(policy, accepted, "True", slipwayv1alpha1.ReasonPolicyAccepted)
	f.waitPolicyOf(policy, live, "False", gateway.ReasonNoReplica)
	f.waitPolicyOf(younger, accepted, "False", slipwayv1alpha1.ReasonPolicyConflicted)
	f.waitPolicyOf(section, accepted, "False", slipwayv1alpha1.ReasonPolicyTargetNotFound)
	environment.Eventually(t, func() error {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: desired.Name(g), Namespace: f.namespace}}
		if err := f.get(role); err != nil {
			return err
		}
		if got := strings.Join(role.Rules[0].ResourceNames, " "); !strings.Contains(got, "keys") {
			return fmt.Errorf("the pods may read %q", got)
		}
		return nil
	})
	update(f, secret, func(s *corev1.Secret) { s.Data["alice"] = []byte("private") })
	if got := f.waitPolicyOf(policy, accepted, "False", slipwayv1alpha1.ReasonPolicyInvalid); strings.Contains(got, "private") {
		t.Errorf("it tells the Secret: %q", got)
	}
	update(f, policy, func(p *slipwayv1alpha1.GatewayPolicy) { p.Spec.TargetRefs[0].Name = "of-others" })
	for _, of := range []*slipwayv1alpha1.GatewayPolicy{policy, foreign} {
		f.waitEntries(of, `HTTPRoute/of-others: spec.targetRefs: HTTPRoute "of-others" does not exist in this namespace`)
	}
	f.delete(g)
	f.waitEntries(younger, `HTTPRoute/shop: spec.targetRefs: HTTPRoute "shop" is attached to no Gateway of Slipway`)
	f.waitEntries(section, `Gateway/edge: spec.targetRefs: Gateway "edge" does not exist in this namespace`)
}

// waitEntries waits until the entries of a policy are these and no others: what each is about, and why the policy is not accepted.
func (f *fixture) waitEntries(policy *slipwayv1alpha1.GatewayPolicy, want ...string) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(policy); err != nil {
			return err
		}
		var got []string
		for _, entry := range policy.Status.Ancestors {
			accepted := meta.FindStatusCondition(entry.Conditions, slipwayv1alpha1.ConditionPolicyAccepted)
			got = append(got, fmt.Sprintf("%s/%s: %s", entry.AncestorRef.Kind, entry.AncestorRef.Name, accepted.Message))
			if accepted.ObservedGeneration != policy.Generation || accepted.Status == metav1.ConditionTrue {
				return fmt.Errorf("it says %+v", accepted)
			}
			if live := meta.FindStatusCondition(entry.Conditions, slipwayv1alpha1.ConditionPolicyLive); live.Status != metav1.ConditionFalse {
				return fmt.Errorf("it is live: %+v", live)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("entries of %q (-want +got):\n%s", policy.Name, diff)
		}
		return nil
	})
}

// Each kind of target: what does not exist, or is served by others, is told, and not any more when a Gateway of ours has it.
func TestAPolicyIsToldWhichTargetsNobodyHas(t *testing.T) {
	f := newFixture(t)
	counter := &requests.Counter{}
	f.startOperator(counter.Watch)
	other := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-others"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/others"}}
	f.create(f.class, other)
	policy := attach(f.namespace, "all", "Gateway", "edge", "", "keys")
	policy.Spec.Defaults = &slipwayv1alpha1.GatewayPolicySettings{RateLimit: &slipwayv1alpha1.RateLimit{Requests: 5}}
	policy.Spec.TargetRefs = append(policy.Spec.TargetRefs, []slipwayv1alpha1.PolicyTargetReference{{Kind: "ListenerSet", Name: "more"}, {Kind: "HTTPRoute", Name: "web"}, {Kind: "GRPCRoute", Name: "calls"}}...)
	f.create(policy)
	f.waitEntries(policy, `Gateway/edge: spec.targetRefs: Gateway "edge" does not exist in this namespace`, `ListenerSet/more: spec.targetRefs: ListenerSet "more" does not exist in this namespace`,
		`HTTPRoute/web: spec.targetRefs: HTTPRoute "web" does not exist in this namespace`, `GRPCRoute/calls: spec.targetRefs: GRPCRoute "calls" does not exist in this namespace`)

	foreign := f.gateway(func(g *gatewayv1.Gateway) {
		g.Spec.GatewayClassName, g.Spec.AllowedListeners = gatewayv1.ObjectName(other.Name), openToSets()
	})
	calls := &gatewayv1.GRPCRoute{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "calls"}, Spec: gatewayv1.GRPCRouteSpec{CommonRouteSpec: gatewayv1.CommonRouteSpec{
		ParentRefs: []gatewayv1.ParentReference{{Kind: ptr(gatewayv1.Kind("ListenerSet")), Name: "more"}},
	}}}
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "more"}, Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Name: "edge"}, Listeners: []gatewayv1.ListenerEntry{{Name: "more", Port: 8080, Protocol: gatewayv1.HTTPProtocolType}},
	}}
	f.create(foreign, service(f.namespace, "app"), f.route("web", "app"), set, calls)
	f.waitEntries(policy, `Gateway/edge: spec.targetRefs: Gateway "edge" is not of a class of Slipway`, `ListenerSet/more: spec.targetRefs: ListenerSet "more" is attached to no Gateway of Slipway`,
		`HTTPRoute/web: spec.targetRefs: HTTPRoute "web" is attached to no Gateway of Slipway`, `GRPCRoute/calls: spec.targetRefs: GRPCRoute "calls" is attached to no Gateway of Slipway`)

	update(f, foreign, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(f.class.Name) })
	environment.Eventually(t, func() error {
		if err := f.get(policy); err != nil {
			return err
		}
		if is := policy.Status.Ancestors; len(is) != 1 || is[0].AncestorRef.Kind != "Gateway" {
			return fmt.Errorf("it says %+v", is)
		}
		return has(policy.Status.Ancestors[0].Conditions, policy.Generation, slipwayv1alpha1.ConditionPolicyAccepted, "True", slipwayv1alpha1.ReasonPolicyAccepted)
	})
	update(f, policy, func(p *slipwayv1alpha1.GatewayPolicy) {
		p.Spec.TargetRefs = []slipwayv1alpha1.PolicyTargetReference{{Kind: "HTTPRoute", Name: "none"}}
	})
	f.waitEntries(policy, `HTTPRoute/none: spec.targetRefs: HTTPRoute "none" does not exist in this namespace`)
	made := f.asked(counter, func() { f.touch(policy) })
	if made.Writes()+made.Sum(requests.Reads, requests.Lists) != 0 {
		t.Errorf("another look without anything to do cost %v, want nothing", made)
	}
}

// openToSets lets ListenerSets of the same namespace in.
func openToSets() *gatewayv1.AllowedListeners {
	same := gatewayv1.NamespacesFromSame
	return &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &same}}
}

// acrossNamespaces makes a Gateway that is open to all namespaces, and a route of another one to it.
func (f *fixture) acrossNamespaces() (*gatewayv1.Gateway, *gatewayv1.HTTPRoute) {
	g := f.gateway(func(g *gatewayv1.Gateway) {
		all := gatewayv1.NamespacesFromAll
		for i := range g.Spec.Listeners {
			g.Spec.Listeners[i].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}}
		}
	})
	route := f.route("shop", "app", func(r *gatewayv1.HTTPRoute) {
		r.Namespace = f.other
		r.Spec.ParentRefs[0].Namespace = ptr(gatewayv1.Namespace(f.namespace))
	})
	return g, route
}

// A Secret of another namespace is copied as long as a policy needs it, and only if it is what it should be.
func TestWhomAPolicyOfAnotherNamespaceLetsInIsCopied(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, route := f.acrossNamespaces()
	hashes := map[string][]byte{"alice": keyHash("alice")}
	secret, policy := keys(f.other, "keys", hashes), attach(f.other, "keys", "HTTPRoute", "shop", "", "keys")
	f.create(f.class, g, service(f.other, "app"), route, secret, policy)
	const accepted = slipwayv1alpha1.ConditionPolicyAccepted
	f.waitPolicyOf(policy, accepted, "True", slipwayv1alpha1.ReasonPolicyAccepted)
	f.copied(g, secret, hashes)
	more := map[string][]byte{"bob": keyHash("bob")}
	update(f, secret, func(s *corev1.Secret) { s.Data = more })
	f.copied(g, secret, more)
	update(f, secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"tls.key": []byte("private")} })
	f.waitPolicyOf(policy, accepted, "False", slipwayv1alpha1.ReasonPolicyInvalid)
	f.copied(g, secret, nil)
	large := map[string][]byte{}
	for i := range 1000 {
		large[fmt.Sprint("client", i)] = keyHash(fmt.Sprint(i))
	}
	update(f, secret, func(s *corev1.Secret) { s.Data = large })
	if got := f.waitPolicyOf(policy, accepted, "False", slipwayv1alpha1.ReasonPolicyInvalid); !strings.Contains(got, "is not copied to the Gateway") {
		environment.Eventually(t, func() error {
			if got := f.waitPolicyOf(policy, accepted, "False", slipwayv1alpha1.ReasonPolicyInvalid); !strings.Contains(got, "is not copied to the Gateway") {
				return fmt.Errorf("it says %q", got)
			}
			return nil
		})
	}
	f.copied(g, secret, nil)
	update(f, secret, func(s *corev1.Secret) { s.Data = hashes })
	f.copied(g, secret, hashes)
	f.delete(policy)
	f.copied(g, secret, nil)
}

// The Service that a policy has asked is in its namespace, and needs no grant. What is wrong with it is reported at once.
func TestTheServiceThatAPolicyAsksIsFollowed(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, route := f.acrossNamespaces()
	policy := attach(f.other, "asks", "HTTPRoute", "shop", "", "")
	policy.Spec.Defaults.Auth = &slipwayv1alpha1.Auth{External: &slipwayv1alpha1.ExternalAuth{BackendService: slipwayv1alpha1.BackendService{Name: "auth", Port: 8080}}}
	f.create(f.class, g, service(f.other, "app"), service(f.namespace, "auth"), route, policy)
	const accepted = slipwayv1alpha1.ConditionPolicyAccepted
	missing := `spec.defaults.auth.external.backendService: Service "auth" does not exist; requests are answered with 503`
	if got := f.waitPolicyOf(policy, accepted, "False", slipwayv1alpha1.ReasonBackendNotFound); got != missing {
		t.Errorf("without the Service it says %q", got)
	}
	auth := service(f.other, "auth")
	f.create(auth)
	f.waitPolicyOf(policy, accepted, "True", slipwayv1alpha1.ReasonPolicyAccepted)
	began := time.Now()
	f.delete(auth)
	f.waitPolicyOf(policy, accepted, "False", slipwayv1alpha1.ReasonBackendNotFound)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("that the Service is gone was told after %v", took)
	}
	f.create(service(f.other, "auth"))
	f.waitPolicyOf(policy, accepted, "True", slipwayv1alpha1.ReasonPolicyAccepted)
	update(f, policy, func(p *slipwayv1alpha1.GatewayPolicy) { p.Spec.Defaults.Auth.External.BackendService.Port = 81 })
	f.waitPolicyOf(policy, accepted, "False", slipwayv1alpha1.ReasonPortNotFound)
}

// What the pods say decides whether a policy is live. After that it costs nothing.
func TestAGatewayPolicyIsLiveWhenThePodsUseIt(t *testing.T) {
	f := newFixture(t)
	counter := &requests.Counter{}
	f.startOperator(counter.Watch)
	const live = slipwayv1alpha1.ConditionPolicyLive
	secret := keys(f.namespace, "keys", map[string][]byte{"alice": keyHash("alice")})
	g, route, policy := f.gateway(), f.route("shop", "app"), attach(f.namespace, "keys", "HTTPRoute", "shop", "", "keys")
	f.create(f.class, g, service(f.namespace, "app"), route, secret, policy)
	f.running(g)
	uses := func() {
		f.Helper()
		if err := errors.Join(f.get(g), f.get(secret), f.get(policy)); err != nil {
			f.Fatal(err)
		}
		f.board.Publish(document.Document{
			UID: g.UID, Generation: g.Generation, View: &document.View{Current: true}, Listeners: []document.ServedListener{web()},
			Routes: []string{
				document.RouteDigest(route.UID, route.Generation),
				document.PolicyDigest(policy.UID, policy.Generation, []string{client.ObjectKeyFromObject(secret).String() + "@" + secret.ResourceVersion}),
			},
		})
	}
	f.serve(g, []document.ServedListener{web()}, route)
	f.waitPolicyOf(policy, live, "False", gateway.ReasonReplicaBehind)
	uses()
	f.waitPolicyOf(policy, live, "True", gateway.ReasonLive)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	f.asked(counter, func() {}) // until nothing is under way any more: a write that meets what is touched is made twice
	made := f.asked(counter, func() { f.touch(g, route) })
	if made.Writes()+made.Sum(requests.Reads, requests.Lists) != 0 {
		t.Errorf("another look without anything to do cost %v, want nothing", made)
	}
	update(f, secret, func(s *corev1.Secret) { s.Data["bob"] = keyHash("bob") })
	f.waitPolicyOf(policy, live, "False", gateway.ReasonReplicaBehind)
	made = f.asked(counter, func() {
		update(f, policy, func(p *slipwayv1alpha1.GatewayPolicy) {
			p.Spec.Defaults.RateLimit = &slipwayv1alpha1.RateLimit{Requests: 5}
		})
		uses()
		f.waitPolicyOf(policy, live, "True", gateway.ReasonLive)
	})
	if made.ByKind()["patch gatewaypolicies/status"] != 1 || made.Writes() != 1 {
		t.Errorf("a change of a policy cost %v, want 1 status", made)
	}
	// A route says when a policy keeps it from being served.
	f.delete(secret)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionFalse, gateway.ReasonPolicyInvalid)
}

// An operator that is newer than the definitions does without the kind, and finds it when it is there.
func TestDefinitionsWithoutGatewayPolicies(t *testing.T) {
	before := env
	bare, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	env = bare
	t.Cleanup(func() {
		env = before
		if err := bare.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("without", func(t *testing.T) {
		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind("CustomResourceDefinition")
		definition.SetName("gatewaypolicies.slipway.dev")
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.Delete(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		environment.Eventually(t, func() error {
			err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(definition), definition.DeepCopy())
			if !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("the definition is still there"), err)
			}
			return nil
		})
		f := newFixture(t)
		first := f.startOperator(nil)
		g, route := f.gateway(), f.route("shop", "app")
		f.create(f.class, g, service(f.namespace, "app"), route)
		f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
		f.waitRoute(route, string(gatewayv1.RouteConditionAccepted), metav1.ConditionTrue, string(gatewayv1.RouteReasonAccepted))
		first.Stop(t)

		definition.SetResourceVersion("")
		definition.SetUID("")
		unstructured.RemoveNestedField(definition.Object, "status")
		f.create(definition)
		policy := attach(f.namespace, "keys", "HTTPRoute", "shop", "", "keys")
		environment.Eventually(t, func() error { return env.Client.Create(t.Context(), policy) })
		f.startOperator(nil)
		f.waitPolicyOf(policy, slipwayv1alpha1.ConditionPolicyAccepted, "False", slipwayv1alpha1.ReasonPolicyInvalid)
	})
}
