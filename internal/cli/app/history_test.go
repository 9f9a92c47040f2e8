package app

import (
	"bytes"
	"testing"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// past returns three good revisions. clitest.ReadyApp runs the last one.
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
		app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "shop-77aa00ee11", StartTime: clitest.Ago(time.Minute)}
		clitest.SetCondition(app, clitest.Condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, "pods are being started"))
	}
	proving := func(app *slipwayv1alpha1.WebApp) {
		rolling(app)
		clitest.SetCondition(app, clitest.Condition("Ready", true, slipwayv1alpha1.ReasonReady, "every replica runs the spec and serves"))
	}
	held := func(app *slipwayv1alpha1.WebApp) {
		rolling(app)
		clitest.SetCondition(app, clitest.Condition("Stalled", true, slipwayv1alpha1.ReasonRolloutFailed, `pod "shop-x" container "app": ImagePullBackOff`))
	}
	again := func(app *slipwayv1alpha1.WebApp) {
		app.Spec.Image, app.Status.Revision = "registry.example.com/shop:1.4.1", "shop-2222222222"
		app.Status.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "shop-2222222222", StartTime: clitest.Ago(time.Minute)}
		clitest.SetCondition(app, clitest.Condition("Ready", false, slipwayv1alpha1.ReasonRolloutInProgress, "pods are being started"))
	}
	secretChanged := func(app *slipwayv1alpha1.WebApp) {
		clitest.RolledBack(app)
		app.Spec.Image = "registry.example.com/shop:1.4.2"
	}
	cases := map[string]struct {
		app       *slipwayv1alpha1.WebApp
		revisions []revision
	}{
		"steady":          {app: clitest.ReadyApp(), revisions: past()},
		"rolled-back":     {app: clitest.ReadyApp(clitest.RolledBack), revisions: past()},
		"edited-since":    {app: clitest.ReadyApp(clitest.RolledBack, func(a *slipwayv1alpha1.WebApp) { a.Generation++ }), revisions: past()},
		"rolling-out":     {app: clitest.ReadyApp(rolling), revisions: past()},
		"proving":         {app: clitest.ReadyApp(proving), revisions: past()},
		"first":           {app: clitest.ReadyApp(rolling)},
		"held":            {app: clitest.ReadyApp(held), revisions: past()},
		"again":           {app: clitest.ReadyApp(again), revisions: past()},
		"config-failed":   {app: clitest.ReadyApp(secretChanged), revisions: past()},
		"none":            {app: clitest.ReadyApp()},
		"only-the-config": {app: clitest.ReadyApp(), revisions: append(past()[2:], stored(6, "shop-4444444444", 0, func(r *desired.Revision) { r.ConfigHash = "x" }))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clitest.Golden(t, "history/"+name+".txt", func(out *bytes.Buffer) error {
				return printHistory(out, historyOf(tc.app, tc.revisions), clitest.Now)
			})
		})
	}
	clitest.Golden(t, "history/rolled-back.yaml", func(out *bytes.Buffer) error {
		output := command.FormatYAML
		return output.Print(out, historyOf(clitest.ReadyApp(clitest.RolledBack), past()))
	})
}
