//go:build apitest && monitortest

package kindrole_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipway-dev/slipway/internal/operator/kindrole"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// grants waits until the rules name exactly these kinds, besides those of Slipway.
func grants(t *testing.T, want ...string) {
	t.Helper()
	environment.Eventually(t, func() error {
		if diff := cmp.Diff(append([]string{}, want...), granted(t)); diff != "" {
			return fmt.Errorf("the kinds in the rules: -want +got:\n%s", diff)
		}
		return nil
	})
}

// monitorMay asks the API server what the monitor's account may do.
func monitorMay(t *testing.T, verb, group, resource string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:slipway-system:slipway-monitor",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Group: group, Resource: resource},
	}}
	if err := env.Client.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

func TestTheMonitorMayReadAKindAsLongAsThereIsADefinition(t *testing.T) {
	install(t)
	start(t, nil)
	environment.Eventually(t, func() error {
		if len(role(t).Rules) == 0 {
			return errors.New("there is no rule")
		}
		return nil
	})
	widgets, secrets := definition("widgets", "role.example.com"), definition("secrets", "role.example.com")
	create(t, widgets)
	grants(t, "widgets.role.example.com")
	create(t, secrets)
	grants(t, "secrets.role.example.com", "widgets.role.example.com")
	environment.Eventually(t, func() error {
		if !monitorMay(t, "watch", "role.example.com", "widgets") {
			return errors.New("the monitor may not watch widgets")
		}
		return nil
	})
	for _, refused := range [][3]string{
		{"list", "", "secrets"},
		{"get", "", "secrets"},
		{"list", "", "pods"},
		{"list", "apps", "deployments"},
		{"list", "role.example.com", "gadgets"},
		{"update", "role.example.com", "widgets"},
		{"delete", "slipway.dev", "webapps"},
		{"patch", "rbac.authorization.k8s.io", "clusterroles"},
	} {
		if monitorMay(t, refused[0], refused[1], refused[2]) {
			t.Errorf("the monitor may %s %s of %q", refused[0], refused[2], refused[1])
		}
	}
	if !monitorMay(t, "list", "slipway.dev", "webapps") {
		t.Error("the monitor may not list webapps")
	}

	remove(t, widgets)
	deleted := time.Now()
	grants(t, "secrets.role.example.com")
	if took := time.Since(deleted); took > 3*time.Second {
		t.Errorf("the rule stayed for %v", took)
	}
	remove(t, secrets)
	grants(t)
}

// A definition with a finalizer goes slowly: its objects are deleted first, and the monitor has to see that.
func TestARuleStaysUntilTheDefinitionIsGone(t *testing.T) {
	install(t)
	start(t, nil)
	slow := definition("slow", "finalizer.example.com")
	slow.Finalizers = []string{"example.com/wait"}
	create(t, slow)
	grants(t, "slow.finalizer.example.com")
	if err := env.Client.Delete(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	// What comes later is seen, so the deletion was seen, too.
	create(t, definition("later", "finalizer.example.com"))
	grants(t, "later.finalizer.example.com", "slow.finalizer.example.com")
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(slow), slow); err != nil {
			return err
		}
		slow.Finalizers = slices.DeleteFunc(slow.Finalizers, func(name string) bool { return name == "example.com/wait" })
		return env.Client.Update(t.Context(), slow)
	})
	grants(t, "later.finalizer.example.com")
}

func TestDriftIsMended(t *testing.T) {
	install(t)
	start(t, nil)
	create(t, definition("widgets", "drift.example.com"))
	grants(t, "widgets.drift.example.com")
	for name, change := range map[string]func(*rbacv1.ClusterRole){
		"a rule is removed":    func(r *rbacv1.ClusterRole) { r.Rules = r.Rules[1:] },
		"all are":              func(r *rbacv1.ClusterRole) { r.Rules = nil },
		"a resource is added":  func(r *rbacv1.ClusterRole) { r.Rules[0].Resources = append(r.Rules[0].Resources, "more") },
		"a verb is taken away": func(r *rbacv1.ClusterRole) { r.Rules[0].Verbs = []string{"get"} },
	} {
		t.Run(name, func(t *testing.T) {
			want := role(t).Rules
			drifted := role(t)
			change(drifted)
			if err := env.Client.Update(t.Context(), drifted); err != nil {
				t.Fatal(err)
			}
			environment.Eventually(t, func() error {
				if diff := cmp.Diff(want, role(t).Rules); diff != "" {
					return fmt.Errorf("-want +got:\n%s", diff)
				}
				return nil
			})
		})
	}
}

