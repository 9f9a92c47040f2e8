//go:build apitest

package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/app"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// TestHistoryAndRollback takes a WebApp through three good revisions with the operator, and
// rolls back.
func TestHistoryAndRollback(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil)
	f.create()
	f.expect(0, []string{"webapp/shop has no revision yet"}, "history", "shop")
	f.expect(1, []string{"webapp/shop has no revision to roll back to"}, "rollback", "shop")
	f.rollOut("registry.example.com/shop:1")
	f.expect(1, []string{"no revision before the current one"}, "rollback", "shop")
	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) {
		spec.Image, spec.Env = "registry.example.com/shop:2", map[string]slipwayv1alpha1.EnvValue{"A": "1"}
	})
	f.rollOut("registry.example.com/shop:2")
	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) {
		spec.Image, spec.Replicas = "registry.example.com/shop:3", new(int32(3))
	})
	f.rollOut("registry.example.com/shop:3")
	f.expect(0, []string{"REVISION", "shop:1", "image, env.A", "running, last good"}, "history", "shop")
	f.expect(0, []string{"number: 3", "lastGood: true", "field: env.A"}, "history", "shop", "-o", "yaml")
	f.expect(0, []string{"1\tregistry.example.com/shop:1", "3\tregistry"}, "__complete", "rollback", "--kubeconfig", f.kubeconfig, "shop", "--to", "")

	f.expect(1, []string{`webapp/shop has no revision "7"; there are 1 (shop-`}, "rollback", "shop", "--to", "7")
	f.expect(1, []string{"nothing to roll back: the spec of webapp/shop already asks for revision 3"}, "rollback", "shop", "--to", "3")
	f.expect(0, []string{"would be rolled back to revision 2", "(server dry run)"}, "rollback", "shop", "--dry-run")
	if app := f.app(); app.Spec.Image != "registry.example.com/shop:3" {
		t.Fatalf("a dry run wrote %s", app.Spec.Image)
	}

	f.expect(0, []string{
		"webapp/shop rolled back to revision 1", "image: registry.example.com/shop:3 -> registry.example.com/shop:1", "env.A: 1 -> (not set)",
	}, "rollback", "webapp/shop", "--to", "1")
	app := f.app()
	if app.Spec.Image != "registry.example.com/shop:1" || *app.Spec.Replicas != 3 || app.Spec.Env != nil {
		t.Errorf("wrote %+v", app.Spec)
	}
	f.rollOut("registry.example.com/shop:1")
	f.expect(0, []string{"4 ", "running, last good"}, "history", "shop")

	// Roll back to the newest earlier revision, with --watch until the rollout ends.
	running := f.follow("rollback", "shop", "--watch")
	running.until("rolled back to revision 3")
	running.until("RolloutInProgress")
	f.rollOut("registry.example.com/shop:3")
	running.until("webapp/shop is ready: 3/3 replicas of registry.example.com/shop:3")
	running.ends(0, "")
}

// TestRollbackOfFailedRollout lets the operator roll back, and then writes the same
// revision into the spec.
func TestRollbackOfFailedRollout(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil)
	f.create()
	f.rollOut("registry.example.com/shop:1")
	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) { spec.Image = "registry.example.com/shop:2" })
	running := f.follow("status", "shop", "--watch")
	f.deployed("registry.example.com/shop:2")
	if err := f.cluster.Stick(t.Context(), f.Namespace, "shop", clitest.Waiting("ImagePullBackOff", "not found")); err != nil {
		t.Fatal(err)
	}
	running.ends(1, "error: webapp/shop is not ready: RolledBack: revision")
	f.rollOut("registry.example.com/shop:1")
	f.expect(0, []string{"failed: ImageNotFound", "running, last good"}, "history", "shop")
	f.expect(1, []string{"webapp/shop is not ready", "RolledBack: revision"}, "why", "shop")
	f.expect(0, []string{"rolled back to revision 1", "shop:2 -> registry.example.com/shop:1"}, "rollback", "shop")
	f.expect(0, []string{"is ready: 1/1"}, "status", "shop", "--watch", "--timeout", "30s")
}

// TestRollbackIsNotBlind lets other clients write between the plan and the patch.
func TestRollbackIsNotBlind(t *testing.T) {
	f := newFixture(t)
	shop := f.create()
	plan := func(of *slipwayv1alpha1.WebApp) *app.RollbackPlan {
		spec := *of.Spec.DeepCopy()
		spec.Image = "registry.example.com/shop:0"
		return &app.RollbackPlan{Name: "shop", Number: 1, Revision: "shop-1", Spec: spec}
	}
	f.report(func(app *slipwayv1alpha1.WebApp) {
		clitest.SetCondition(app, clitest.Condition("Ready", true, "Ready", ""))
	})
	written, err := app.WriteRollback(t.Context(), f.Clients, shop, plan(shop))
	if err != nil || written.Spec.Image != "registry.example.com/shop:0" {
		t.Fatalf("a status written in between is in the way: %v", err)
	}
	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) { spec.Image = "registry.example.com/shop:theirs" })
	if _, err := app.WriteRollback(t.Context(), f.Clients, shop, plan(shop)); err == nil || !strings.Contains(err.Error(), "somebody else changed it") {
		t.Errorf("got %v", err)
	}
	if image := f.app().Spec.Image; image != "registry.example.com/shop:theirs" {
		t.Errorf("their image was overwritten by %s", image)
	}
	managed := false
	for _, entry := range written.ManagedFields {
		managed = managed || entry.Manager == app.FieldManager
	}
	if !managed {
		t.Errorf("no field carries the manager %s", app.FieldManager)
	}
}

// TestRollbackWithSecrets checks the message that the content of Secrets is not rolled
// back.
func TestRollbackWithSecrets(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil)
	secret, err := f.Kube.CoreV1().Secrets(f.Namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{"password": "one"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.create(func(app *slipwayv1alpha1.WebApp) {
		app.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}}}
	})
	f.rollOut("registry.example.com/shop:1")
	before := f.configHash()
	secret.StringData = map[string]string{"password": "two"}
	if _, err := f.Kube.CoreV1().Secrets(f.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(f, func() error {
		if f.configHash() == before {
			return errors.New("the pods have the old content")
		}
		return nil
	})
	f.rollOut("registry.example.com/shop:1")
	f.expect(0, []string{"config content"}, "history", "shop")
	f.expect(1, []string{"already asks for revision 1", "cannot be rolled back"}, "rollback", "shop", "--to", "1")
	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) { spec.Image = "registry.example.com/shop:2" })
	f.rollOut("registry.example.com/shop:2")
	stdout := f.expect(0, []string{"Note: Secrets and ConfigMaps are used as they are now"}, "rollback", "shop", "--to", "1")
	if strings.Contains(stdout, "one") || strings.Contains(stdout, "two") {
		t.Errorf("a value is shown:\n%s", stdout)
	}
}

func (f *fixture) configHash() string {
	f.Helper()
	return f.deployed("registry.example.com/shop:1").Spec.Template.Annotations[slipwayv1alpha1.AnnotationConfigHash]
}

func (f *fixture) app() *slipwayv1alpha1.WebApp {
	f.Helper()
	app, err := f.GetWebApp(f.Context(), "shop")
	if err != nil {
		f.Fatal(fmt.Errorf("read it back: %w", err))
	}
	return app
}
