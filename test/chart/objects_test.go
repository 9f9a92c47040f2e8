//go:build helm

package chart

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	gatewaydesired "github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

// as converts an object, which must have no field that its type does not know.
func as[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		t.Fatalf("%s %q: %v", object.GetKind(), object.GetName(), err)
	}
	return typed
}

// grants lists what rules allow, one right a line.
func grants(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, fmt.Sprintf("%s %s/%s %v", verb, group, resource, rule.ResourceNames))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// comparable brings an object into a form in which the chart's and config's are the same.
func comparable(t *testing.T, object *unstructured.Unstructured) (name string, content map[string]any) {
	t.Helper()
	name = object.GetKind() + " " + object.GetName()
	own := object.GetLabels()
	for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "app.kubernetes.io/component", "app.kubernetes.io/name"} {
		delete(own, label)
	}
	object.SetLabels(own)
	if len(own) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "labels")
	}
	annotations := object.GetAnnotations()
	for _, annotation := range []string{"helm.sh/resource-policy", "slipway.dev/schema-revision"} {
		delete(annotations, annotation)
	}
	object.SetAnnotations(annotations)
	switch name {
	case "ClusterRole " + operatorName:
		role := as[rbacv1.ClusterRole](t, object)
		object.Object["rules"] = grants(role.Rules)
	case "Deployment " + operatorName, "StatefulSet " + monitorName:
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		container := containers[0].(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(container, "args")
		slices.Sort(args)
		container["args"] = args
		text, err := json.Marshal(containers)
		if err != nil {
			t.Fatal(err)
		}
		_, version, _ := strings.Cut(readFile(t, chartFolder, "Chart.yaml"), "\nappVersion: ")
		version, _, _ = strings.Cut(version, "\n")
		object.Object["containers"] = strings.ReplaceAll(string(text), ":"+version, ":dev")
		unstructured.RemoveNestedField(object.Object, "spec", "template", "spec", "containers")
	}
	return name, object.Object
}

// Whoever installs with Helm gets what everybody gets. Numbers are read as Go reads them from
// JSON on both sides.
func TestTheDefaultIsInstallYAML(t *testing.T) {
	got, want := map[string]any{}, map[string]any{}
	for _, object := range parse(t, render(t, "slipway-system")) {
		if object.GetKind() == "MonitorRule" {
			continue // TestTheRulesOfTheMonitorAreAppliedLast
		}
		name, content := comparable(t, object)
		guard := strings.HasPrefix(name, "ValidatingAdmissionPolicy") || object.GetKind() == "ConfigMap"
		if guard && !strings.Contains(name, monitorName) {
			continue // only the chart protects the definitions
		}
		got[name] = content
	}
	for _, object := range parse(t, readFile(t, "..", "..", "dist", "install.yaml")) {
		if object.GetKind() == "Namespace" {
			continue // Helm makes it
		}
		name, content := comparable(t, object)
		want[name] = content
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-install.yaml +chart:\n%s", diff)
	}
}

// Helm goes on with other objects when one is refused, so the hook has to come before all of
// them, on every way to an older chart, and to say what the definitions say.
func TestTheHookAsksForEveryDefinition(t *testing.T) {
	objects := parse(t, render(t, "ops"))
	hook := as[corev1.ConfigMap](t, named(t, objects, "ConfigMap", "ops", "slipway-schema-revisions"))
	if got := hook.Annotations["helm.sh/hook"]; got != "pre-install,pre-upgrade,pre-rollback" {
		t.Errorf("the hook is for %q", got)
	}
	want := map[string]string{}
	for _, crd := range ofKind(objects, "CustomResourceDefinition") {
		want[crd.GetName()] = crd.GetAnnotations()["slipway.dev/schema-revision"]
		named(t, objects, "ValidatingAdmissionPolicyBinding", "", crd.GetName())
	}
	if diff := cmp.Diff(want, hook.Data); diff != "" || len(want) == 0 {
		t.Errorf("-definitions +hook:\n%s", diff)
	}
	if hooks := ofKind(parse(t, render(t, "ops", "--set", "crds.install=false", "--set", "monitor.enabled=false")), "ConfigMap"); len(hooks) > 0 {
		t.Error("a chart without definitions asks whether it may install them")
	}
}