// What is applied again and again by whoever installs must not take rules away.
func TestApplyingTheManifestAgainTakesNoRuleAway(t *testing.T) {
	install(t)
	running, _ := start(t, nil)
	create(t, definition("widgets", "again.example.com"))
	grants(t, "widgets.again.example.com")
	running.Stop(t) // nobody mends it
	for _, object := range shipped(t) {
		config := client.ApplyConfigurationFromUnstructured(object)
		if err := env.Client.Apply(t.Context(), config, client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	grants(t, "widgets.again.example.com")
}

func TestNothingIsWrittenAtRestAndAfterARestart(t *testing.T) {
	install(t)
	widgets := definition("widgets", "rest.example.com")
	create(t, widgets)
	running, counter := start(t, nil)
	grants(t, "widgets.rest.example.com")
	before := role(t).ResourceVersion
	for i := range 20 { // edits and status updates of a definition change no rule
		environment.Eventually(t, func() error {
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(widgets), widgets); err != nil {
				return err
			}
			widgets.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = fmt.Sprint("edit ", i)
			return env.Client.Update(t.Context(), widgets)
		})
	}
	environment.Quiet(t, 1500*time.Millisecond, func() int { return writes(counter) })
	if got := writes(counter); got != 1 {
		t.Errorf("%d writes, want 1: %s", got, counter.Counts())
	}
	running.Stop(t)
	_, again := start(t, nil)
	environment.Quiet(t, 1500*time.Millisecond, func() int { return writes(again) })
	if got := again.Counts().Writes(); got != 0 || role(t).ResourceVersion != before {
		t.Errorf("after a restart there are %d writes: %s", got, again.Counts())
	}
}

// Whoever may make definitions must not get the monitor to read what is built in, or what another server has.
func TestADefinitionGivesNoRightToWhatSomebodyElseServes(t *testing.T) {
	install(t)
	start(t, nil)
	create(t, definition("clusterroles", "rbac.authorization.k8s.io"))
	create(t, definition("tokens", "foreign.example.com"))
	create(t, definition("widgets", "own.example.com"))
	grants(t, "tokens.foreign.example.com", "widgets.own.example.com")
	if got := counted(t); got["foreign"] != 1 || got["granted"] < 2 || got["excluded"] != 0 {
		t.Errorf("the kinds are counted as %v", got)
	}

	another := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1alpha1.foreign.example.com"},
		"spec": map[string]any{
			"group": "foreign.example.com", "version": "v1alpha1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"service": map[string]any{"name": "tokens", "namespace": "default"}, "insecureSkipTLSVerify": true,
		},
	}}
	create(t, another)
	grants(t, "widgets.own.example.com")
	remove(t, another)
	grants(t, "tokens.foreign.example.com", "widgets.own.example.com")
}

func TestPatternsChooseWhatMayBeRead(t *testing.T) {
	install(t)
	start(t, func(options *environment.Options) {
		options.MonitorInclude, options.MonitorExclude = []string{"*.pattern.example.com"}, []string{"secret*"}
	})
	create(t, definition("secretwidgets", "a.pattern.example.com"))
	create(t, definition("widgets", "b.example.org"))
	create(t, definition("widgets", "a.pattern.example.com"))
	grants(t, "widgets.a.pattern.example.com")
	for _, rule := range role(t).Rules {
		if rule.APIGroups[0] == "slipway.dev" {
			t.Error("a kind that no pattern includes may be read")
		}
	}
}

