//go:build apitest

package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// allowing lets ListenerSets of some namespaces add listeners.
func allowing(from gatewayv1.FromNamespaces) func(*gatewayv1.Gateway) {
	return func(g *gatewayv1.Gateway) {
		g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &from}}
	}
}

// set is a ListenerSet of the Gateway, in a namespace.
func (f *fixture) set(namespace, name string, listeners ...gatewayv1.ListenerEntry) *gatewayv1.ListenerSet {
	return &gatewayv1.ListenerSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: gatewayv1.ListenerSetSpec{
			ParentRef: gatewayv1.ParentGatewayReference{Name: "edge", Namespace: ptr(gatewayv1.Namespace(f.namespace))}, Listeners: listeners,
		},
	}
}

func plainEntry(name string, port int32, host string) gatewayv1.ListenerEntry {
	return gatewayv1.ListenerEntry{Name: gatewayv1.SectionName(name), Port: port, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr(gatewayv1.Hostname(host))}
}

func secureEntry(name string, port int32, host string, ref gatewayv1.SecretObjectReference) gatewayv1.ListenerEntry {
	entry := plainEntry(name, port, host)
	entry.Protocol, entry.TLS = gatewayv1.HTTPSProtocolType, &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{ref}}
	return entry
}

// servedEntry is a listener of a set as a pod serves it.
func servedEntry(set *gatewayv1.ListenerSet, name string, port int32, secure bool, host string, parts ...string) document.ServedListener {
	return document.ServedListener{
		Name: set.Namespace + "/" + set.Name + "/" + name, Digest: document.ListenerDigest(port, secure, host, parts),
	}
}

// waitSet waits for a condition of a set.
func (f *fixture) waitSet(set *gatewayv1.ListenerSet, conditionType gatewayv1.ListenerSetConditionType, status metav1.ConditionStatus, reason gatewayv1.ListenerSetConditionReason) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(set); err != nil {
			return err
		}
		return has(set.Status.Conditions, set.Generation, string(conditionType), status, string(reason))
	})
}

// waitEntry waits for a condition of a listener of a set.
func (f *fixture) waitEntry(set *gatewayv1.ListenerSet, name string, conditionType gatewayv1.ListenerConditionType, status metav1.ConditionStatus, reason gatewayv1.ListenerConditionReason) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(set); err != nil {
			return err
		}
		at := slices.IndexFunc(set.Status.Listeners, func(l gatewayv1.ListenerEntryStatus) bool { return string(l.Name) == name })
		if at < 0 {
			return fmt.Errorf("no listener %q in %+v", name, set.Status.Listeners)
		}
		return has(set.Status.Listeners[at].Conditions, set.Generation, string(conditionType), status, string(reason))
	})
}

// waitAttached waits until the Gateway counts its sets.
func (f *fixture) waitAttached(g *gatewayv1.Gateway, want int32) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		if got := g.Status.AttachedListenerSets; got == nil || *got != want {
			return fmt.Errorf("attachedListenerSets is %v, want %d", got, want)
		}
		return nil
	})
}

const (
	setAccepted, setProgrammed     = gatewayv1.ListenerSetConditionAccepted, gatewayv1.ListenerSetConditionProgrammed
	entryAccepted, entryProgrammed = gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerConditionProgrammed
	yes, no                        = metav1.ConditionTrue, metav1.ConditionFalse
	somebodys                      = "example.com/Reviewed"
	parentNotProgrammed            = gatewayv1.ListenerSetConditionReason("ParentNotProgrammed")
)

