//go:build apitest

package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// release is an install of the chart that is limited to some namespaces, as far as rights go.
type release struct {
	*fixture

	namespaces []string
	// system is the namespace of the operator.
	system string
	// classes are the ClusterRole with the right to GatewayClasses, and its binding.
	classes []client.Object
	// answers has the status of each kind of request of the operator.
	answers *answers
}

// installLimited makes what the chart makes: the golden file is for the namespaces team-a and team-b.
func (f *fixture) installLimited(namespaces ...string) *release {
	f.Helper()
	r := &release{fixture: f, namespaces: namespaces, system: "ops-" + namespaces[0], answers: &answers{of: map[string]int{}}}
	raw, err := os.ReadFile("../../../test/chart/testdata/golden/limited.yaml")
	if err != nil {
		f.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "slipway-system", r.system)
	for doc := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &object.Object); err != nil {
			f.Fatal(err)
		}
		if object.GroupVersionKind().Group != rbacv1.GroupName || object.GetNamespace() == r.system {
			continue
		}
		if object.GetNamespace() == "" {
			if strings.Contains(object.GetName(), "gatewayclasses") {
				r.classes = append(r.classes, object)
			} else { // who may read metrics
				f.create(object)
			}
			continue
		}
		at := slices.Index([]string{"team-a", "team-b"}, object.GetNamespace())
		if at < len(namespaces) {
			object.SetNamespace(namespaces[at])
			f.create(object)
		}
	}
	if len(r.classes) != 2 {
		f.Fatalf("the chart has %d objects for GatewayClasses, want a ClusterRole and its binding", len(r.classes))
	}
	return r
}

// start runs its operator.
func (r *release) start() *environment.Operator {
	r.Helper()
	return env.StartOperatorWith(r, func(config *rest.Config, options *environment.Options) {
		options.Namespaces, options.ClusterRights = r.namespaces, false
		options.GatewayAdminPort = r.port
		name := "system:serviceaccount:" + r.system + ":slipway-operator"
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &recorded{next, r.answers} })
	})
}

// answers are the statuses of answers, by method and path.
type answers struct {
	mutex sync.Mutex
	of    map[string]int
}

type recorded struct {
	next http.RoundTripper
	*answers
}

func (r *recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.of[request.Method+" "+request.URL.Path] = response.StatusCode
	}
	return response, err
}

// forbidden are the requests that were.
func (a *answers) forbidden() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var list []string
	for what, status := range a.of {
		if status == http.StatusForbidden {
			list = append(list, what)
		}
	}
	slices.Sort(list)
	return list
}

// subjectsIn are those of the RoleBinding of the pods in a namespace.
func (f *fixture) subjectsIn(namespace string) ([]rbacv1.Subject, error) {
	binding := &rbacv1.RoleBinding{}
	err := env.Client.Get(f.Context(), types.NamespacedName{Namespace: namespace, Name: desired.LimitedRightsName}, binding)
	return binding.Subjects, err
}

// It has the rights that the chart gives it and no others. It serves the Gateways of its namespaces, and nothing elsewhere.
func TestAnOperatorForSomeNamespacesServesTheGatewaysThere(t *testing.T) {
	f := newFixture(t)
	r := f.installLimited(f.namespace, f.other)
	f.create(r.classes...)
	r.start()
	elsewhere := env.Namespace(t)
	secret, g := f.certificate(f.other, "web"), f.gateway(secure(f.other, "web"))
	foreign := f.gateway(func(g *gatewayv1.Gateway) { g.Namespace = elsewhere })
	good, bad := f.route("shop", "shop"), f.route("db", "db", func(r *gatewayv1.HTTPRoute) {
		r.Spec.Hostnames, r.Spec.Rules[0].BackendRefs[0].Namespace = []gatewayv1.Hostname{"db.example.com"}, ptr(gatewayv1.Namespace(elsewhere))
	})
	grant := f.grant()
	grant.Namespace, grant.Name = elsewhere, "useless"
	f.create(f.class, f.grant(), grant, secret, service(f.namespace, "shop"), service(elsewhere, "db"), foreign, g, good, bad)
	f.running(g)
	tls := document.ServedListener{Name: "tls", Digest: document.ListenerDigest(443, true, "", []string{f.other + "/web@" + secret.ResourceVersion})}
	f.serve(g, []document.ServedListener{web(), tls}, good, bad)
	f.waitRoute(good, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)
	f.waitRoute(bad, string(gatewayv1.RouteConditionResolvedRefs), metav1.ConditionFalse, string(gatewayv1.RouteReasonBackendNotFound))
	of, err := entry(bad)
	if err != nil || !strings.Contains(message(of.Conditions, "ResolvedRefs"), "which Slipway does not watch") {
		t.Errorf("the route says %+v (%v)", of, err)
	}
	f.waitClass(metav1.ConditionTrue, string(gatewayv1.GatewayClassReasonAccepted))

	deployment := child(f, g, &appsv1.Deployment{})
	if err := f.get(deployment); err != nil {
		t.Fatal(err)
	}
	namespaces := []string{f.namespace, f.other}
	slices.Sort(namespaces)
	if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--namespaces="+strings.Join(namespaces, ",")) {
		t.Errorf("the pods are told %v", args)
	}
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: desired.Name(g)}}
	for _, namespace := range namespaces {
		environment.Eventually(t, func() error {
			got, err := f.subjectsIn(namespace)
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("subjects in %s: -want +got:\n%s (%w)", namespace, diff, err)
			}
			return nil
		})
	}
	r.podsReadOnlyThere(g, elsewhere)

	// Nobody has touched the other one.
	before := foreign.ResourceVersion
	if err := f.get(foreign); err != nil || foreign.ResourceVersion != before {
		t.Errorf("the Gateway of another namespace was written (%v): %+v", err, foreign.Status)
	}
	if list := r.answers.forbidden(); len(list) > 0 {
		t.Errorf("these were forbidden: %v", list)
	}

	f.delete(g)
	for _, namespace := range namespaces {
		environment.Eventually(t, func() error {
			if got, err := f.subjectsIn(namespace); err != nil || len(got) > 0 {
				return fmt.Errorf("subjects in %s: %v (%w)", namespace, got, err)
			}
			return nil
		})
	}
}

