//go:build apitest

package cli

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// TestStatusWatchWithOperator follows two rollouts as the operator reports them.
func TestStatusWatchWithOperator(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil)
	f.create()
	first := f.follow("status", "webapp/shop", "--watch", "--timeout", "1m")
	first.until("Ready        False   RolloutInProgress")
	f.rollOut("registry.example.com/shop:1")
	first.until("Ready        True    Ready: every replica runs the spec and serves")
	first.until("webapp/shop is ready: 1/1 replicas of registry.example.com/shop:1")
	first.ends(0, "")
	f.expect(0, []string{"State:        Healthy", "registry.example.com/shop:1", "(last good)", "Available"}, "status", "app/shop")

	// The command waits for an edit that was just made, although the status still says
	// Ready.
	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) { spec.Image = "registry.example.com/shop:2" })
	second := f.follow("status", "shop", "-w")
	second.until("RolloutInProgress")
	f.deployed("registry.example.com/shop:2")
	if err := f.cluster.Stick(t.Context(), f.Namespace, "shop", crashedStatus()); err != nil {
		t.Fatal(err)
	}
	second.until("Degraded     True    CrashLoopBackOff")
	f.rollOut("registry.example.com/shop:2")
	second.until("is ready: 1/1 replicas of registry.example.com/shop:2")
	second.ends(0, "")
}

func TestStatusWatchEnds(t *testing.T) {
	message := "why it is so"
	progressing := func(app *slipwayv1alpha1.WebApp) {
		clitest.SetCondition(app, clitest.Condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, "on its way"))
	}
	cases := map[string]struct {
		args   []string
		act    func(f *fixture)
		code   int
		stderr string
	}{
		"stalled": {act: func(f *fixture) {
			f.report(func(app *slipwayv1alpha1.WebApp) {
				clitest.SetCondition(app, clitest.Condition("Stalled", true, slipwayv1alpha1.ReasonNameConflict, message))
			})
		}, code: 1, stderr: "error: webapp/shop is not ready: NameConflict: why it is so"},
		"rolled back": {act: func(f *fixture) {
			f.report(func(app *slipwayv1alpha1.WebApp) {
				clitest.SetCondition(app, clitest.Condition("RolledBack", true, "CrashLoopBackOff", message))
			})
		}, code: 1, stderr: "is not ready: RolledBack: why it is so"},
		"deleted": {act: func(f *fixture) {
			if err := f.WebApps().Delete(f.Context(), "shop", metav1.DeleteOptions{}); err != nil {
				f.Fatal(err)
			}
		}, code: 1, stderr: "error: webapp/shop was deleted"},
		"timeout": {args: []string{"--timeout", "1s"}, act: func(*fixture) {}, code: 2, stderr: "error: webapp/shop is not ready after 1s: RolloutInProgress: on its way"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.create()
			f.report(progressing)
			running := f.follow(append([]string{"status", "shop", "--watch"}, tc.args...)...)
			running.until("RolloutInProgress: on its way")
			tc.act(f)
			running.ends(tc.code, tc.stderr)
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		f := newFixture(t)
		f.create()
		running := f.follow("status", "shop", "--watch")
		running.until("generation 1 waits for the operator")
		running.stop()
		running.ends(command.ExitInterrupted, "")
	})
}

// TestStatusWatchJSON reads the stream as a program would.
func TestStatusWatchJSON(t *testing.T) {
	f := newFixture(t)
	f.create()
	running := f.follow("status", "shop", "--watch", "-o", "json")
	running.until(`"state":"Progressing"`)
	f.report(func(app *slipwayv1alpha1.WebApp) {
		clitest.SetCondition(app, clitest.Condition("Ready", true, "Ready", "fine"))
	})
	running.until(`"state":"Healthy"`)
	view := struct {
		Name       string
		Conditions []metav1.Condition
	}{}
	if err := json.Unmarshal(running.lines.Bytes(), &view); err != nil || view.Name != "shop" || len(view.Conditions) != 1 {
		t.Errorf("%v: %s", err, running.lines.Text())
	}
	running.ends(0, "")
}

func TestUnknownWebApp(t *testing.T) {
	f := newFixture(t)
	want := `Error from server (NotFound): webapps.slipway.dev "nope" not found in namespace "` + f.Namespace + `"`
	for _, name := range []string{"status", "why", "history", "rollback"} {
		f.expect(1, []string{want}, name, "webapp/nope")
	}
	f.expect(1, []string{`not found in namespace "elsewhere"`}, "status", "nope", "-n", "elsewhere")
	f.expect(1, []string{`cannot get resource "webapps"`, "webapp/nope"}, "status", "nope", "--as", "nobody")
}

func TestCompletion(t *testing.T) {
	f := newFixture(t)
	f.create()
	f.create(func(app *slipwayv1alpha1.WebApp) { app.Name = "other" })
	f.expect(0, []string{"shop\n:4"}, "__complete", "status", "--kubeconfig", f.kubeconfig, "sh")
	f.expect(0, []string{"webapp/other\nwebapp/shop\n:4"}, "__complete", "why", "--kubeconfig", f.kubeconfig, "webapp/")
	f.expect(0, []string{f.Namespace + "\n"}, "__complete", "why", "--kubeconfig", f.kubeconfig, "-n", "test-")
	f.expect(0, []string{"test\n:4"}, "__complete", "why", "--kubeconfig", f.kubeconfig, "--context", "te")
}
