//go:build apitest

package webapp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
)

// shippedRights are the roles in config/rbac, as a user of the API server has them: those on
// what it works on, and those in the operator's own namespace.
func (f *fixture) shippedRights(own string) (user string, grantOwn func()) {
	f.Helper()
	user = "operator-of-" + own
	cluster, role := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	for file, into := range map[string]any{"role.yaml": cluster, "contentkey.yaml": role} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "rbac", file))
		if err != nil {
			f.Fatal(err)
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(string(raw), "---\n"), "\n---\n")
		if err := yaml.UnmarshalStrict([]byte(first), into); err != nil {
			f.Fatal(err)
		}
	}
	cluster.Name, role.Namespace = user, own
	bind := func(namespace, kind, name string) {
		f.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})
	}
	f.create(cluster)
	bind(f.namespace, "ClusterRole", user)
	return user, func() {
		f.create(role)
		bind(own, "Role", role.Name)
	}
}

// Without the right to the key what runs goes on, and what needs a hash says what it waits
// for. With the rights that are shipped it starts without help.
func TestWithoutTheRightToTheKeyStatusSaysSo(t *testing.T) {
	f := newFixture(t)
	own := env.Namespace(t)
	started := env.StartOperator(t, nil, f.namespace)
	app := f.withConfig()
	f.settle()
	started.Stop(t)
	before := f.leftWithoutKey(app, ofConfig("one"))
	user, grantOwn := f.shippedRights(own)

	f.keyed(own, func(config *rest.Config) { config.Impersonate.UserName = user })
	f.relabel("1")
	f.stays(before, "without the right to a key")
	f.setPassword("two")
	waiting := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonForbidden)
	message := meta.FindStatusCondition(waiting.Status.Conditions, "Ready").Message
	for _, word := range []string{contentkey.SecretName, own, user, "is forbidden", "keys the hashes of configuration"} {
		if !strings.Contains(message, word) {
			t.Errorf("message %q does not name %q", message, word)
		}
	}
	if after := f.deployment(); after.Generation != before.Generation {
		t.Errorf("the Deployment was changed: %v", equal(before.Spec, after.Spec))
	}
	if _, err := f.theKey(own); !apierrors.IsNotFound(err) {
		t.Errorf("there is a key (%v)", err)
	}
	grantOwn()
	if after := f.changes(before); f.keyID(after) == "" {
		t.Errorf("recorded without a key: %v", f.hashes(after))
	}
}