// waitClass waits for what is said of the class.
func (f *fixture) waitClass(status metav1.ConditionStatus, reason string) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(f.class); err != nil {
			return err
		}
		return has(f.class.Status.Conditions, f.class.Generation, "Accepted", status, reason)
	})
}

// podsReadOnlyThere asks as a pod of a Gateway.
func (r *release) podsReadOnlyThere(g *gatewayv1.Gateway, elsewhere string) {
	r.Helper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + g.Namespace + ":" + desired.Name(g), Groups: []string{"system:authenticated"}}
	pod, err := client.New(config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		r.Fatal(err)
	}
	for _, namespace := range append([]string{elsewhere, ""}, r.namespaces...) {
		allowed := slices.Contains(r.namespaces, namespace)
		for _, kind := range []string{"Gateway", "HTTPRoute", "GRPCRoute", "ListenerSet", "ReferenceGrant", "BackendTLSPolicy", "Service", "EndpointSlice", "Secret", "ConfigMap"} {
			list := &metav1.PartialObjectMetadataList{}
			list.APIVersion = map[string]string{"Service": "v1", "Secret": "v1", "ConfigMap": "v1", "EndpointSlice": "discovery.k8s.io/v1"}[kind]
			if list.APIVersion == "" {
				list.APIVersion = gatewayv1.GroupVersion.String()
			}
			list.Kind = kind + "List"
			err := pod.List(r.Context(), list, client.InNamespace(namespace))
			if want := allowed && kind != "Secret" && kind != "ConfigMap"; (err == nil) != want {
				r.Errorf("in namespace %q a pod may list %ss: %v, want %v", namespace, kind, err, want)
			}
		}
	}
}

// Who may not read classes has no Gateways, says so and does everything else.
func TestAnOperatorThatMayNotReadClassesDoesEverythingElse(t *testing.T) {
	f := newFixture(t)
	r := f.installLimited(f.namespace)
	r.start()
	g := f.gateway()
	app := &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}, Spec: slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080}}
	f.create(f.class, g, app)
	environment.Eventually(t, func() error {
		if err := f.get(app); err != nil {
			return err
		}
		if len(app.Status.Conditions) == 0 {
			return errors.New("nothing is said of the WebApp")
		}
		return nil
	})
	if err := f.get(g); err != nil || slices.ContainsFunc(g.Status.Conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionUnknown }) {
		t.Errorf("something is said of the Gateway (%v): %+v", err, g.Status.Conditions)
	}
	want := []string{"GET /apis/gateway.networking.k8s.io/v1/gatewayclasses"}
	if diff := cmp.Diff(want, r.answers.forbidden()); diff != "" {
		t.Errorf("what was forbidden: -want +got:\n%s", diff)
	}
}

// Two operators for different namespaces have the same class. One says what there is to say of it, and then it is left alone.
func TestOperatorsForDifferentNamespacesDoNotFight(t *testing.T) {
	f := newFixture(t)
	first, second := f.installLimited(f.namespace), f.installLimited(f.other)
	f.create(slices.Concat(first.classes, second.classes)...)
	first.start()
	second.start()
	here, there := f.gateway(), f.gateway(func(g *gatewayv1.Gateway) { g.Namespace = f.other })
	f.create(f.class, here, there)
	f.waitClass(metav1.ConditionTrue, string(gatewayv1.GatewayClassReasonAccepted))
	for _, g := range []*gatewayv1.Gateway{here, there} {
		f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
	}
	for namespace, g := range map[string]*gatewayv1.Gateway{f.namespace: here, f.other: there} {
		environment.Eventually(t, func() error {
			got, err := f.subjectsIn(namespace)
			if len(got) != 1 || got[0].Name != desired.Name(g) || got[0].Namespace != namespace {
				return fmt.Errorf("subjects in %s: %v (%w)", namespace, got, err)
			}
			return nil
		})
	}
	version := func() string {
		if err := f.get(f.class); err != nil {
			t.Fatal(err)
		}
		return f.class.ResourceVersion
	}
	environment.Quiet(t, time.Second, version)

	// Parameters are judged by the one that can read them. The other one says at its own Gateways that it cannot.
	some := parameters(f.namespace, "some", slipwayv1alpha1.GatewayParametersSpec{Replicas: ptr(int32(2))})
	update(f, f.class, func(c *gatewayv1.GatewayClass) { withParameters(c, some) })
	f.waitClass(metav1.ConditionFalse, string(gatewayv1.GatewayClassReasonInvalidParameters))
	environment.Quiet(t, time.Second, version)
	f.create(some)
	f.waitClass(metav1.ConditionTrue, string(gatewayv1.GatewayClassReasonAccepted))
	f.waitGateway(here, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
	f.waitGateway(there, gatewayv1.GatewayConditionAccepted, metav1.ConditionFalse, gatewayv1.GatewayReasonInvalidParameters)
	if said := message(there.Status.Conditions, "Accepted"); !strings.Contains(said, fmt.Sprintf("does not watch namespace %q", f.namespace)) {
		t.Errorf("it says %q", said)
	}
	environment.Quiet(t, time.Second, version)
	if c := meta.FindStatusCondition(f.class.Status.Conditions, "Accepted"); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("in the end the class says %+v", c)
	}
}