func TestAListenerSetIsServedAndJudged(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway(allowing(gatewayv1.NamespacesFromSame))
	set := f.set(f.other, "team", plainEntry("own", 80, "team.example.com"), plainEntry("more", 8080, "more.example.com"))
	f.create(f.class, g, set)
	pod := f.running(g)
	f.waitSet(set, setAccepted, no, gatewayv1.ListenerSetReasonNotAllowed)
	f.waitSet(set, setProgrammed, no, gatewayv1.ListenerSetReasonNotAllowed)
	f.waitAttached(g, 0)
	if len(set.Status.Listeners) != 0 {
		t.Errorf("a set that is not allowed has listeners: %+v", set.Status.Listeners)
	}

	// By the label of its namespace it is allowed.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.other}}
	update(f, g, func(g *gatewayv1.Gateway) {
		allowing(gatewayv1.NamespacesFromSelector)(g)
		g.Spec.AllowedListeners.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"listeners": "yes"}}
	})
	update(f, namespace, func(n *corev1.Namespace) { n.Labels["listeners"] = "yes" })
	f.waitSet(set, setAccepted, yes, gatewayv1.ListenerSetReasonAccepted)
	f.waitAttached(g, 1)
	ports := func() []int32 {
		exposed := child(f, g, &corev1.Service{})
		if err := f.get(exposed); err != nil {
			t.Fatal(err)
		}
		var numbers []int32
		for _, p := range exposed.Spec.Ports {
			numbers = append(numbers, p.Port)
		}
		return numbers
	}
	environment.Eventually(t, func() error {
		if got := ports(); !slices.Equal(got, []int32{80, 8080}) {
			return fmt.Errorf("the Service has the ports %v", got)
		}
		return nil
	})

	// What the pods say decides, of each listener.
	own, more := servedEntry(set, "own", 80, false, "team.example.com"), servedEntry(set, "more", 8080, false, "more.example.com")
	f.serve(g, []document.ServedListener{web(), own})
	f.waitEntry(set, "own", entryProgrammed, yes, gatewayv1.ListenerReasonProgrammed)
	f.waitEntry(set, "more", entryProgrammed, no, gatewayv1.ListenerReasonPending)
	f.waitSet(set, setProgrammed, no, gatewayv1.ListenerSetReasonPending)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, yes, gatewayv1.GatewayReasonProgrammed)
	f.serve(g, []document.ServedListener{web(), own, more})
	f.waitSet(set, setProgrammed, yes, gatewayv1.ListenerSetReasonProgrammed)

	// The conditions of others stay, and a younger set loses.
	updateStatus(f, set, func(s *gatewayv1.ListenerSet) {
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: somebodys, Status: yes, Reason: "Seen", LastTransitionTime: metav1.Now().Rfc3339Copy()})
	})
	younger := f.set(f.other, "younger", plainEntry("taken", 8080, "more.example.com"))
	f.create(younger)
	f.waitEntry(younger, "taken", entryAccepted, no, gatewayv1.ListenerReasonHostnameConflict)
	f.waitEntry(younger, "taken", entryProgrammed, no, gatewayv1.ListenerReasonHostnameConflict)
	f.waitSet(younger, setAccepted, no, gatewayv1.ListenerSetReasonListenersNotValid)
	f.waitSet(younger, setProgrammed, no, gatewayv1.ListenerSetReasonListenersNotValid)
	update(f, set, func(s *gatewayv1.ListenerSet) { s.Spec.Listeners = s.Spec.Listeners[:1] })
	f.waitEntry(younger, "taken", entryAccepted, yes, gatewayv1.ListenerReasonAccepted)
	f.waitAttached(g, 2)
	f.waitSet(set, setProgrammed, yes, gatewayv1.ListenerSetReasonProgrammed)
	if len(set.Status.Listeners) != 1 || meta.FindStatusCondition(set.Status.Conditions, somebodys) == nil {
		t.Errorf("listeners and conditions: %+v", set.Status)
	}

	// Without a pod nothing is served.
	f.delete(pod)
	f.waitSet(set, setProgrammed, no, parentNotProgrammed)

	// A set that leaves the Gateway is not ours, and what others said of it stays.
	update(f, set, func(s *gatewayv1.ListenerSet) { s.Spec.ParentRef.Name = "another" })
	f.waitReleased(set)
	f.waitAttached(g, 1)
	f.delete(g)
	f.waitReleased(younger)
}

