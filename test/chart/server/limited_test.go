//go:build chart

package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/operator"
)

// asOperator returns the access that the operator's token gives.
func (w *world) asOperator() client.Client {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "slipway-operator", Namespace: namespace}}
	request := &authenticationv1.TokenRequest{}
	if err := w.SubResource("token").Create(w.Context(), account, request); err != nil {
		w.Fatal(err)
	}
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken, config.QPS = request.Status.Token, -1
	operators, err := client.New(config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	return operators
}

// may asks the API server whether somebody has a right. An empty namespace is the cluster.
func (w *world) may(who client.Client, verb, group, resource, name, namespace string) bool {
	w.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name},
	}}
	if err := who.Create(w.Context(), review); err != nil {
		w.Fatal(err)
	}
	return review.Status.Allowed
}

// Asked with its own token about every right that an operator for all namespaces has, and
// some that none has: in its namespaces it has the first, elsewhere nothing but those to GatewayClasses, and to ask who wants metrics.
func TestALimitedInstallHasNoRightInTheClusterButToClasses(t *testing.T) {
	w := begin(t)
	inside, outside := []string{"team-a", "team-b"}, []string{"", namespace, "default", "kube-system"}
	for _, name := range inside {
		if err := w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	w.mustHelm(today("install", "--create-namespace", "--set", "namespaces={team-a,team-b}", "--set", "networkPolicy.enabled=true")...)
	who := w.asOperator()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		group, name := rule.APIGroups[0], ""
		if len(rule.ResourceNames) > 0 {
			name = rule.ResourceNames[0]
		}
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, namespace := range slices.Concat(inside, outside) {
					// A webhook and the monitor need rights in the cluster, so there are none.
					inCluster := []string{"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"}
					want := slices.Contains(inside, namespace) && !slices.Contains(inCluster, group) && !slices.Contains([]string{"clusterroles", "clusterrolebindings", "namespaces"}, resource)
					// Every operator reports on its leadership in its own namespace, and makes its key there.
					own := resource == "events" && verb != "list" || resource == "secrets" && verb == "create" || resource == "leases"
					want = want || namespace == outside[1] && own || strings.HasPrefix(resource, "gatewayclasses")
					if w.may(who, verb, group, resource, name, namespace) != want {
						t.Errorf("in namespace %q it may %s %s: %v, want %v", namespace, verb, resource, !want, want)
					}
				}
			}
		}
	}
	for _, right := range [][3]string{
		{"list", "", "nodes"},
		{"list", "", "namespaces"},
		{"impersonate", "", "users"},
		{"*", "*", "*"},
		{"bind", "rbac.authorization.k8s.io", "clusterroles"},
		{"escalate", "rbac.authorization.k8s.io", "roles"},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings"},
		{"list", "apiextensions.k8s.io", "customresourcedefinitions"},
	} {
		for _, namespace := range slices.Concat(inside, outside) {
			if w.may(who, right[0], right[1], right[2], "", namespace) {
				t.Errorf("in namespace %q it may %s %s", namespace, right[0], right[2])
			}
		}
	}
}