// clusterScoped are the kinds of the chart that are in no namespace.
var clusterScoped = []string{
	"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
}

func TestALimitedInstallHasNothingInTheClusterButDefinitionsAndClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		args  []string
		kinds []string
	}{
		"with definitions": {nil, []string{
			"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		}},
		"without definitions": {[]string{"--set", "crds.install=false"}, []string{"ClusterRole", "ClusterRoleBinding"}},
		"without classes":     {[]string{"--set", "crds.install=false", "--set", "gateway.classes=false"}, []string{"ClusterRole", "ClusterRoleBinding"}},
		"without classes and authentication": {
			[]string{"--set", "crds.install=false", "--set", "gateway.classes=false", "--set", "metrics.authentication=false"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := parse(t, render(t, "ops", append(tc.args, "--set", "namespaces={team-a,team-b}", "--set", "networkPolicy.enabled=true")...))
			if len(objects) == 0 {
				t.Fatal("nothing is made")
			}
			var kinds []string
			for _, object := range objects {
				switch {
				case slices.Contains(clusterScoped, object.GetKind()):
					kinds = append(kinds, object.GetKind())
				case !slices.Contains([]string{"ops", "team-a", "team-b"}, object.GetNamespace()):
					t.Errorf("%s %q is in namespace %q", object.GetKind(), object.GetName(), object.GetNamespace())
				}
			}
			slices.Sort(kinds)
			if diff := cmp.Diff(tc.kinds, slices.Compact(kinds)); diff != "" {
				t.Errorf("kinds in no namespace: -want +got:\n%s", diff)
			}
			whole := as[rbacv1.ClusterRole](t, named(t, parse(t, render(t, "ops", "--set", "webhook.enabled=false", "--set", "monitor.enabled=false")), "ClusterRole", "", operatorName))
			for _, namespace := range []string{"team-a", "team-b"} {
				role := as[rbacv1.Role](t, named(t, objects, "Role", namespace, operatorName))
				if diff := cmp.Diff(slices.DeleteFunc(grants(whole.Rules), isInNoNamespace), grants(role.Rules)); diff != "" {
					t.Errorf("rights in %s: -all namespaces +limited:\n%s", namespace, diff)
				}
				binding := as[rbacv1.RoleBinding](t, named(t, objects, "RoleBinding", namespace, operatorName))
				subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: operatorName, Namespace: "ops"}}
				if binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != role.Name || !cmp.Equal(subject, binding.Subjects) {
					t.Errorf("the binding in %s is of %v to %v", namespace, binding.RoleRef, binding.Subjects)
				}
			}
		})
	}
}

// isInNoNamespace reports whether a right is to what the Gateway API has in no namespace, so that a Role cannot give it.
func isInNoNamespace(grant string) bool {
	for _, what := range []string{"/namespaces ", "/gatewayclasses ", "/gatewayclasses/status ", "/clusterrolebindings "} {
		if strings.Contains(grant, what) {
			return true
		}
	}
	return false
}

