package webapp

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

// What is remembered must never differ from what would be computed.
func TestNamesFollowTheSpecAndTheConfiguration(t *testing.T) {
	n := newNames()
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "a", UID: "1"},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080},
	}
	steps := []struct {
		name   string
		change func(*slipwayv1alpha1.WebApp)
		config string
	}{
		{name: "a new application", change: func(*slipwayv1alpha1.WebApp) {}},
		{name: "the same again", change: func(*slipwayv1alpha1.WebApp) {}},
		{name: "another image", change: func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "shop:2" }},
		{name: "other replicas", change: func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = new(int32) }},
		{name: "another configuration", change: func(*slipwayv1alpha1.WebApp) {}, config: "abc"},
		{name: "another policy", change: func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Rollout = &slipwayv1alpha1.Rollout{OnFailure: slipwayv1alpha1.FailurePolicyHold}
		}},
		{name: "another application of the name", change: func(a *slipwayv1alpha1.WebApp) { a.UID, a.Spec.Port = "2", 80 }},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.change(app)
			s := &scope{app: app, config: config{hash: step.config}}
			name, err := n.nameFor(s)
			if err != nil {
				t.Fatal(err)
			}
			if want, err := desired.RevisionOf(app.Spec, step.config).Name(app); err != nil || name.revision != want {
				t.Errorf("the revision is named %q, want %q (%v)", name.revision, want, err)
			}
			if want, err := desired.Intent(app.Spec, step.config); err != nil || name.intent != want {
				t.Errorf("the intent is %q, want %q (%v)", name.intent, want, err)
			}
			if want, err := desired.Intent(app.Spec, ""); err != nil || name.specIntent != want {
				t.Errorf("the intent of the spec is %q, want %q (%v)", name.specIntent, want, err)
			}
		})
	}
}
