package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
)

func TestVerdict(t *testing.T) {
	deleted := ago(time.Second)
	cases := map[string]struct {
		app        *slipwayv1alpha1.WebApp
		generation int64
		state      health.State
		reason     string
		ends       bool
	}{
		"ready for this generation":             {app: readyApp(), state: health.Healthy, reason: "Ready", ends: true},
		"ready for an earlier generation":       {app: readyApp(func(a *slipwayv1alpha1.WebApp) { a.Generation = 5 }), state: health.Progressing, reason: "NotObserved"},
		"an older copy of what was written":     {app: readyApp(), generation: 5, state: health.Progressing, reason: "NotObserved"},
		"no conditions yet":                     {app: readyApp(func(a *slipwayv1alpha1.WebApp) { a.Status.Conditions = nil }), state: health.Progressing, reason: "NotObserved"},
		"rolled back":                           {app: readyApp(rolledBack), state: health.Failed, reason: "RolledBack", ends: true},
		"rolled back before the last edit":      {app: readyApp(rolledBack, func(a *slipwayv1alpha1.WebApp) { a.Generation = 5 }), state: health.Progressing, reason: "NotObserved"},
		"degraded, and it may still get better": {app: readyApp(unready("ImageNotFound", "no such image")), state: health.Failed, reason: "ImageNotFound"},
		"on its way": {app: readyApp(func(a *slipwayv1alpha1.WebApp) {
			setCondition(a, condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, "Deployment is rolling out"))
		}), state: health.Progressing, reason: "RolloutInProgress"},
		"stalled": {app: readyApp(unready("NameConflict", "x"), func(a *slipwayv1alpha1.WebApp) {
			setCondition(a, condition("Stalled", true, "NameConflict", "x"))
		}), state: health.Failed, reason: "NameConflict", ends: true},
		"paused with something to do": {app: readyApp(func(a *slipwayv1alpha1.WebApp) {
			setCondition(a, condition("Ready", false, slipwayv1alpha1.ReasonPaused, "spec.paused keeps the operator from making the spec true"))
		}), state: health.Failed, reason: "Paused", ends: true},
		"being deleted": {app: readyApp(func(a *slipwayv1alpha1.WebApp) { a.DeletionTimestamp = &deleted }), state: health.Terminating, reason: "Terminating"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := verdict(tc.app, tc.generation)
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
		app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "shop-77aa00ee11", StartTime: ago(42 * time.Second)}
		setCondition(app, condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, `Deployment "shop" is rolling out revision "shop-77aa00ee11"`))
	}
	proving := func(app *slipwayv1alpha1.WebApp) {
		app.Status.Revision = "shop-77aa00ee11"
		app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "shop-77aa00ee11", StartTime: ago(6 * time.Second)}
	}
	fresh := func(app *slipwayv1alpha1.WebApp) {
		app.Generation, app.Status = 1, slipwayv1alpha1.WebAppStatus{}
		app.Spec.Paused = true
	}
	for name, app := range map[string]*slipwayv1alpha1.WebApp{
		"ready": readyApp(), "rolling": readyApp(rolling), "proving": readyApp(proving), "rolled-back": readyApp(rolledBack), "fresh": readyApp(fresh),
	} {
		t.Run(name, func(t *testing.T) {
			checkGolden(t, "status/"+name+".txt", func(out *bytes.Buffer) error { return printStatus(out, statusOf(app), now) })
		})
	}
	checkGolden(t, "status/rolled-back.yaml", func(out *bytes.Buffer) error {
		output := formatYAML
		return output.print(out, statusOf(readyApp(rolledBack)))
	})
	checkGolden(t, "status/ready.json", func(out *bytes.Buffer) error {
		output := formatJSON
		return output.print(out, statusOf(readyApp()))
	})
}

// A condition quotes the last output of a container, which can contain anything.
func TestNothingThatIsPrintedSteersATerminal(t *testing.T) {
	const words = "pod \"shop-1\" ended: \x1b]0;title\x07\x1b[2Jgone\u009b1A\u202e"
	app := readyApp(rolledBack, unready("CrashLoopBackOff", words), func(a *slipwayv1alpha1.WebApp) {
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
		"status":   func(out *bytes.Buffer) error { return printStatus(out, statusOf(app), now) },
		"history":  func(out *bytes.Buffer) error { return printHistory(out, historyOf(app, []revision{good}), now) },
		"rollback": func(out *bytes.Buffer) error { return printRollback(out, plan) },
		"watch": func(out *bytes.Buffer) error {
			_, err := out.WriteString(strings.Join(changes(nil, app), "\n"))
			return err
		},
		"end": func(out *bytes.Buffer) error {
			_, err := out.WriteString(because("CrashLoopBackOff", words))
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
	first := changes(nil, readyApp())
	cases := map[string]struct {
		before, after *slipwayv1alpha1.WebApp
		want          []string
	}{
		"nothing changed":           {before: readyApp(), after: readyApp()},
		"only a time changed":       {before: readyApp(), after: readyApp(func(a *slipwayv1alpha1.WebApp) { a.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now) })},
		"the spec was edited":       {before: readyApp(), after: readyApp(edited), want: []string{"generation 5 waits for the operator"}},
		"still not observed":        {before: readyApp(edited), after: readyApp(edited)},
		"observed: everything":      {before: readyApp(edited), after: readyApp(), want: first},
		"an abnormal one is over":   {before: readyApp(func(a *slipwayv1alpha1.WebApp) { setCondition(a, condition("Stalled", true, "Invalid", "x")) }), after: readyApp(), want: []string{"Stalled      no longer"}},
		"a pod less, and degraded":  {before: readyApp(), after: readyApp(unready("NotReady", "pod is gone")), want: []string{"Replicas     1/2 ready", "Ready        False   NotReady: pod is gone", "Degraded     True    NotReady"}},
		"a message changed":         {before: readyApp(unready("NotReady", "a")), after: readyApp(unready("NotReady", "b")), want: []string{"Ready        False   NotReady: b"}},
		"another revision runs now": {before: readyApp(), after: readyApp(func(a *slipwayv1alpha1.WebApp) { a.Status.Revision = "shop-2" }), want: []string{"Revision     shop-2, registry.example.com/shop:1.4.2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changes(tc.before, tc.after)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
