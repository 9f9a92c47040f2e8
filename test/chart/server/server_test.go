//go:build chart

package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

const (
	chartFolder = "../../../charts/slipway"
	namespace   = "slipway-system"
	// limit is the value of a field that v0.1.0 does not know.
	limit = int32(1234)
)

// world is an API server, and the programs that speak to it.
type world struct {
	*testing.T
	client.Client
	config *rest.Config
}

// begin starts an API server that knows nothing of Slipway.
func begin(t *testing.T) *world {
	t.Helper()
	server := &envtest.Environment{}
	config, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := server.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	direct, err := client.New(config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, direct, config}
}

func (w *world) helm(args ...string) (string, error) {
	output, err := exec.CommandContext(w.Context(), os.Getenv("HELM"), append(args, "-n", namespace)...).CombinedOutput()
	return string(output), err
}

func (w *world) mustHelm(args ...string) {
	w.Helper()
	if output, err := w.helm(args...); err != nil {
		w.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// inForce waits until the policy that refuses older definitions is in force, which takes the
// API server a moment.
func (w *world) inForce() {
	w.Helper()
	environment.Eventually(w.T, func() error {
		older := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "slipway-schema-revisions", Namespace: namespace}}
		if err := w.Create(w.Context(), older, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "this would take it back to 0") {
			return fmt.Errorf("older definitions are not refused: %w", err)
		}
		return nil
	})
}

// refused runs Helm, which must fail and say why.
func (w *world) refused(args ...string) {
	w.Helper()
	output, err := w.helm(args...)
	for _, reason := range []string{"this would take it back to 0", "only the newer one knows would be dropped", "--set crds.install=false"} {
		if err == nil || !strings.Contains(output, reason) {
			w.Fatalf("helm %s: error %v, want one that says %q\n%s", strings.Join(args, " "), err, reason, output)
		}
	}
}

// old and today are the arguments for the chart of the last release and of this checkout.
func old(command string, more ...string) []string {
	return append([]string{command, "slipway", os.Getenv("OLD_RELEASE") + "/chart", "--force-conflicts", "--set", "replicas=2"}, more...)
}

func today(command string, more ...string) []string {
	return append([]string{command, "slipway", chartFolder, "--force-conflicts", "--set", "replicas=2"}, more...)
}

// state is the identity of all objects of Slipway and of their definitions.
func (w *world) state() []string {
	w.Helper()
	var all []string
	for _, kind := range []string{"WebApp", "APIGateway"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(slipwayv1alpha1.SchemeGroupVersion.WithKind(kind))
		if err := w.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}
		for i := range list.Items {
			all = append(all, fmt.Sprintf("%s %s %s", kind, list.Items[i].GetName(), list.Items[i].GetUID()))
		}
	}
	for _, name := range []string{"webapps.slipway.dev", "apigateways.slipway.dev"} {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err := w.Get(w.Context(), types.NamespacedName{Name: name}, crd); err != nil {
			w.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s", name, crd.GetUID()))
	}
	slices.Sort(all)
	return all
}

// runs checks the image of the operator.
func (w *world) runs(tag string) {
	w.Helper()
	deployment := &appsv1.Deployment{}
	if err := w.Get(w.Context(), types.NamespacedName{Namespace: namespace, Name: "slipway-operator"}, deployment); err != nil {
		w.Fatal(err)
	}
	if got := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(got, ":"+tag) {
		w.Errorf("the operator is %s, want %s", got, tag)
	}
}

