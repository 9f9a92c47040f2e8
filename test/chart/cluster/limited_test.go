//go:build chartcluster

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// What the rights are is asked in test/chart/server. Here it is seen that they are enough:
// all that is in the namespace works, and nothing is tried that they do not allow.
func TestALimitedInstallWorksInItsNamespaceAlone(t *testing.T) {
	w := begin(t)
	elsewhere := &world{livetest.New(t, cluster)}
	w.helm("install", today("--create-namespace", "--set", "namespaces={"+w.Namespace+"}", "--set", "gateway.classes=false,metrics.authentication=false")...)
	w.hasNoRightInTheCluster()

	// What is elsewhere comes first, so that there was time to see it.
	theirs, secret := app(1)
	edge := gateway(1)
	elsewhere.Create(secret, theirs, edge)
	shop, secret := app(2)
	w.Create(secret, shop, gateway(2))
	w.settledInside()
	w.answers(w.url(appName, "/1"), "from a Secret")
	w.answers(w.url(gatewayName, "/shop/1"), "path: /shop/1")

	// A change, a drift and a deletion are worked on, too.
	w.scale(3)
	w.Delete(&corev1.Service{ObjectMeta: shop.ObjectMeta})
	w.Eventually(func() error { return w.Get(appName, &corev1.Service{}) })
	w.settledInside()
	w.answers(w.url(gatewayName, "/shop/2"), "path: /shop/2")
	w.Delete(&slipwayv1alpha1.WebApp{ObjectMeta: shop.ObjectMeta})
	w.Gone(appName, &slipwayv1alpha1.WebApp{})

	elsewhere.untouched(theirs, edge)
	w.nothingWasForbidden()
}

// hasNoRightInTheCluster checks that nobody made a role, a binding or a webhook of the
// cluster.
func (w *world) hasNoRightInTheCluster() {
	w.Helper()
	for _, kind := range []schema.GroupVersionKind{
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	} {
		for _, object := range list(w.Context(), w, kind) {
			if strings.HasPrefix(object.GetName(), "slipway-") && !strings.HasPrefix(object.GetName(), "slipway-test-") || object.GetLabels()["app.kubernetes.io/instance"] == "slipway" {
				w.Errorf("the release has the %s %q", kind.Kind, object.GetName())
			}
		}
	}
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := cluster.List(w.Context(), bindings); err != nil {
		w.Fatal(err)
	}
	for _, binding := range bindings.Items {
		for _, subject := range binding.Subjects {
			if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == system {
				w.Errorf("the ClusterRoleBinding %q is for %q", binding.Name, subject.Name)
			}
		}
	}
}

// settledInside waits until what is in the namespace is Ready.
func (w *world) settledInside() {
	w.Helper()
	w.Eventually(func() error { return w.operatorIs(this().operator) })
	w.Eventually(w.appReady)
	w.Eventually(func() error { return w.gatewayReady(this().gateway) })
}

// scale changes how many pods the application has.
func (w *world) scale(replicas int32) {
	w.Helper()
	livetest.Update(w.Fixture, appName, &slipwayv1alpha1.WebApp{}, func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = &replicas })
}

// untouched checks that nobody has written objects, which is what they were when they were
// created, and that nothing was made for them.
func (w *world) untouched(created ...client.Object) {
	w.Helper()
	for _, object := range created {
		version := object.GetResourceVersion()
		if err := w.Get(object.GetName(), object); err != nil {
			w.Fatal(err)
		}
		if now := object.GetResourceVersion(); now != version {
			w.Errorf("%T %q has the version %s, was created with %s", object, object.GetName(), now, version)
		}
	}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "Pod"},
		{Version: "v1", Kind: "Event"},
	} {
		for _, object := range list(w.Context(), w, kind) {
			if object.GetNamespace() == w.Namespace {
				w.Errorf("the %s %q was made", kind.Kind, object.GetName())
			}
		}
	}
}

// nothingWasForbidden reads the logs of all operators.
func (w *world) nothingWasForbidden() {
	w.Helper()
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		w.Fatal(err)
	}
	pods, err := cluster.OperatorPods(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	whole := ""
	for _, pod := range pods {
		log, err := clientset.CoreV1().Pods(system).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if lower := strings.ToLower(line); strings.Contains(lower, "forbidden") || strings.Contains(lower, "unauthorized") {
				w.Errorf("operator %q: %s", pod.Name, line)
			}
		}
		whole += string(log)
	}
	if !strings.Contains(whole, `"successfully acquired lease`) && !strings.Contains(whole, "Starting workers") {
		w.Errorf("the logs are not those of an operator that works:\n%.1000s", whole)
	}
}
