package app

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

func TestVerdict(t *testing.T) {
	deleted := clitest.Ago(time.Second)
	cases := map[string]struct {
		app        *slipwayv1alpha1.WebApp
		generation int64
		state      health.State
		reason     string
		ends       bool
	}{
		"ready for this generation":             {app: clitest.ReadyApp(), state: health.Healthy, reason: "Ready", ends: true},
		"ready for an earlier generation":       {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) { a.Generation = 5 }), state: health.Progressing, reason: "NotObserved"},
		"an older copy of what was written":     {app: clitest.ReadyApp(), generation: 5, state: health.Progressing, reason: "NotObserved"},
		"no conditions yet":                     {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) { a.Status.Conditions = nil }), state: health.Progressing, reason: "NotObserved"},
		"rolled back":                           {app: clitest.ReadyApp(clitest.RolledBack), state: health.Failed, reason: "RolledBack", ends: true},
		"rolled back before the last edit":      {app: clitest.ReadyApp(clitest.RolledBack, func(a *slipwayv1alpha1.WebApp) { a.Generation = 5 }), state: health.Progressing, reason: "NotObserved"},
		"degraded, and it may still get better": {app: clitest.ReadyApp(clitest.Unready("ImageNotFound", "no such image")), state: health.Failed, reason: "ImageNotFound"},
		"on its way": {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) {
			clitest.SetCondition(a, clitest.Condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, "Deployment is rolling out"))
		}), state: health.Progressing, reason: "RolloutInProgress"},
		"stalled": {app: clitest.ReadyApp(clitest.Unready("NameConflict", "x"), func(a *slipwayv1alpha1.WebApp) {
			clitest.SetCondition(a, clitest.Condition("Stalled", true, "NameConflict", "x"))
		}), state: health.Failed, reason: "NameConflict", ends: true},
		"paused with something to do": {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) {
			clitest.SetCondition(a, clitest.Condition("Ready", false, slipwayv1alpha1.ReasonPaused, "spec.paused keeps the operator from making the spec true"))
		}), state: health.Failed, reason: "Paused", ends: true},
		"being deleted": {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) { a.DeletionTimestamp = &deleted }), state: health.Terminating, reason: "Terminating"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := command.Verdict(tc.app, tc.generation)
			ends := got.State == health.Healthy || got.State == health.Failed && got.Terminal
			if got.State != tc.state || got.Reason != tc.reason || ends != tc.ends {
				t.Errorf("got %+v, ends %v; want %s %s, ends %v", got, ends, tc.state, tc.reason, tc.ends)
			}
		})
	}
}

func TestPrintStatus(t *testing.T) {
	rolling := func(app *slipwayv1alpha1.WebApp) {
		app.Spec.Image = "registry.example.com/shop:1.5.0"
		app.Status.Revision = "shop-77aa00ee11"
		app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "shop-77aa00ee11", StartTime: clitest.Ago(42 * time.Second)}
		clitest.SetCondition(app, clitest.Condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, `Deployment "shop" is rolling out revision "shop-77aa00ee11"`))
	}
	proving := func(app *slipwayv1alpha1.WebApp) {
		app.Status.Revision = "shop-77aa00ee11"
		app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "shop-77aa00ee11", StartTime: clitest.Ago(6 * time.Second)}
	}
	fresh := func(app *slipwayv1alpha1.WebApp) {
		app.Generation, app.Status = 1, slipwayv1alpha1.WebAppStatus{}
		app.Spec.Paused = true
	}
	for name, app := range map[string]*slipwayv1alpha1.WebApp{
		"ready": clitest.ReadyApp(), "rolling": clitest.ReadyApp(rolling), "proving": clitest.ReadyApp(proving), "rolled-back": clitest.ReadyApp(clitest.RolledBack), "fresh": clitest.ReadyApp(fresh),
	} {
		t.Run(name, func(t *testing.T) {
			clitest.Golden(t, "status/"+name+".txt", func(out *bytes.Buffer) error { return printStatus(out, statusOf(app), clitest.Now) })
		})
	}
	clitest.Golden(t, "status/rolled-back.yaml", func(out *bytes.Buffer) error {
		output := command.FormatYAML
		return output.Print(out, statusOf(clitest.ReadyApp(clitest.RolledBack)))
	})
	clitest.Golden(t, "status/ready.json", func(out *bytes.Buffer) error {
		output := command.FormatJSON
		return output.Print(out, statusOf(clitest.ReadyApp()))
	})
}