// GatewayClasses are the only thing in the cluster that an operator for some namespaces reads. What the pods of Gateways may read
// is in each of the namespaces, and the operator, which keeps the subjects, has all of it.
func TestALimitedInstallReadsClassesAndGivesPodsWhatItHas(t *testing.T) {
	objects := parse(t, render(t, "ops", "--set", "namespaces={team-a,team-b}"))
	const name = "slipway-gatewayclasses-ops"
	role := as[rbacv1.ClusterRole](t, named(t, objects, "ClusterRole", "", name))
	const classes = "gateway.networking.k8s.io/gatewayclasses"
	want := []string{"get " + classes + " []", "get " + classes + "/status []", "list " + classes + " []", "patch " + classes + "/status []", "watch " + classes + " []"}
	if diff := cmp.Diff(want, grants(role.Rules)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	binding := as[rbacv1.ClusterRoleBinding](t, named(t, objects, "ClusterRoleBinding", "", name))
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: operatorName, Namespace: "ops"}}
	if binding.RoleRef.Name != name || !cmp.Equal(subject, binding.Subjects) {
		t.Errorf("the binding is of %v to %v", binding.RoleRef, binding.Subjects)
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		pods := as[rbacv1.Role](t, named(t, objects, "Role", namespace, gatewaydesired.LimitedRightsName))
		has := grants(as[rbacv1.Role](t, named(t, objects, "Role", namespace, operatorName)).Rules)
		for _, grant := range grants(pods.Rules) {
			if !slices.Contains(has, grant) || strings.Contains(grant, "/secrets ") || strings.Contains(grant, "/namespaces ") {
				t.Errorf("in %s pods may %s", namespace, grant)
			}
		}
		bound := as[rbacv1.RoleBinding](t, named(t, objects, "RoleBinding", namespace, gatewaydesired.LimitedRightsName))
		if bound.RoleRef.Kind != "Role" || bound.RoleRef.Name != pods.Name || len(bound.Subjects) > 0 || len(pods.Rules) == 0 {
			t.Errorf("in %s the binding is of %v to %v", namespace, bound.RoleRef, bound.Subjects)
		}
	}
}

// named returns the object of that kind and name.
func named(t *testing.T, objects []*unstructured.Unstructured, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range ofKind(objects, kind) {
		if object.GetName() == name && object.GetNamespace() == namespace {
			return object
		}
	}
	t.Fatalf("there is no %s %s/%s", kind, namespace, name)
	return nil
}

func TestWithoutGatewaysThereAreNoRightsForThem(t *testing.T) {
	objects := parse(t, render(t, "slipway-system", "--set", "gateway.enabled=false"))
	role := as[rbacv1.ClusterRole](t, named(t, objects, "ClusterRole", "", operatorName))
	for _, grant := range grants(role.Rules) {
		if strings.Contains(grant, "/serviceaccounts ") && !strings.HasPrefix(grant, "create ") && !strings.HasPrefix(grant, "patch ") {
			continue // whether there is the one that a WebApp names
		}
		for _, word := range []string{"apigateways", "ingresses", "httproutes", "roles", "rolebindings", "serviceaccounts"} {
			if strings.Contains(grant, "/"+word) {
				t.Errorf("the operator may %s", grant)
			}
		}
	}
	deployment := as[appsv1.Deployment](t, named(t, objects, "Deployment", "slipway-system", operatorName))
	if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--controllers=backup,backuprun,restore,webapp") {
		t.Errorf("the arguments are %v", args)
	}
}

func TestWithoutBackupsThereAreNoRightsForThem(t *testing.T) {
	objects := parse(t, render(t, "slipway-system", "--set", "backup.enabled=false"))
	role := as[rbacv1.ClusterRole](t, named(t, objects, "ClusterRole", "", operatorName))
	all := grants(role.Rules)
	for _, grant := range all {
		for _, word := range []string{"backups", "backupruns", "restores", "jobs", "statefulsets", "pods/log"} {
			if strings.Contains(grant, "/"+word) {
				t.Errorf("the operator may %s", grant)
			}
		}
	}
	// Copies of certificates of other namespaces are Secrets, too.
	neither := parse(t, render(t, "slipway-system", "--set", "backup.enabled=false", "--set", "gateway.enabled=false"))
	if slices.Contains(grants(as[rbacv1.ClusterRole](t, named(t, neither, "ClusterRole", "", operatorName)).Rules), "create /secrets []") {
		t.Error("the operator may create Secrets")
	}
	deployment := as[appsv1.Deployment](t, named(t, objects, "Deployment", "slipway-system", operatorName))
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--controllers=apigateway,gateway,gatewayclass,webapp") {
		t.Errorf("the arguments are %v", args)
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "--backup-image") {
			t.Errorf("the operator is told %s", arg)
		}
	}
}

