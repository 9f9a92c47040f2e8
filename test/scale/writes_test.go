//go:build scale

package scale

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/requests"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// few is how many WebApps the writes are counted over: enough that one write too many
// anywhere shows, few enough to script their pods.
const few = 20

// TestWrites counts the writes that a change of one WebApp costs.
func TestWrites(t *testing.T) {
	s := startServer(t)
	p := startOperator(t, s)
	namespaces := s.namespaces(t, "writes", 2)
	webApps := follow(t, s, &slipwayv1alpha1.WebAppList{})
	apps := newApps(namespaces, few)

	counted := p.counting(t, func() { converge(t, s, webApps, apps, nil) })
	perApp(t, "a new WebApp (Deployment, Service, revision), no pods", counted, 4, "children + 1 = 4")
	pods := p.counting(t, func() { rollOut(t, s, apps) })
	perApp(t, "a new WebApp and its whole rollout, with its pod", counted.Plus(pods), 8, "children (Deployment, Service, revision) + 5 = 8")

	change := func(image string) {
		done := allCurrent(webApps, len(apps))
		if err := each(apps, func(app *slipwayv1alpha1.WebApp) error { return s.setImage(t, app, image) }); err != nil {
			t.Fatal(err)
		}
		receive(t, "the new image", done, patience)
	}
	counted = p.counting(t, func() { change("registry.example.com/shop:2") })
	perApp(t, "an image change, until the Deployment has it", counted, 4, "2 children (Deployment, revision) + at most 2 status")
	pods = p.counting(t, func() { rollOut(t, s, apps) })
	perApp(t, "an image change and its whole rollout, with its pod", counted.Plus(pods), 7, "children (Deployment, revision) + 5 = 7")
}

// counting returns the requests that the operator makes because of do, until it rests.
func (p *process) counting(t *testing.T, do func()) requests.Counts {
	t.Helper()
	before := p.rest(t).requests()
	do()
	return p.rest(t).requests().Since(before)
}

// perApp adds a line about writes for each of the few WebApps.
func perApp(t *testing.T, what string, counted requests.Counts, limit int, goal string) {
	t.Helper()
	writes := float64(counted.Writes()) / few
	if writes > float64(limit) {
		t.Errorf("%s: %.4g writes, want at most %d", what, writes, limit)
	}
	results.requests(fmt.Sprintf("%s, %d times", what, few), counted.String())
	results.add(row{
		What: "writes: " + what, Goal: goal,
		Measured: fmt.Sprintf("%.4g (%.4g children, %.4g status; besides %.4g events, %.4g live reads)", writes,
			float64(counted.Sum(requests.Children))/few, float64(counted.Sum(requests.Status))/few,
			float64(counted.Sum(requests.Events))/few, float64(counted.Sum(requests.Reads, requests.Lists))/few),
		Values: map[string]float64{"writes": writes},
	}, met(writes <= float64(limit)))
}

// rollOut plays the cluster that starts every pod.
func rollOut(t *testing.T, s *server, apps []*slipwayv1alpha1.WebApp) {
	t.Helper()
	cluster := &workload.Cluster{Client: s.client}
	if err := each(apps, func(app *slipwayv1alpha1.WebApp) error {
		return cluster.RollOut(t.Context(), app.Namespace, app.Name)
	}); err != nil {
		t.Fatalf("roll out: %v", err)
	}
}

// setImage changes the image of a WebApp as a user would.
func (s *server) setImage(t *testing.T, app *slipwayv1alpha1.WebApp, image string) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"image":%q}}`, image))
	return s.client.Patch(t.Context(), app.DeepCopy(), patch)
}

// imageOf returns the image that a Deployment runs.
func imageOf(deployment *appsv1.Deployment) string {
	return deployment.Spec.Template.Spec.Containers[0].Image
}