// A condition quotes the last output of a container, which can contain anything.
func TestNothingThatIsPrintedSteersATerminal(t *testing.T) {
	const words = "pod \"shop-1\" ended: \x1b]0;title\x07\x1b[2Jgone\u009b1A\u202e"
	app := clitest.ReadyApp(clitest.RolledBack, clitest.Unready("CrashLoopBackOff", words), func(a *slipwayv1alpha1.WebApp) {
		a.Status.Image, a.Spec.Image, a.Status.Rollback.Message = "shop:\u009b1", "shop:\x1b2", words
		a.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/\x1bdata"}
	})
	good := stored(1, "shop-good", 0, func(r *desired.Revision) {
		r.Spec.Env["X"], r.Spec.Storage = words, nil
	})
	plan, err := planRollback(app, []revision{good}, "1", "")
	if err != nil {
		t.Fatal(err)
	}
	prints := map[string]func(out *bytes.Buffer) error{
		"status":   func(out *bytes.Buffer) error { return printStatus(out, statusOf(app), clitest.Now) },
		"history":  func(out *bytes.Buffer) error { return printHistory(out, historyOf(app, []revision{good}), clitest.Now) },
		"rollback": func(out *bytes.Buffer) error { return printRollback(out, plan) },
		"watch": func(out *bytes.Buffer) error {
			_, err := out.WriteString(strings.Join(changes(nil, app), "\n"))
			return err
		},
		"end": func(out *bytes.Buffer) error {
			_, err := out.WriteString(command.Because("CrashLoopBackOff", words))
			return err
		},
	}
	for name, write := range prints {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			if err := write(out); err != nil {
				t.Fatal(err)
			}
			odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
			if strings.ContainsFunc(out.String(), odd) || !strings.Contains(out.String(), "shop") && name != "end" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	edited := func(app *slipwayv1alpha1.WebApp) { app.Generation = 5 }
	first := changes(nil, clitest.ReadyApp())
	cases := map[string]struct {
		before, after *slipwayv1alpha1.WebApp
		want          []string
	}{
		"nothing changed": {before: clitest.ReadyApp(), after: clitest.ReadyApp()},
		"only a time changed": {before: clitest.ReadyApp(), after: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) {
			a.Status.Conditions[0].LastTransitionTime = metav1.NewTime(clitest.Now)
		})},
		"the spec was edited":  {before: clitest.ReadyApp(), after: clitest.ReadyApp(edited), want: []string{"generation 5 waits for the operator"}},
		"still not observed":   {before: clitest.ReadyApp(edited), after: clitest.ReadyApp(edited)},
		"observed: everything": {before: clitest.ReadyApp(edited), after: clitest.ReadyApp(), want: first},
		"an abnormal one is over": {before: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) {
			clitest.SetCondition(a, clitest.Condition("Stalled", true, "Invalid", "x"))
		}), after: clitest.ReadyApp(), want: []string{"Stalled      no longer"}},
		"a pod less, and degraded":  {before: clitest.ReadyApp(), after: clitest.ReadyApp(clitest.Unready("NotReady", "pod is gone")), want: []string{"Replicas     1/2 ready", "Ready        False   NotReady: pod is gone", "Degraded     True    NotReady"}},
		"a message changed":         {before: clitest.ReadyApp(clitest.Unready("NotReady", "a")), after: clitest.ReadyApp(clitest.Unready("NotReady", "b")), want: []string{"Ready        False   NotReady: b"}},
		"another revision runs now": {before: clitest.ReadyApp(), after: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) { a.Status.Revision = "shop-2" }), want: []string{"Revision     shop-2, registry.example.com/shop:1.4.2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changes(tc.before, tc.after)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
