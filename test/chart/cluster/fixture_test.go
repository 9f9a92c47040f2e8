//go:build chartcluster

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	chartFolder = "../../../charts/slipway"
	system      = livecluster.SystemNamespace
	// The names of a test's application and gateway, and of the Secret that the application reads.
	appName, gatewayName, secretName = "shop", "edge", "db"
)

// world is a test that installs Slipway itself.
type world struct{ *livetest.Fixture }

// begin returns a test on a cluster without Slipway. When it ends, everything is deleted as
// docs/install.md says, and the cluster must be as it was.
func begin(t *testing.T) *world {
	t.Helper()
	for _, variable := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "KUBECACHEDIR"} {
		t.Setenv(variable, t.TempDir())
	}
	w := &world{livetest.New(t, cluster)}
	if w.bare(t.Context()); t.Failed() {
		t.FailNow()
	}
	t.Cleanup(w.deleteEverything)
	return w
}

// definitions are those that the chart installs.
const definitions = "webapps.slipway.dev apigateways.slipway.dev backups.slipway.dev backupruns.slipway.dev restores.slipway.dev " +
	"monitorrules.slipway.dev gatewayparameters.slipway.dev gatewaypolicies.slipway.dev"

// deleteEverything follows docs/install.md.
func (w *world) deleteEverything() {
	ctx := context.Background() // the test's own has ended
	if w.Failed() {
		w.release(ctx)
	}
	for _, command := range []string{
		"kubectl delete restores.slipway.dev,backups.slipway.dev,apigateways.slipway.dev,webapps.slipway.dev --all --all-namespaces",
		"helm uninstall slipway -n slipway-system --wait",
		"kubectl delete crd " + definitions,
		"kubectl delete validatingadmissionpolicy slipway-crds slipway-schema-revisions",
		"kubectl delete validatingadmissionpolicybinding slipway-crds " + definitions,
		"kubectl delete namespace slipway-system",
	} {
		program, args, _ := strings.Cut(command, " ")
		if output, err := w.run(ctx, program, strings.Fields(args)...); err != nil {
			w.Errorf("%s: %v\n%s", command, err, output)
		}
	}
	if w.Failed() { // perhaps before there was a release
		_, _ = w.run(ctx, "kubectl", "delete", "--ignore-not-found", "-f", os.Getenv("OLD_RELEASE")+"/install.yaml")
	}
	w.bare(ctx)
}

// release removes the finalizers from what a failed test leaves: nobody else would.
func (w *world) release(ctx context.Context) {
	for _, kind := range []string{"WebApp", "APIGateway", "Backup"} {
		for _, object := range list(ctx, w, slipwayv1alpha1.SchemeGroupVersion.WithKind(kind)) {
			if err := cluster.Patch(ctx, &object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				w.Log(err)
			}
		}
	}
}

// bare checks that the cluster as a whole has nothing of Slipway.
func (w *world) bare(ctx context.Context) {
	w.Helper()
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	} {
		for _, object := range list(ctx, w, kind) {
			// The local cluster's own begin with "slipway:", those of the tests with "slipway-test-".
			if name := object.GetName(); strings.Contains(name, "slipway") && !strings.HasPrefix(name, "slipway:") && !strings.HasPrefix(name, "slipway-test-") {
				w.Errorf("the cluster has the %s %q", kind.Kind, name)
			}
		}
	}
}

// list returns the objects of a kind in all namespaces, none where the kind does not exist.
func list(ctx context.Context, w *world, kind schema.GroupVersionKind) []unstructured.Unstructured {
	w.Helper()
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(kind)
	if err := cluster.List(ctx, objects); err != nil && !meta.IsNoMatchError(err) {
		w.Errorf("list %s: %v", kind.Kind, err)
	}
	return objects.Items
}

// run runs helm or kubectl, and returns what it prints.
func (w *world) run(ctx context.Context, program string, args ...string) (string, error) {
	path := map[string]string{"helm": os.Getenv("HELM"), "kubectl": cluster.Kubectl}[program]
	ctx, cancel := context.WithTimeout(ctx, 2*livetest.Patience)
	defer cancel()
	output, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	return string(output), err
}

