package cli

import (
	"bytes"
	"testing"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

// past returns three good revisions. readyApp runs the last one.
func past() []revision {
	return []revision{
		stored(3, "shop-1111111111", 72*time.Hour, func(r *desired.Revision) {
			r.Spec.Image, r.Spec.Env = "registry.example.com/shop:1.4.0", nil
		}),
		stored(4, "shop-2222222222", 20*time.Hour, func(r *desired.Revision) { r.Spec.Image = "registry.example.com/shop:1.4.1" }),
		stored(5, "shop-3f0c9a1b2c", 10*time.Minute, nil),
	}
}

func TestHistory(t *testing.T) {
	rolling := func(app *slipwayv1alpha1.WebApp) {
		app.Spec.Image, app.Status.Revision = "registry.example.com/shop:1.5.0", "shop-77aa00ee11"
		app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "shop-77aa00ee11", StartTime: Ago(time.Minute)}
		SetCondition(app, Condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, "pods are being started"))
	}
	proving := func(app *slipwayv1alpha1.WebApp) {
		rolling(app)
		SetCondition(app, Condition("Ready", true, slipwayv1alpha1.ReasonReady, "every replica runs the spec and serves"))
	}
	held := func(app *slipwayv1alpha1.WebApp) {
		rolling(app)
		SetCondition(app, Condition("Stalled", true, slipwayv1alpha1.ReasonRolloutFailed, `pod "shop-x" container "app": ImagePullBackOff`))
	}
	again := func(app *slipwayv1alpha1.WebApp) {
		app.Spec.Image, app.Status.Revision = "registry.example.com/shop:1.4.1", "shop-2222222222"
		app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "shop-2222222222", StartTime: Ago(time.Minute)}
		SetCondition(app, Condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, "pods are being started"))
	}
	secretChanged := func(app *slipwayv1alpha1.WebApp) { RolledBack(app); app.Spec.Image = "registry.example.com/shop:1.4.2" }
	cases := map[string]struct {
		app       *slipwayv1alpha1.WebApp
		revisions []revision
	}{
		"steady":          {app: ReadyApp(), revisions: past()},
		"rolled-back":     {app: ReadyApp(RolledBack), revisions: past()},
		"edited-since":    {app: ReadyApp(RolledBack, func(a *slipwayv1alpha1.WebApp) { a.Generation++ }), revisions: past()},
		"rolling-out":     {app: ReadyApp(rolling), revisions: past()},
		"proving":         {app: ReadyApp(proving), revisions: past()},
		"first":           {app: ReadyApp(rolling)},
		"held":            {app: ReadyApp(held), revisions: past()},
		"again":           {app: ReadyApp(again), revisions: past()},
		"config-failed":   {app: ReadyApp(secretChanged), revisions: past()},
		"none":            {app: ReadyApp()},
		"only-the-config": {app: ReadyApp(), revisions: append(past()[2:], stored(6, "shop-4444444444", 0, func(r *desired.Revision) { r.ConfigHash = "x" }))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			Golden(t, "history/"+name+".txt", func(out *bytes.Buffer) error {
				return printHistory(out, historyOf(tc.app, tc.revisions), Now)
			})
		})
	}
	Golden(t, "history/rolled-back.yaml", func(out *bytes.Buffer) error {
		output := FormatYAML
		return output.Print(out, historyOf(ReadyApp(RolledBack), past()))
	})
}
