//go:build apitest

package operator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// excessRights returns what the metric says, by right.
func excessRights(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != operator.ExcessRights.Name {
			continue
		}
		for _, metric := range family.GetMetric() {
			found[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	return found
}

// TestALimitedOperatorTellsOfTheRightThatAnInstallLeft gives it the ClusterRole for hooks that an install for all namespaces had.
func TestALimitedOperatorTellsOfTheRightThatAnInstallLeft(t *testing.T) {
	namespace := env.Namespace(t)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks-of-" + namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "slipway-operator", Namespace: namespace}},
	}
	own := &rbacv1.Role{}
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	if err == nil {
		err = yaml.Unmarshal(raw, own)
	}
	if err != nil {
		t.Fatal(err)
	}
	own.TypeMeta, own.Namespace = metav1.TypeMeta{}, namespace
	ownBinding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: own.Name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name}, Subjects: binding.Subjects,
	}
	for _, object := range []client.Object{role, binding, own, ownBinding} {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = env.Client.Delete(context.Background(), binding)
		_ = env.Client.Delete(context.Background(), role)
	})
	as := func(config *rest.Config) {
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + namespace + ":slipway-operator", Groups: []string{"system:serviceaccounts", "system:authenticated"},
		}
	}
	config := rest.CopyConfig(env.Config)
	as(config)
	kube := kubernetes.NewForConfigOrDie(config)
	environment.Eventually(t, func() error { // the API server reads RBAC from its caches
		answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Resource: "pods", Subresource: "exec",
			}},
		}, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("it may not exec yet")
		}
		return err
	})
	env.StartOperatorWith(t, func(config *rest.Config, options *environment.Options) {
		as(config)
		options.Namespaces, options.ClusterRights, options.CheckRights = []string{namespace}, false, true
	})
	environment.Eventually(t, func() error {
		found := excessRights(t)
		if found["create pods/exec"] != 1 {
			return fmt.Errorf("the metric is %v", found)
		}
		for right, value := range found {
			if right != "create pods/exec" && value != 0 {
				return fmt.Errorf("it says that the operator may %s", right)
			}
		}
		return nil
	})
}
