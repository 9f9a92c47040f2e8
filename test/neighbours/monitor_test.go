//go:build neighbours

package neighbours

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// reader makes a ServiceAccount with the role "edit" in the tenant's namespace, and returns how it asks the monitor.
func (t *tenant) reader() (ask func(args ...string) (string, error)) {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: t.Namespace}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: t.Namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: t.Namespace}},
		},
	} {
		if err := t.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		args = append(append([]string{"slipway"}, args...), "-n", t.Namespace, "--monitor-account", t.Namespace+"/reader")
		output, err := exec.CommandContext(ctx, t.admin.Kubectl, args...).CombinedOutput()
		return string(output), err
	}
}

// says waits until an answer has the word, and returns it.
func (t *tenant) says(ask func(args ...string) (string, error), word string, args ...string) (answer string) {
	t.Helper()
	t.Eventually(func() (err error) {
		if answer, err = ask(args...); err != nil || !strings.Contains(answer, word) {
			return fmt.Errorf("%v does not say %q (%w): %s", args, word, err, answer)
		}
		return nil
	})
	return answer
}

// note changes a value of an application's environment.
func (t *tenant) note(app, value string) {
	t.Helper()
	object := &slipwayv1alpha1.WebApp{}
	t.Eventually(func() error {
		if err := t.Get(app, object); err != nil {
			return err
		}
		object.Spec.Env = map[string]slipwayv1alpha1.EnvValue{"NOTE": slipwayv1alpha1.EnvValue(value)}
		return t.Cluster.Update(t.Context(), object)
	})
}

func TestANamespaceThatIsMadeAgainShowsNothingOfItsFormerOwner(t *testing.T) {
	former := newTenant(t, "former")
	former.app("plan")
	former.note("plan", "of-the-former")
	before := time.Now().Format(time.RFC3339)
	questions := [][]string{
		{"changes", "--diff"},
		{"changes", "--kind", "webapps.slipway.dev", "--diff"},
		{"history", "webapps.slipway.dev/plan", "--since", "1h", "--diff"},
		{"health", "--all"},
	}
	ask := former.reader()
	former.says(ask, "of-the-former", "history", "webapps.slipway.dev/plan", "--since", "1h", "--diff")

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: former.Namespace}}
	if err := cluster.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	former.Eventually(func() error {
		again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: former.Namespace}}
		if err := cluster.Create(t.Context(), again); err != nil {
			return err
		}
		return nil
	})
	later := &tenant{Fixture: former.Fixture, admin: cluster}
	ask = later.reader()
	own := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: later.Namespace},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: cluster.DemoImage, Port: 8080},
	}
	if err := cluster.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	later.says(ask, "own", "changes")
	for _, args := range append(questions, []string{"history", "webapps.slipway.dev/plan", "--since", before, "--diff"}) {
		answer, err := ask(args...)
		if strings.Contains(answer, "of-the-former") || strings.Contains(answer, "plan ") || strings.Contains(answer, "webapp/plan") {
			t.Errorf("the new owner asks %v and reads of the former one (%v):\n%s", args, err, answer)
		}
	}
}

// largeEnv is an environment of 0.9 MB, another one for each number. A value has 32 KiB at most.
func largeEnv(number int) map[string]slipwayv1alpha1.EnvValue {
	env := map[string]slipwayv1alpha1.EnvValue{}
	for i := range 28 {
		env[fmt.Sprintf("NOTE_%d", i)] = slipwayv1alpha1.EnvValue(strings.Repeat(fmt.Sprintf("%08d", number), 4<<10))
	}
	return env
}

// manyNotes is how often one tenant changes an object as large as it may be.
const manyNotes = 30

func TestLargeChangesOfOneTenantDoNotDelayTheHistoryOfAnother(t *testing.T) {
	quiet, greedy := newTenant(t, "quiet"), newTenant(t, "greedy")
	quiet.app("shop")
	greedy.app("large")
	ask := quiet.reader()
	recorded := func(value string) {
		quiet.note("shop", value)
		quiet.says(ask, value, "history", "webapps.slipway.dev/shop", "--since", "1h", "--diff")
	}
	recorded("first")
	alone := median(5, func(i int) { recorded(name("alone", i)) })

	written := make(chan error, 1)
	go func() {
		for i := range manyNotes {
			app := &slipwayv1alpha1.WebApp{}
			err := greedy.Get("large", app)
			if err == nil {
				app.Spec.Env = largeEnv(i)
				err = greedy.Cluster.Update(t.Context(), app)
			}
			if err != nil && !apierrors.IsConflict(err) {
				written <- err
				return
			}
		}
		written <- nil
	}()
	beside := median(5, func(i int) { recorded(name("beside", i)) })
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	compare(quiet.Fixture, fmt.Sprintf("a change is in the history beside %d of 0.9 MB of another tenant", manyNotes), alone, beside)
}
