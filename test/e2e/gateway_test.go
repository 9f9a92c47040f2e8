//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// gatewayManifest is the one that everybody starts with. A manifest this short must work.
const gatewayManifest = `
apiVersion: slipway.dev/v1alpha1
kind: APIGateway
metadata: {name: edge}
spec:
  replicas: 2
  routes:
    - {host: api.example.com, path: /users/, backendService: {name: user-service, port: 8080}}
    - {host: api.example.com, path: /products/, backendService: {name: product-service, port: 8081}}
`

const (
	usersURL    = "http://api.example.com/users/1"
	productsURL = "http://api.example.com/products/2"
	newURL      = "http://api.example.com/new"
)

// One gateway is made, scaled, changed, changed by others, and deleted. The test runs before
// the parallel tests, because it measures.
func TestAGatewayServesThroughEveryChange(t *testing.T) {
	f := newGatewayFixture(newFixture(t))
	f.Create(f.demo("user-service", 8080), f.demo("product-service", 8081))
	f.applyManifest(gatewayManifest)
	f.Kubectl("wait", "--for=condition=Ready", "slwgw/"+gatewayName, "--timeout=120s")
	f.waitGateway(gatewayReady(2, 2))
	through := f.through()
	f.mustAnswer(through, usersURL, "Hello from user-service-", "path: /users/1")
	f.mustAnswer(through, productsURL, "Hello from product-service-", "path: /products/2")
	f.runsConfined()
	f.kubectlUnderstands()

	load := []*livetest.Traffic{f.Traffic(through, usersURL), f.Traffic(through, productsURL)}
	f.scaleGateway(3)
	f.scaleGateway(2)
	f.addRoute(through)
	for _, l := range load {
		l.Stop("a gateway scaled from 2 to 3 and back, and a new route")
	}
	f.deleteDeployment(through)
	f.deleteGateway()
	f.wasTruthful()
}

func (f *gatewayFixture) applyManifest(manifest string) {
	f.Helper()
	file := filepath.Join(f.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Kubectl("apply", "-f", file)
}

// mustAnswer asks once: what status calls live must answer.
func (f *gatewayFixture) mustAnswer(through *http.Client, url string, parts ...string) {
	f.Helper()
	body, err := livecluster.Ask(f.Context(), through, url)
	if err != nil {
		f.Fatalf("%s: %v", url, err)
	}
	for _, part := range parts {
		if !strings.Contains(body, part) {
			f.Errorf("%s answers %q, want %q in it", url, body, part)
		}
	}
}

// runsConfined checks what the restricted level does not ask for, and what it does.
func (f *gatewayFixture) runsConfined() {
	f.Helper()
	for _, pod := range f.gatewayPods() {
		container := pod.Spec.Containers[0].SecurityContext
		if container == nil || container.ReadOnlyRootFilesystem == nil || !*container.ReadOnlyRootFilesystem {
			f.Errorf("pod %q may write to its root file system: %+v", pod.Name, container)
		}
		if context := pod.Spec.SecurityContext; context.RunAsNonRoot == nil || !*context.RunAsNonRoot {
			f.Errorf("pod %q may run as root: %+v", pod.Name, context)
		}
	}
}

func (f *gatewayFixture) kubectlUnderstands() {
	f.Helper()
	table := strings.Split(strings.TrimSpace(f.Kubectl("get", "slwgw")), "\n")
	wantColumns := []string{"NAME", "READY", "ROUTES", "REPLICAS", "ADDRESS", "AGE", "REASON"}
	if got := strings.Fields(table[0]); !slices.Equal(got, wantColumns) {
		f.Errorf("columns %v, want %v", got, wantColumns)
	}
	wantRow := []string{gatewayName, "True", "2/2", "2/2", "http://" + gatewayName + "." + f.Namespace + ".svc.cluster.local"}
	if row := strings.Fields(table[1]); len(row) < len(wantRow) || !slices.Equal(row[:len(wantRow)], wantRow) {
		f.Errorf("row %v, want %v", row, wantRow)
	}
	all := f.Kubectl("get", "slipway", "-o", "name")
	for _, want := range []string{"apigateway.slipway.dev/" + gatewayName, "webapp.slipway.dev/user-service", "webapp.slipway.dev/product-service"} {
		if !strings.Contains(all, want) {
			f.Errorf("kubectl get slipway lists %q, want %s in it", all, want)
		}
	}
	for field, want := range map[string]string{
		"apigateway":                            "one HTTP entrance",
		"apigateway.spec.routes":                "most specific answers",
		"apigateway.spec.routes.backendService": "Service that answers",
		"apigateway.spec.drainSeconds":          "Default 30",
		"apigateway.status.routes.notLive":      "not live",
	} {
		text := strings.Join(strings.Fields(f.Kubectl("explain", field)), " ")
		if !strings.Contains(text, want) {
			f.Errorf("kubectl explain %s says %q, want %q in it", field, text, want)
		}
	}
}

// scaleGateway changes the number of pods and waits until there are no others.
func (f *gatewayFixture) scaleGateway(replicas int32) {
	f.Helper()
	f.Kubectl("scale", "slwgw/"+gatewayName, fmt.Sprintf("--replicas=%d", replicas))
	f.waitGateway(gatewayReady(replicas, 2))
	f.Eventually(func() error {
		list := &corev1.PodList{}
		err := cluster.List(f.Context(), list, client.InNamespace(f.Namespace), client.MatchingLabels{slipwayv1alpha1.LabelAPIGateway: gatewayName})
		if err == nil && len(list.Items) != int(replicas) {
			err = fmt.Errorf("the gateway has %d pods, want %d", len(list.Items), replicas)
		}
		return err
	})
}

// addRoute adds a route, measures how soon it answers, and how soon status says that
// every replica serves it.
func (f *gatewayFixture) addRoute(through *http.Client) {
	f.Helper()
	start := time.Now()
	f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) {
		route := *s.Routes[1].DeepCopy()
		route.Path = "/new"
		s.Routes = append(s.Routes, route)
	})
	accepted := time.Now()
	for {
		_, err := livecluster.Ask(f.Context(), through, newURL)
		if err == nil {
			break
		}
		if time.Since(accepted) > livetest.Patience {
			f.Fatalf("the new route does not answer: %v", err)
		}
	}
	f.Measured("a new route answers through the Service %v after the API server", time.Since(accepted).Round(time.Millisecond))
	f.saysPromptly("a new route is called live", start, gatewayReady(2, 3))
	// Whichever replica is asked.
	for range 20 {
		f.mustAnswer(through, newURL, "Hello from product-service-")
	}
}