// monitorName is that of the monitor's StatefulSet, ServiceAccount and roles.
const monitorName = "slipway-monitor"

func TestWithoutAMonitorThereIsNothingOfIt(t *testing.T) {
	objects := parse(t, render(t, "ops", "--set", "monitor.enabled=false", "--set", "networkPolicy.enabled=true"))
	ofDefinitions := []string{"CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	for _, object := range objects {
		if strings.Contains(object.GetName(), "monitor") && !slices.Contains(ofDefinitions, object.GetKind()) {
			t.Errorf("there is a %s %s", object.GetKind(), object.GetName())
		}
	}
	role := as[rbacv1.ClusterRole](t, named(t, objects, "ClusterRole", "", operatorName))
	for _, grant := range grants(role.Rules) {
		for _, word := range []string{"/clusterroles", "customresourcedefinitions", "apiservices", "escalate"} {
			if strings.Contains(grant, word) {
				t.Errorf("the operator may %s", grant)
			}
		}
	}
	deployment := as[appsv1.Deployment](t, named(t, objects, "Deployment", "ops", operatorName))
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(arg, "--monitor") || strings.HasPrefix(arg, "--controllers") {
			t.Errorf("the operator is told %s", arg)
		}
	}
}

// The operator and the monitor have to choose the same kinds.
func TestPatternsOfKindsReachOperatorAndMonitor(t *testing.T) {
	objects := parse(t, render(t, "ops", "--set", "monitor.include={*.example.com,apps.example.org}", "--set", "monitor.exclude={secret*}", "--set", "monitor.config.kinds.max=100"))
	deployment := as[appsv1.Deployment](t, named(t, objects, "Deployment", "ops", operatorName))
	args := deployment.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--monitor", "--monitor-include=*.example.com,apps.example.org", "--monitor-exclude=secret*"} {
		if !slices.Contains(args, want) {
			t.Errorf("the operator is not told %s: %v", want, args)
		}
	}
	config := as[corev1.ConfigMap](t, named(t, objects, "ConfigMap", "ops", monitorName)).Data["config.yaml"]
	var got map[string]any
	if err := yaml.Unmarshal([]byte(config), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"kinds": map[string]any{"include": []any{"*.example.com", "apps.example.org"}, "exclude": []any{"secret*"}, "max": float64(100)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the monitor's configuration: -want +got:\n%s", diff)
	}
}

// Their definition has to be there before them, and whoever has suspended one finds it suspended after an upgrade.
func TestTheRulesOfTheMonitorAreAppliedLast(t *testing.T) {
	got, want := map[string]any{}, map[string]any{}
	for _, rule := range ofKind(parse(t, render(t, "ops")), "MonitorRule") {
		hook := map[string]string{"helm.sh/hook": "post-install,post-upgrade,post-rollback", "helm.sh/hook-delete-policy": "hook-failed"}
		if diff := cmp.Diff(hook, rule.GetAnnotations()); diff != "" {
			t.Errorf("annotations of %s: -want +got:\n%s", rule.GetName(), diff)
		}
		got[rule.GetName()] = rule.Object["spec"]
	}
	for _, rule := range parse(t, readFile(t, "..", "..", "config", "monitor", "rules", "rules.yaml")) {
		want[rule.GetName()] = rule.Object["spec"]
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("-config +chart:\n%s", diff)
	}
	for _, set := range []string{"monitor.defaultRules=false", "monitor.enabled=false", "namespaces={a}"} {
		if rules := ofKind(parse(t, render(t, "ops", "--set", set)), "MonitorRule"); len(rules) > 0 {
			t.Errorf("with %s there are %d rules", set, len(rules))
		}
	}
}

