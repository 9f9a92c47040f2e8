//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// badRollout is an edit that a running application does not survive.
type badRollout struct {
	edit   func(*fixture, *slipwayv1alpha1.WebAppSpec)
	reason string
	parts  []string
}

// longName is longer than the name of a repository may be, which the schema cannot tell.
var longName = strings.Repeat("a", 256)

func badRollouts() map[string]badRollout {
	return map[string]badRollout{
		"image that does not exist": {
			edit:   func(f *fixture, s *slipwayv1alpha1.WebAppSpec) { s.Image = f.Registry() + "/unknown:1" },
			reason: slipwayv1alpha1.ReasonImageNotFound, parts: []string{`unknown:1" does not exist`},
		},
		"image name that cannot be parsed": {
			edit:   func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) { s.Image = longName + ":2" },
			reason: slipwayv1alpha1.ReasonInvalidImageName, parts: []string{longName + `:2"`},
		},
		"crash loop": {
			edit:   func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) { s.Env["START_FAILURE"] = "no database at db:5432" },
			reason: slipwayv1alpha1.ReasonCrashLoopBackOff, parts: []string{"exit code 3", "no database at db:5432"},
		},
		"never ready": {
			edit: func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) {
				s.Health.Path = "/never"
				// On a busy machine it takes the kubelet seconds until its events say what the probe got.
				s.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: ptr(int32(20))}
			},
			reason: slipwayv1alpha1.ReasonProbeFailing, parts: []string{`Deployment "shop"`, "spec.rollout.progressDeadlineSeconds", "GET /never on port 8080: HTTP status 503 (spec.health.path)"},
		},
	}
}

func TestAFailedRolloutIsRolledBackOnceAndNobodyNotices(t *testing.T) {
	t.Parallel()
	for name, bad := range badRollouts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.Create(f.app(replicas(2), env("GREETING", "good")))
			good := f.good()
			load := f.traffic(f.serviceURL())

			asked := f.edit(func(s *slipwayv1alpha1.WebAppSpec) { bad.edit(f, s) })
			app := f.rolledBack(good, bad)
			if app.Generation != asked.Generation {
				t.Errorf("the spec was changed: generation %d, want %d", app.Generation, asked.Generation)
			}
			f.staysRolledBack()
			load.Stop("a rollout that failed and was rolled back")
			f.answers(f.serviceURL()+"/config", "env: good")

			// Only what the user asks for next ends it.
			f.edit(func(s *slipwayv1alpha1.WebAppSpec) {
				*s = *f.app(replicas(2), env("GREETING", "better")).Spec.DeepCopy()
			})
			if err := lacks(slipwayv1alpha1.ConditionRolledBack)(f.ready()); err != nil {
				t.Error(err)
			}
			f.answers(f.serviceURL()+"/config", "env: better")
		})
	}
}

// rolledBack waits until the application runs its good revision again and says why.
func (f *fixture) rolledBack(good *slipwayv1alpha1.WebApp, bad badRollout) *slipwayv1alpha1.WebApp {
	f.Helper()
	return f.wait(
		has(slipwayv1alpha1.ConditionRolledBack, bad.reason, bad.parts...),
		is(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolledBack),
		is(slipwayv1alpha1.ConditionProgressing, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolledBack),
		is(slipwayv1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
		has(slipwayv1alpha1.ConditionDegraded, bad.reason, bad.parts...),
		func(app *slipwayv1alpha1.WebApp) error {
			switch {
			case app.Status.Revision != good.Status.Revision:
				return fmt.Errorf("revision %q runs, want %q", app.Status.Revision, good.Status.Revision)
			case app.Status.Image != good.Status.Image:
				return fmt.Errorf("image %q runs, want %q", app.Status.Image, good.Status.Image)
			case app.Status.ReadyReplicas != good.Status.ReadyReplicas:
				return fmt.Errorf("%d pods are ready, want %d", app.Status.ReadyReplicas, good.Status.ReadyReplicas)
			}
			return nil
		})
}

// staysRolledBack shows that the operator leaves the Deployment alone however often
// it looks at it.
func (f *fixture) staysRolledBack() {
	f.Helper()
	before := f.deployment()
	for range 3 {
		f.forceReconcile()
	}
	if after := f.deployment(); after.Generation != before.Generation {
		f.Errorf("the Deployment went from generation %d to %d", before.Generation, after.Generation)
	}
	f.wait(is(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, ""))
}

func TestARolledBackApplicationScalesAndFailsAgainAndReturns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app())
	good := f.good()
	pod := f.thePod()
	bad := badRollouts()["image name that cannot be parsed"]
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { bad.edit(f, s) })
	f.rolledBack(good, bad)

	// How many pods run is no new attempt.
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Replicas = ptr(int32(2)) })
	two := good.DeepCopy()
	two.Status.ReadyReplicas = 2
	f.rolledBack(two, bad)

	// Another image is, and fails in its turn.
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Image = longName + ":3" })
	bad.parts = []string{longName + `:3"`}
	f.rolledBack(two, bad)

	// The good image runs already.
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Image = cluster.DemoImage; s.Replicas = ptr(int32(1)) })
	if err := lacks(slipwayv1alpha1.ConditionRolledBack)(f.ready()); err != nil {
		t.Error(err)
	}
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Replicas = ptr(int32(2)) })
	f.ready()
	if got := livecluster.Restarts(f.pods()); got != 0 {
		t.Errorf("pods restarted %d times", got)
	}
	for _, p := range f.pods() {
		if p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] {
			t.Errorf("pod %q is of another template than the good pod %q", p.Name, pod.Name)
		}
	}
}

func TestOnFailureHoldReportsAndStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(spec(func(s *slipwayv1alpha1.WebAppSpec) {
		s.Rollout = &slipwayv1alpha1.Rollout{OnFailure: slipwayv1alpha1.FailurePolicyHold}
	})))
	f.ready()
	load := f.traffic(f.serviceURL())
	bad := badRollouts()["image name that cannot be parsed"]
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { bad.edit(f, s) })
	f.wait(has(slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ReasonRolloutFailed, bad.parts...),
		has(slipwayv1alpha1.ConditionDegraded, bad.reason, bad.parts...),
		is(slipwayv1alpha1.ConditionAvailable, metav1.ConditionTrue, ""),
		lacks(slipwayv1alpha1.ConditionRolledBack))
	before := f.deployment()
	for range 3 {
		f.forceReconcile()
	}
	if after := f.deployment(); after.Generation != before.Generation || after.Spec.Template.Spec.Containers[0].Image == cluster.DemoImage {
		t.Errorf("the Deployment was changed from generation %d to %d", before.Generation, after.Generation)
	}
	load.Stop("a rollout that failed and is held")

	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Image = cluster.DemoImage })
	if err := lacks(slipwayv1alpha1.ConditionStalled)(f.ready()); err != nil {
		t.Error(err)
	}
}

func TestAnApplicationThatFailsLaterIsNotRolledBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(env("GREETING", "one")))
	first := f.ready()
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Env["GREETING"] = "two" })
	second := f.good()
	if first.Status.Revision == second.Status.Revision {
		t.Fatal("the edit made no revision to return to")
	}
	before := f.deployment()
	url := livecluster.Address(f.thePod().Status.PodIP, 8080)

	// As often as would have ended a rollout.
	const ends = 3
	for n := range int32(ends) {
		f.Eventually(func() error {
			// The answer is the end of the connection.
			_, _ = livecluster.Ask(t.Context(), livecluster.NewHTTPClient(), url+"/exit?code=7")
			if got := livecluster.Restarts(f.pods()); got < n+1 {
				return fmt.Errorf("the pod has ended %d times, want %d", got, n+1)
			}
			return nil
		})
	}
	f.wait(has(slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ReasonCrashLoopBackOff, `pod "shop-`, "exit code 7"))
	f.forceReconcile()
	app := f.ready()
	if app.Status.Revision != second.Status.Revision || app.Status.Rollback != nil {
		t.Errorf("revision %q runs after rollback %+v, want %q", app.Status.Revision, app.Status.Rollback, second.Status.Revision)
	}
	if after := f.deployment(); after.Generation != before.Generation {
		t.Errorf("the Deployment went from generation %d to %d", before.Generation, after.Generation)
	}
}

// What becomes ready and ends 4 seconds later is none that a rollback could return to.
func TestARevisionThatEndsSoonAfterItIsReadyIsNotReturnedTo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(env("GREETING", "good")))
	good := f.good()
	recorded := f.Record(&slipwayv1alpha1.WebAppList{})
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Env["EXIT_AFTER"] = "4s" })
	f.wait(is(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, ""), func(app *slipwayv1alpha1.WebApp) error {
		if app.Status.Rollout == nil || app.Status.Rollout.Revision != app.Status.Revision {
			return fmt.Errorf("it is ready, and status.rollout is %+v", app.Status.Rollout)
		}
		return nil
	})
	bad := badRollouts()["image name that cannot be parsed"]
	f.wait(is(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, ""))
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { bad.edit(f, s) })
	f.rolledBack(good, bad)
	f.answers(f.serviceURL()+"/config", "env: good")
	for _, seen := range recorded.All() {
		if app := seen.Object.(*slipwayv1alpha1.WebApp); app.Status.LastGoodRevision != good.Status.Revision {
			t.Errorf("revision %q was the last good one", app.Status.LastGoodRevision)
		}
	}
}

func TestAFailedFirstRolloutIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(spec(func(s *slipwayv1alpha1.WebAppSpec) {
		s.Health.Path = "/never"
		s.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: ptr(int32(5))}
	})))
	f.wait(has(slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ReasonRolloutFailed, "spec.rollout.progressDeadlineSeconds"),
		lacks(slipwayv1alpha1.ConditionRolledBack))
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Health.Path = "/healthz" })
	f.ready()
}

// The operator is killed between the edit and the verdict. It runs alone: it disturbs
// the operator.
func TestARollbackSurvivesTheOperatorsDeath(t *testing.T) {
	f := newFixture(t)
	f.Create(f.app())
	good := f.good()
	seen := f.Record(&appsv1.DeploymentList{})
	bad := badRollouts()["never ready"]
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) { bad.edit(f, s) })
	f.wait(is(slipwayv1alpha1.ConditionProgressing, metav1.ConditionTrue, slipwayv1alpha1.ReasonRolloutInProgress))
	start := time.Now()
	f.killLeader()
	f.rolledBack(good, bad)
	f.Measured("an operator killed in the middle: rolled back %v after the kill (deadline 20 s)", time.Since(start).Round(100*time.Millisecond))
	f.staysRolledBack()

	// There and back: two changes of the template, whoever made them.
	generations := map[int64]bool{}
	for _, s := range seen.All() {
		generations[s.Object.GetGeneration()] = true
	}
	if len(generations) != 3 {
		t.Errorf("the Deployment went through %d generations, want 3: good, bad, good again", len(generations))
	}
}