// keeps writes the APIGateway, which drops what its definition does not know, and checks that
// the field is there.
func (w *world) keeps(after string) {
	w.Helper()
	edge := &slipwayv1alpha1.APIGateway{}
	key := types.NamespacedName{Namespace: "default", Name: "edge"}
	if err := w.Get(w.Context(), key, edge); err != nil {
		w.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"after":%q}}}`, after))
	if err := w.Patch(w.Context(), edge, patch); err != nil {
		w.Fatal(err)
	}
	if edge.Spec.Connections == nil || edge.Spec.Connections.Max == nil || *edge.Spec.Connections.Max != limit {
		w.Errorf("after %s spec.connections.max is lost: %+v", after, edge.Spec.Connections)
	}
}

// hasRules checks that the rules of the monitor are there, and whether the one that suspend suspends is.
func (w *world) hasRules(after string, suspended bool) {
	w.Helper()
	rules := &slipwayv1alpha1.MonitorRuleList{}
	if err := w.List(w.Context(), rules, client.MatchingLabels{"app.kubernetes.io/component": "monitor"}); err != nil {
		w.Fatal(err)
	}
	if len(rules.Items) < 5 {
		w.Errorf("after %s there are %d rules", after, len(rules.Items))
	}
	for i := range rules.Items {
		rule := &rules.Items[i]
		if want := suspended && rule.Name == "flapping"; rule.Spec.Suspend != want {
			w.Errorf("after %s %s is suspended: %t, want %t", after, rule.Name, rule.Spec.Suspend, want)
		}
	}
}

// suspend does what an administrator does with a rule that she does not want.
func (w *world) suspend() {
	w.Helper()
	rule := &slipwayv1alpha1.MonitorRule{ObjectMeta: metav1.ObjectMeta{Name: "flapping"}}
	if err := w.Patch(w.Context(), rule, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))); err != nil {
		w.Fatal(err)
	}
}

func TestTheChartIsUpgradedRolledBackAndInstalledAgain(t *testing.T) {
	w := begin(t)
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	if output, err := exec.CommandContext(t.Context(), kubectl, "apply", "--server-side", "-f", os.Getenv("OLD_RELEASE")+"/install.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	held := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: "default", Finalizers: []string{"example.com/takes-time"}},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080},
	}
	edge := &slipwayv1alpha1.APIGateway{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "default"},
		Spec:       slipwayv1alpha1.APIGatewaySpec{Routes: []slipwayv1alpha1.Route{{BackendService: &slipwayv1alpha1.BackendService{Name: "held", Port: 8080}}}},
	}
	environment.Eventually(t, func() error { return client.IgnoreAlreadyExists(w.Create(t.Context(), held)) })
	environment.Eventually(t, func() error { return client.IgnoreAlreadyExists(w.Create(t.Context(), edge)) })
	before := w.state()

	// From install.yaml to a chart of the same release, and to this one.
	w.mustHelm(old("install", "--take-ownership", "--set", "crds.refuseDowngrade=false")...)
	w.runs("v0.1.0")
	w.mustHelm(today("upgrade")...)
	w.runs("v0.2.0")
	w.hasRules("the upgrade", false)
	w.suspend()
	most := limit
	environment.Eventually(t, func() error {
		patch := client.MergeFrom(edge.DeepCopy())
		edge.Spec.Connections = &slipwayv1alpha1.ConnectionLimits{Max: &most}
		if err := w.Patch(context.WithoutCancel(t.Context()), edge, patch); err != nil {
			return err
		}
		if edge.Spec.Connections == nil {
			return fmt.Errorf("the definition is not in force yet")
		}
		return nil
	})
	w.keeps("the upgrade")

	w.inForce()

	// Back: refused before anything is changed, and the way out that docs/install.md tells.
	w.refused("rollback", "slipway", "1", "--force-conflicts")
	w.mustHelm("rollback", "slipway", "2", "--force-conflicts")
	w.refused(old("upgrade")...)
	w.runs("v0.2.0")
	w.keeps("the refused rollback")
	w.mustHelm(old("upgrade", "--set", "crds.install=false")...)
	w.runs("v0.1.0")
	w.keeps("the older programs")
	w.mustHelm(today("upgrade")...)
	w.mustHelm(today("upgrade", "--set", "podLabels.try=this")...)
	w.mustHelm("rollback", "slipway", "--force-conflicts")
	w.runs("v0.2.0")
	w.hasRules("the rollback", true)

	// Away, with an object on its way out, and back again.
	if err := w.Delete(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	w.mustHelm("uninstall", "slipway")
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "slipway-operator"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the operator after the uninstall: %v, want none", err)
	}
	w.refused(old("install")...)
	w.mustHelm("uninstall", "slipway")
	w.mustHelm(today("install")...)
	w.runs("v0.2.0")
	w.keeps("the second install")
	w.hasRules("the second install", true)
	if now := w.state(); !slices.Equal(before, now) {
		t.Errorf("the objects are %v, were %v", now, before)
	}
	if err := w.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(held), held); !apierrors.IsNotFound(err) {
		t.Errorf("what is no longer held is there: %v", err)
	}
}