// What is built in is read where somebody asks for it by name, and Secrets are not even then.
func TestBuiltInKindsHaveARoleOfTheirOwn(t *testing.T) {
	objects := parse(t, render(t, "ops", "--set", "monitor.builtin={deployments.apps,services,ingresses.networking.k8s.io}"))
	role := as[rbacv1.ClusterRole](t, named(t, objects, "ClusterRole", "", "slipway-monitor-builtin"))
	want := []string{
		"get /services []", "get apps/deployments []", "get networking.k8s.io/ingresses []",
		"list /services []", "list apps/deployments []", "list networking.k8s.io/ingresses []",
		"watch /services []", "watch apps/deployments []", "watch networking.k8s.io/ingresses []",
	}
	if diff := cmp.Diff(want, grants(role.Rules)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	bound := as[rbacv1.ClusterRoleBinding](t, named(t, objects, "ClusterRoleBinding", "", role.Name))
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: monitorName, Namespace: "ops"}}
	if bound.RoleRef.Name != role.Name || !cmp.Equal(subject, bound.Subjects) {
		t.Errorf("the binding is of %v to %v", bound.RoleRef, bound.Subjects)
	}
}

// No rule that is shipped lets the monitor read Secrets, or write anything but what is its own.
func TestTheMonitorReadsNoSecretsAndWritesOnlyWhatIsItsOwn(t *testing.T) {
	objects := parse(t, render(t, "ops"))
	own := []string{"create events.k8s.io/events []", "patch events.k8s.io/events []", "patch slipway.dev/monitorrules/status []"}
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		for _, object := range ofKind(objects, kind) {
			binding := as[rbacv1.ClusterRoleBinding](t, object)
			// The operator keeps the subjects of the one for the pods of Gateways.
			if len(binding.Subjects) == 0 || binding.Subjects[0].Name != monitorName || binding.RoleRef.Name == "system:auth-delegator" {
				continue
			}
			role := as[rbacv1.ClusterRole](t, named(t, objects, binding.RoleRef.Kind, binding.Namespace, binding.RoleRef.Name))
			for _, grant := range grants(role.Rules) {
				verb, _, _ := strings.Cut(grant, " ")
				write := !slices.Contains([]string{"get", "list", "watch"}, verb)
				if strings.Contains(grant, "secrets") || strings.Contains(grant, "*") || kind == "ClusterRoleBinding" && write && !slices.Contains(own, grant) {
					t.Errorf("by %s %s the monitor may %s", kind, binding.Name, grant)
				}
			}
		}
	}
}

func TestTheMonitorsPodIsRestricted(t *testing.T) {
	set := as[appsv1.StatefulSet](t, named(t, parse(t, render(t, "ops")), "StatefulSet", "ops", monitorName))
	pod := set.Spec.Template.Spec
	container := pod.Containers[0]
	if c := container.SecurityContext; !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("the container: %+v", c)
	}
	if s := pod.SecurityContext; !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || s.FSGroup == nil {
		t.Errorf("the pod: %+v", s)
	}
	if *set.Spec.Replicas != 1 || set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		t.Errorf("%d replicas, and the volume is %+v", *set.Spec.Replicas, set.Spec.PersistentVolumeClaimRetentionPolicy)
	}
	// A probe that fails while the API server is away would end the one who could tell what happened before.
	for name, probe := range map[string]*corev1.Probe{"startup": container.StartupProbe, "liveness": container.LivenessProbe} {
		if probe.HTTPGet == nil || probe.HTTPGet.Path != "/healthz" {
			t.Errorf("the %s probe asks %+v", name, probe.ProbeHandler)
		}
	}
}

// hookRights are the rules that the component config/backup-hooks puts into the role.
func hookRights(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	component := struct {
		Patches []struct{ Patch string }
	}{}
	if err := yaml.Unmarshal([]byte(readFile(t, "..", "..", "config", "backup-hooks", "kustomization.yaml")), &component); err != nil {
		t.Fatal(err)
	}
	for _, one := range component.Patches {
		var steps []struct {
			Path  string
			Value any
		}
		if err := yaml.Unmarshal([]byte(one.Patch), &steps); err != nil {
			t.Fatal(err)
		}
		if steps[0].Path != "/rules" {
			continue
		}
		raw, err := yaml.Marshal(steps[0].Value)
		if err != nil {
			t.Fatal(err)
		}
		var rules []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict(raw, &rules); err != nil {
			t.Fatal(err)
		}
		return rules
	}
	t.Fatal("the component gives no right")
	return nil
}

