//go:build apitest

package webapp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// orphan deletes a WebApp and leaves its children without an owner, as --cascade=orphan
// does where a garbage collector runs.
func (f *fixture) orphan(app *slipwayv1alpha1.WebApp) {
	f.Helper()
	f.settle()
	f.delete(app)
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &autoscalingv2.HorizontalPodAutoscalerList{},
		&policyv1.PodDisruptionBudgetList{}, &appsv1.ControllerRevisionList{},
	} {
		if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace)); err != nil {
			f.Fatal(err)
		}
		err := meta.EachListItem(list, func(child runtime.Object) error {
			update(f, child.(client.Object), func(o client.Object) { o.SetOwnerReferences(nil) })
			return nil
		})
		if err != nil {
			f.Fatal(err)
		}
	}
}

// revisions lists the ControllerRevisions of the namespace, the last one last.
func (f *fixture) revisions() []appsv1.ControllerRevision {
	f.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items
}

// An application that is deleted and recreated may exist again before the garbage collector
// has deleted the old children.
func TestChildrenOfADeletedWebAppOfTheNameAreWaitedFor(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.app()
	f.create(app)
	f.deployment()
	f.settle()
	f.delete(app)
	f.create(f.app())
	again := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonTerminating)
	if stalled := meta.FindStatusCondition(again.Status.Conditions, slipwayv1alpha1.ConditionStalled); stalled != nil {
		t.Errorf("stalled: %+v", stalled)
	}
	// No garbage collector runs here.
	for _, revision := range f.revisions() {
		f.delete(&revision)
	}
	f.delete(f.deployment(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}})
	f.deployment()
	f.rollOut()
}

// What an orphaned application left behind belongs to the next one of its name.
func TestAnOrphanedAutoscalerGoesWhenItIsNotWanted(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.app(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("100m")}}
		a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MaxReplicas: 3}
	})
	f.create(app)
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
	environment.Eventually(t, func() error { return f.get("shop", autoscaler) })
	f.settle()
	f.orphan(app)
	f.create(f.app())
	environment.Eventually(t, func() error { return gone(f.get("shop", autoscaler)) })
	f.rollOut()
}

// Its history belongs to the next one too, and goes with it.
func TestTheRevisionsOfAnOrphanedApplicationAreTakenOver(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	const second = "registry.example.com/shop:2"
	app := f.running()
	f.rollOutImage(app, second)
	before := f.revisions()
	f.orphan(app)

	next := f.app(func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = second })
	f.create(next)
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	var after []appsv1.ControllerRevision
	environment.Eventually(t, func() error {
		after = f.revisions()
		for i := range after {
			if !metav1.IsControlledBy(&after[i], next) {
				return fmt.Errorf("revision %q has owners %v", after[i].Name, after[i].OwnerReferences)
			}
		}
		return nil
	})
	kept := func(revisions []appsv1.ControllerRevision) []string {
		var texts []string
		for _, r := range revisions {
			texts = append(texts, fmt.Sprintf("%d %s %s %s", r.Revision, r.Name, r.UID, r.Data.Raw))
		}
		return texts
	}
	if diff := cmp.Diff(kept(before), kept(after)); diff != "" || len(after) != 2 {
		t.Errorf("%d revisions (-want +got):\n%s", len(after), diff)
	}

	update(f, next, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = badImage })
	f.deployed(runsImage(badImage))
	f.stick(imageNotFound())
	f.deployed(runsImage(second))
}

// A revision with our label need not be ours: not that of a deleted application of the
// name, which the garbage collector has not come to yet, and not somebody's.
func TestARevisionThatIsNotTheApplicationsDoesNotCount(t *testing.T) {
	env.StartOperator(t, nil)
	tests := map[string]struct {
		foreign bool
		reason  string
		says    string
	}{
		"of a deleted application": {false, slipwayv1alpha1.ReasonTerminating, "belongs to a deleted WebApp of the same name"},
		"of somebody":              {true, slipwayv1alpha1.ReasonNameConflict, "exists and was not made by Slipway"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			app := f.running()
			f.settle()
			left := f.revisions()[0]
			f.delete(app)
			f.create(f.app())
			// Until then the operator would recreate what the deleted application lacks.
			f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonTerminating)
			if tc.foreign {
				f.delete(&left)
				left.ObjectMeta = metav1.ObjectMeta{Name: left.Name, Namespace: left.Namespace, Labels: left.Labels}
				f.create(&left)
			}

			f.delete(f.deployment(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}})
			f.deployment()
			environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
			want := fmt.Sprintf("ControllerRevision %q %s", left.Name, tc.says)
			f.wait(func(app *slipwayv1alpha1.WebApp) error {
				if err := has(app, slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, tc.reason); err != nil {
					return err
				}
				if got := meta.FindStatusCondition(app.Status.Conditions, "Ready").Message; !strings.HasPrefix(got, want) {
					return fmt.Errorf("message %q, want %q", got, want)
				}
				if app.Status.LastGoodRevision != "" || app.Status.ReadyReplicas != 1 {
					return fmt.Errorf("status %+v, want one replica that serves and no good revision", app.Status)
				}
				return nil
			})

			f.delete(&left)
			f.rollOut()
			if own := f.revisions(); len(own) != 1 || own[0].UID == left.UID {
				t.Errorf("the revisions are %v", own)
			}
		})
	}
}