// deleteDeployment takes the pods away by hand. They come back, and status says all the
// time how it is.
func (f *gatewayFixture) deleteDeployment(through *http.Client) {
	f.Helper()
	before := mustGet(f.fixture, gatewayName, &appsv1.Deployment{})
	start := time.Now()
	f.promptly("a deleted Deployment is noticed", func() { f.Delete(before.DeepCopy()) },
		gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, ""))
	f.waitGateway(gatewayReady(2, 3))
	f.Measured("the gateway is ready again %v after its Deployment was deleted", time.Since(start).Round(time.Millisecond))
	after := mustGet(f.fixture, gatewayName, &appsv1.Deployment{})
	if after.UID == before.UID || after.Status.AvailableReplicas != 2 {
		f.Errorf("the Deployment is %s with %d pods, was %s", after.UID, after.Status.AvailableReplicas, before.UID)
	}
	f.mustAnswer(through, usersURL, "Hello from user-service-")
	f.mustAnswer(through, newURL, "Hello from product-service-")
}

// deleteGateway deletes it: its children go with it, and nothing else does.
func (f *gatewayFixture) deleteGateway() {
	f.Helper()
	before := f.appPods()
	f.Kubectl("delete", "slwgw", gatewayName)
	for _, child := range []client.Object{
		&slipwayv1alpha1.APIGateway{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		&appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{},
	} {
		f.Gone(gatewayName, child)
	}
	f.Gone(gatewayName+"-ingress", &networkingv1.Ingress{})
	f.Eventually(func() error {
		left := f.Kubectl("get", "pods,replicasets", "-o", "name", "-l", slipwayv1alpha1.LabelAPIGateway+"="+gatewayName)
		if left = strings.TrimSpace(left); left != "" {
			return fmt.Errorf("%q is left", left)
		}
		return nil
	})
	if after := f.appPods(); !slices.Equal(after, before) {
		f.Errorf("the applications' pods are %v, were %v", after, before)
	}
	if len(before) != 2 {
		f.Errorf("the applications have the pods %v, want two: the test proves nothing", before)
	}
}

// appPods are the names of the applications' pods.
func (f *gatewayFixture) appPods() []string {
	f.Helper()
	var names []string
	for _, pod := range f.pods() {
		if pod.Labels[slipwayv1alpha1.LabelWebApp] != "" {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}