// Running commands in pods is a right that only who asks for it gives.
func TestHooksHaveARoleOfTheirOwnAndOnlyWhereAskedFor(t *testing.T) {
	const name = "slipway-backup-hooks"
	want := hookRights(t)
	for set, namespaces := range map[string][]string{
		"backup.hooks.enabled=false":                           nil,
		"backup.hooks.enabled=true":                            {""},
		"backup.hooks.enabled=true,namespaces={team-a,team-b}": {"team-a", "team-b"},
	} {
		t.Run(set, func(t *testing.T) {
			objects := parse(t, render(t, "ops", "--set", set))
			deployment := as[appsv1.Deployment](t, named(t, objects, "Deployment", "ops", operatorName))
			reported := slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--backup-hooks")
			if reported != (namespaces != nil) {
				t.Errorf("the operator is told to run hooks: %v", reported)
			}
			var got []string
			for _, object := range objects {
				kind := object.GetKind()
				if kind != "ClusterRole" && kind != "Role" {
					continue
				}
				role := as[rbacv1.ClusterRole](t, object)
				exec := slices.ContainsFunc(grants(role.Rules), func(grant string) bool { return strings.Contains(grant, "exec") })
				if exec != (object.GetName() == name && namespaces != nil) {
					t.Errorf("%s %s may exec: %v", kind, object.GetName(), exec)
				}
				if object.GetName() != name {
					continue
				}
				bound := as[rbacv1.ClusterRoleBinding](t, named(t, objects, kind+"Binding", object.GetNamespace(), name))
				if namespaces == nil {
					// It is there without a right, so that it takes away what another install gave, and goes with this one.
					if len(role.Rules) > 0 || len(bound.Subjects) > 0 {
						t.Errorf("without being asked for: %v for %v", role.Rules, bound.Subjects)
					}
					continue
				}
				got = append(got, object.GetNamespace())
				if diff := cmp.Diff(grants(want), grants(role.Rules)); diff != "" {
					t.Errorf("-config +chart:\n%s", diff)
				}
				subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: operatorName, Namespace: "ops"}}
				if bound.RoleRef.Kind != kind || bound.RoleRef.Name != name || !cmp.Equal(subject, bound.Subjects) {
					t.Errorf("the binding in %q is of %v to %v", object.GetNamespace(), bound.RoleRef, bound.Subjects)
				}
			}
			if !slices.Equal(namespaces, got) {
				t.Errorf("there are roles in %q, want %q", got, namespaces)
			}
		})
	}
}