// waitReleased waits until nothing in the status of a set is ours.
func (f *fixture) waitReleased(set *gatewayv1.ListenerSet) {
	f.Helper()
	foreign := meta.FindStatusCondition(set.Status.Conditions, somebodys) != nil
	environment.Eventually(f, func() error {
		if err := f.get(set); err != nil {
			return err
		}
		if foreign && meta.FindStatusCondition(set.Status.Conditions, somebodys) == nil {
			f.Fatalf("what somebody else said is gone: %+v", set.Status)
		}
		for _, entry := range set.ManagedFields {
			if entry.Manager == gateway.FieldManager {
				return fmt.Errorf("fields are ours: %s", entry.FieldsV1)
			}
		}
		for _, c := range set.Status.Conditions {
			if c.Status != metav1.ConditionUnknown && c.Type != somebodys {
				return fmt.Errorf("it is still said: %+v", c)
			}
		}
		if len(set.Status.Listeners) > 0 {
			return fmt.Errorf("listeners: %+v", set.Status.Listeners)
		}
		return nil
	})
}

// A route has an entry for each set that it names, as long as the set is there.
func TestTheRoutesOfAListenerSet(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway(allowing(gatewayv1.NamespacesFromAll))
	set := f.set(f.namespace, "team", plainEntry("own", 80, "team.example.com"))
	ref := gatewayv1.ParentReference{Kind: ptr(gatewayv1.Kind("ListenerSet")), Name: "team"}
	both := f.route("both", "app", func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs = append(r.Spec.ParentRefs, ref) })
	only := f.route("only", "app", func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs = []gatewayv1.ParentReference{ref} })
	f.create(f.class, g, service(f.namespace, "app"), both, only, set)
	entries := func(route *gatewayv1.HTTPRoute, want ...string) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get(route); err != nil {
				return err
			}
			var got []string
			for _, p := range route.Status.Parents {
				c := meta.FindStatusCondition(p.Conditions, "Accepted")
				if c == nil || p.ControllerName != gateway.Controller {
					return fmt.Errorf("entry %+v", p)
				}
				got = append(got, fmt.Sprintf("%s %s", p.ParentRef.Name, c.Reason))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				return fmt.Errorf("route %s has the entries %q, want %q", route.Name, got, want)
			}
			return nil
		})
	}
	entries(both, "edge Accepted", "team Accepted")
	entries(only, "team Accepted")
	f.waitSet(set, setAccepted, yes, gatewayv1.ListenerSetReasonAccepted)
	environment.Eventually(t, func() error {
		if err := f.get(set); err != nil {
			return err
		}
		if len(set.Status.Listeners) != 1 || set.Status.Listeners[0].AttachedRoutes != 2 {
			return fmt.Errorf("listeners: %+v", set.Status.Listeners)
		}
		return nil
	})
	update(f, g, allowing(gatewayv1.NamespacesFromNone))
	entries(only, "team NoMatchingParent")
	f.delete(set)
	entries(only)
	entries(both, "edge Accepted")
}