// Who leaves the ClusterRole out does not want it. When it is there, it is filled.
func TestARoleThatIsMissingIsNotMade(t *testing.T) {
	install(t)
	remove(t, role(t))
	_, counter := start(t, nil)
	create(t, definition("widgets", "missing.example.com"))
	environment.Quiet(t, time.Second, func() int { return writes(counter) })
	err := env.Client.Get(t.Context(), client.ObjectKey{Name: kindrole.Name}, &rbacv1.ClusterRole{})
	if !apierrors.IsNotFound(err) || writes(counter) != 0 {
		t.Errorf("it is there (%v), after %d writes", err, writes(counter))
	}
	if got := counted(t); got["granted"] != 0 {
		t.Errorf("kinds are counted as granted: %v", got)
	}
	create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: kindrole.Name}})
	grants(t, "widgets.missing.example.com")
}

// counted is what the metric says, by right.
func counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() == kindrole.KindsByRight.Name {
			for _, series := range family.GetMetric() {
				values[series.GetLabel()[0].GetValue()] = series.GetGauge().GetValue()
			}
		}
	}
	return values
}

// The rights of the operator reach as far as this: the one ClusterRole, and of it what the policy lets pass.
func TestWhoeverTakesTheOperatorOverCannotGiveTheMonitorMore(t *testing.T) {
	install(t)
	config := rest.CopyConfig(env.Config)
	asOperator(config)
	taken, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	read := []string{"get", "list", "watch"}
	other := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "not-ours"}}
	create(t, other)
	apply := func(name string, change map[string]any) error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
		}}
		for key, value := range change {
			object.Object[key] = value
		}
		return taken.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("thief"), client.ForceOwnership)
	}
	rule := func(group, resource string, verbs ...string) map[string]any {
		list := []any{}
		for _, verb := range verbs {
			list = append(list, verb)
		}
		return map[string]any{"rules": []any{map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": list}}}
	}
	// The policy is in force some time after it was made.
	environment.Eventually(t, func() error {
		err := apply(kindrole.Name, rule("", "secrets", read...))
		if err == nil || !strings.Contains(err.Error(), "groups that have a dot") {
			return fmt.Errorf("Secrets of the core group: %w", err)
		}
		return nil
	})
	if err := apply(kindrole.Name, rule("example.com", "widgets", read...)); err != nil {
		t.Errorf("what is allowed is refused: %v", err)
	}
	for name, attempt := range map[string]error{
		"everything":            apply(kindrole.Name, rule("*", "*", "*")),
		"every group":           apply(kindrole.Name, rule("*", "widgets", read...)),
		"every resource":        apply(kindrole.Name, rule("example.com", "*", read...)),
		"a subresource":         apply(kindrole.Name, rule("example.com", "widgets/token", read...)),
		"groups by a pattern":   apply(kindrole.Name, rule("*.com", "widgets", read...)),
		"every verb":            apply(kindrole.Name, rule("example.com", "widgets", "*")),
		"a write":               apply(kindrole.Name, rule("example.com", "widgets", "get", "update")),
		"a group without a dot": apply(kindrole.Name, rule("apps", "deployments", read...)),
		"an URL":                apply(kindrole.Name, map[string]any{"rules": []any{map[string]any{"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"}}}}),
		"other ClusterRoles":    apply(kindrole.Name, map[string]any{"aggregationRule": map[string]any{"clusterRoleSelectors": []any{map[string]any{}}}}),
		"another ClusterRole":   apply(other.Name, rule("example.com", "widgets", read...)),
		"a new one":             apply("new", rule("example.com", "widgets", read...)),
		"to delete it":          taken.Delete(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: kindrole.Name}}),
		"to bind it": taken.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "thief"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: kindrole.Name},
		}),
		"a definition":         taken.Create(t.Context(), definition("things", "thief.example.com")),
		"to list ClusterRoles": taken.List(t.Context(), &rbacv1.ClusterRoleList{}),
		"to change a definition": taken.Patch(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "webapps.slipway.dev"}},
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
	} {
		if !apierrors.IsForbidden(attempt) && !apierrors.IsInvalid(attempt) {
			t.Errorf("%s: %v, want a refusal", name, attempt)
		}
	}
}