// A policy that selects nothing protects nothing; one that keeps the operator out is worse
// than none.
func TestTheNetworkPoliciesSelectWhatTheyAreAbout(t *testing.T) {
	objects := parse(t, render(t, "ops", "-f", "testdata/values/everything.yaml", "--set", "webhook.enabled=true"))
	deployment := as[appsv1.Deployment](t, named(t, objects, "Deployment", "ops", operatorName))
	operator := deployment.Spec.Template
	pods := desired.Deployment(desired.Inputs{Gateway: &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "edge"}}}).Spec.Template

	monitor := as[appsv1.StatefulSet](t, named(t, objects, "StatefulSet", "ops", monitorName)).Spec.Template
	ofMonitor := as[networkingv1.NetworkPolicy](t, named(t, objects, "NetworkPolicy", "ops", monitorName))
	ofOperator := as[networkingv1.NetworkPolicy](t, named(t, objects, "NetworkPolicy", "ops", operatorName))
	ofGateways := as[networkingv1.NetworkPolicy](t, named(t, objects, "NetworkPolicy", "edge", "slipway-gateways"))
	for _, c := range []struct {
		what   string
		policy *networkingv1.NetworkPolicy
		labels map[string]string
		want   bool
	}{
		{"the operator's and the operator", ofOperator, operator.Labels, true},
		{"the operator's and a gateway", ofOperator, pods.Labels, false},
		{"the gateways' and a gateway", ofGateways, pods.Labels, true},
		{"the gateways' and the operator", ofGateways, operator.Labels, false},
		{"the monitor's and the monitor", ofMonitor, monitor.Labels, true},
		{"the monitor's and the operator", ofMonitor, operator.Labels, false},
		{"the operator's and the monitor", ofOperator, monitor.Labels, false},
	} {
		if got := selects(t, &c.policy.Spec.PodSelector, c.labels); got != c.want {
			t.Errorf("%s: selected %v, want %v", c.what, got, c.want)
		}
	}
	place := func(namespace string) map[string]string {
		return map[string]string{corev1.LabelMetadataName: namespace}
	}
	prometheus := map[string]string{"app.kubernetes.io/name": "prometheus"}
	for _, c := range []struct {
		what      string
		policy    *networkingv1.NetworkPolicy
		namespace string
		pod       map[string]string
		want      []int32
	}{
		{"anybody at the operator", ofOperator, "team", nil, []int32{9443}},
		{"Prometheus at the operator", ofOperator, "monitoring", prometheus, []int32{8080, 9443}},
		{"anybody at the monitor", ofMonitor, "team", nil, []int32{8082}},
		{"Prometheus at the monitor", ofMonitor, "monitoring", prometheus, []int32{8080, 8082}},
		{"Prometheus at a gateway", ofGateways, "monitoring", prometheus, []int32{desired.AdminPort}},
		{"the operator at a gateway", ofGateways, "ops", operator.Labels, []int32{desired.AdminPort}},
		{"a replica at another", ofGateways, "edge", pods.Labels, []int32{quota.Port}},
		{"a gateway of another namespace at a gateway", ofGateways, "team", pods.Labels, nil},
		{"somebody with the operator's labels at a gateway", ofGateways, "team", operator.Labels, nil},
		{"another pod of the operator's namespace at a gateway", ofGateways, "ops", prometheus, nil},
	} {
		if diff := cmp.Diff(c.want, letsIn(t, c.policy, place(c.namespace), c.pod)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.what, diff)
		}
	}
	// Every port of a gateway but the admin port is for clients.
	var clients []int32
	for _, port := range pods.Spec.Containers[0].Ports {
		if *port.ContainerPort != desired.AdminPort {
			clients = append(clients, *port.ContainerPort)
		}
	}
	open := as[networkingv1.NetworkPolicy](t, named(t, parse(t, render(t, "ops", "--set", "networkPolicy.enabled=true", "--set", "networkPolicy.gatewayNamespaces={edge}")), "NetworkPolicy", "edge", "slipway-gateways"))
	if diff := cmp.Diff(clients, letsIn(t, open, place("anywhere"), nil)); diff != "" {
		t.Errorf("clients at a gateway: -want +got:\n%s", diff)
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(labels.Set(set))
}

// letsIn returns the ports at which a policy lets in a pod of a namespace.
func letsIn(t *testing.T, policy *networkingv1.NetworkPolicy, namespace, pod map[string]string) []int32 {
	t.Helper()
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("%s is about %v", policy.Name, policy.Spec.PolicyTypes)
	}
	var ports []int32
	for _, rule := range policy.Spec.Ingress {
		in := len(rule.From) == 0
		for _, peer := range rule.From {
			there := namespace[corev1.LabelMetadataName] == policy.Namespace // without a selector it is that of the policy
			if peer.NamespaceSelector != nil {
				there = selects(t, peer.NamespaceSelector, namespace)
			}
			in = in || peer.IPBlock == nil && there && (peer.PodSelector == nil || selects(t, peer.PodSelector, pod))
		}
		for _, port := range rule.Ports {
			if in {
				ports = append(ports, port.Port.IntVal)
			}
		}
	}
	slices.Sort(ports)
	return ports
}