// The certificate of a set of another namespace is copied for the pods, and taken away with what permits it.
func TestTheCertificatesOfListenerSets(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	own, vault := f.certificate(f.other, "own"), f.certificate(f.namespace, "vault")
	g := f.gateway(allowing(gatewayv1.NamespacesFromAll))
	set := f.set(f.other, "team",
		secureEntry("own", 443, "own.example.com", gatewayv1.SecretObjectReference{Name: "own"}),
		secureEntry("vault", 443, "vault.example.com", gatewayv1.SecretObjectReference{Name: "vault", Namespace: ptr(gatewayv1.Namespace(f.namespace))}))
	f.create(f.class, own, vault, g, set)
	f.waitEntry(set, "own", gatewayv1.ListenerConditionResolvedRefs, yes, gatewayv1.ListenerReasonResolvedRefs)
	f.waitEntry(set, "vault", gatewayv1.ListenerConditionResolvedRefs, no, gatewayv1.ListenerReasonRefNotPermitted)
	copied := func(want bool) {
		t.Helper()
		environment.Eventually(t, func() error {
			copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
			if err := client.IgnoreNotFound(f.get(copies)); err != nil {
				return err
			}
			if _, is := copied.Find(copies, types.NamespacedName{Namespace: f.other, Name: "own"}); is != want {
				return fmt.Errorf("the certificate is copied: %t, want %t", is, want)
			}
			return nil
		})
	}
	// mayRead waits until the pods may read a Secret of their namespace, or may not.
	mayRead := func(name string, want bool) {
		t.Helper()
		environment.Eventually(t, func() error {
			role := child(f, g, &rbacv1.Role{})
			if err := f.get(role); err != nil {
				return err
			}
			if is := strings.Contains(fmt.Sprint(role.Rules), name); is != want {
				return fmt.Errorf("the pods may read %s: %t, want %t", name, is, want)
			}
			return nil
		})
	}
	copied(true)
	mayRead("vault", false)
	grant := f.grant()
	grant.Namespace = f.namespace
	grant.Spec.From = []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "ListenerSet", Namespace: gatewayv1.Namespace(f.other)}}
	f.create(grant)
	f.waitEntry(set, "vault", gatewayv1.ListenerConditionResolvedRefs, yes, gatewayv1.ListenerReasonResolvedRefs)
	mayRead("vault", true)
	f.delete(grant)
	f.waitEntry(set, "vault", gatewayv1.ListenerConditionResolvedRefs, no, gatewayv1.ListenerReasonRefNotPermitted)
	mayRead("vault", false)

	f.running(g)
	f.serve(g, []document.ServedListener{web(), servedEntry(set, "own", 443, true, "own.example.com", f.other+"/own@"+own.ResourceVersion)})
	f.waitEntry(set, "own", entryProgrammed, yes, gatewayv1.ListenerReasonProgrammed)
	update(f, own, func(s *corev1.Secret) { s.Data = f.pair() })
	f.waitEntry(set, "own", entryProgrammed, no, gatewayv1.ListenerReasonPending)
	update(f, g, allowing(gatewayv1.NamespacesFromSame))
	copied(false)
	f.waitSet(set, setAccepted, no, gatewayv1.ListenerSetReasonNotAllowed)
	environment.Eventually(t, func() error {
		if err := f.get(set); err != nil {
			return err
		}
		if len(set.Status.Listeners) > 0 {
			return errors.New("a set that is not allowed any more has listeners")
		}
		return nil
	})
}

// Who may only add a set cannot fill the Secret with the copies: those of the Gateway itself are always kept up to date.
func TestListenerSetsDoNotFillTheSecretWithTheCopies(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	large := func(name string) *corev1.Secret {
		secret := f.certificate(f.other, name)
		certificate := secret.Data[corev1.TLSCertKey]
		secret.Data[corev1.TLSCertKey] = bytes.Repeat(certificate, 300<<10/len(certificate))
		return secret
	}
	grant := f.grant()
	g := f.gateway(allowing(gatewayv1.NamespacesFromAll), secure(f.other, "theirs"))
	set := f.set(f.other, "team",
		secureEntry("a", 443, "a.example.com", gatewayv1.SecretObjectReference{Name: "a"}),
		secureEntry("b", 443, "b.example.com", gatewayv1.SecretObjectReference{Name: "b"}))
	theirs := f.certificate(f.other, "theirs")
	f.create(f.class, large("a"), large("b"), theirs, grant, g, set)
	copied := func(want ...string) {
		t.Helper()
		environment.Eventually(t, func() error {
			copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
			if err := client.IgnoreNotFound(f.get(copies)); err != nil {
				return err
			}
			var got []string
			for _, name := range []string{"a", "b", "theirs"} {
				if _, is := copied.Find(copies, types.NamespacedName{Namespace: f.other, Name: name}); is {
					got = append(got, name)
				}
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("copied are %q, want %q", got, want)
			}
			return nil
		})
	}
	copied("a", "theirs")
	f.waitEntry(set, "b", entryProgrammed, no, gatewayv1.ListenerReasonInvalid)
	f.waitEntry(set, "a", entryProgrammed, no, gatewayv1.ListenerReasonPending)
	f.delete(grant)
	copied("a")
	update(f, set, func(s *gatewayv1.ListenerSet) { s.Spec.Listeners = s.Spec.Listeners[1:] })
	copied("b")
	f.waitEntry(set, "b", entryProgrammed, no, gatewayv1.ListenerReasonPending)
}