// helm runs Helm for the release.
func (w *world) helm(command string, args ...string) string {
	w.Helper()
	output, err := w.run(w.Context(), "helm", helmArgs(command, args)...)
	if err != nil {
		w.Fatalf("helm %s %s: %v\n%s", command, strings.Join(args, " "), err, output)
	}
	w.Logf("helm %s %s", command, strings.Join(args, " "))
	return output
}

// kubectl runs kubectl for the cluster as a whole.
func (w *world) kubectl(args ...string) {
	w.Helper()
	if output, err := w.run(w.Context(), "kubectl", args...); err != nil {
		w.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// refused runs Helm, which must fail and say why.
func (w *world) refused(command string, args ...string) {
	w.Helper()
	output, err := w.run(w.Context(), "helm", helmArgs(command, args)...)
	for _, reason := range []string{"this would take it back to 0", "only the newer one knows would be dropped", "--set crds.install=false"} {
		if err == nil || !strings.Contains(output, reason) {
			w.Fatalf("helm %s %s: error %v, want one that says %q\n%s", command, strings.Join(args, " "), err, reason, output)
		}
	}
}

func helmArgs(command string, args []string) []string {
	return append([]string{command, "slipway", "-n", system, "--wait"}, args...)
}

// today and old are the arguments for the chart of this checkout and of the last release,
// each with the images of its programs.
func today(more ...string) []string {
	// A release for some namespaces has no monitor, and a checkout without the program cannot run one.
	monitor := "images.monitor.tag=" + tag("MONITOR_IMAGE")
	if os.Getenv("MONITOR_IMAGE") == "" {
		monitor = "monitor.enabled=false"
	}
	return append([]string{chartFolder, "--force-conflicts", "--set", images(tag("IMAGE"), tag("GATEWAY_IMAGE"), tag("BACKUP_IMAGE")) + "," + monitor}, more...)
}

func old(more ...string) []string {
	return append([]string{os.Getenv("OLD_RELEASE") + "/chart", "--force-conflicts", "--set", images("v0.1.0", "v0.1.0", "") + ",monitor.enabled=false,metrics.authentication=false"}, more...) // it knew neither
}

func images(operator, gateway, backup string) string {
	return fmt.Sprintf("images.operator.tag=%s,images.gateway.tag=%s,images.backup.tag=%s", operator, gateway, backup)
}

// tag returns the tag of the image that a variable names.
func tag(variable string) string {
	_, tag, _ := strings.Cut(os.Getenv(variable), ":")
	return tag
}

// app returns a WebApp of the demo that reads a Secret, and the Secret.
func app(replicas int32) (*slipwayv1alpha1.WebApp, *corev1.Secret) {
	period := int32(1) // no test waits for the next look of the kubelet
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, StringData: map[string]string{"MESSAGE": "from a Secret"}}
	return &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: appName},
		Spec: slipwayv1alpha1.WebAppSpec{
			Image: cluster.DemoImage, Replicas: &replicas, Port: 8080,
			EnvFrom: []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: secretName}}},
			Health:  &slipwayv1alpha1.HealthCheck{Path: "/healthz", PeriodSeconds: &period},
		},
	}, secret
}

// gateway returns an APIGateway that leads to the application.
func gateway(replicas int32) *slipwayv1alpha1.APIGateway {
	return &slipwayv1alpha1.APIGateway{
		ObjectMeta: metav1.ObjectMeta{Name: gatewayName},
		Spec: slipwayv1alpha1.APIGatewaySpec{
			Replicas: &replicas,
			Routes:   []slipwayv1alpha1.Route{{Path: "/shop/", BackendService: &slipwayv1alpha1.BackendService{Name: appName, Port: 8080}}},
			Expose:   &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeClusterIP},
		},
	}
}

// url is the address of a Service of the test, reachable from this machine.
func (w *world) url(service, path string) string {
	w.Helper()
	s := livetest.MustGet(w.Fixture, service, &corev1.Service{})
	return livecluster.Address(s.Spec.ClusterIP, s.Spec.Ports[0].Port) + path
}
