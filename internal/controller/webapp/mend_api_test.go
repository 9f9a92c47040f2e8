//go:build apitest

package webapp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/refusal"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// quota makes a ResourceQuota of pods, as its controller would count.
func (f *fixture) quota(hard, used string) {
	f.Helper()
	made := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "team"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: quantity(hard)}},
	}
	f.create(made)
	made.Status = corev1.ResourceQuotaStatus{Hard: made.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: quantity(used)}}
	if err := env.Client.Status().Update(f.Context(), made); err != nil {
		f.Fatal(err)
	}
}

// limits makes a LimitRange of memory.
func (f *fixture) limits(memory string) {
	f.create(&corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "limits"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: quantity(memory)}}}},
	})
}

// A refusal that is mended is told no more, and the pods are created at once: one annotation, which the controllers of Kubernetes
// pass on, has them try again. What is not mended is told with the figures of today, and costs no write.
func TestARefusalThatIsMendedIsTriedAgainOnce(t *testing.T) {
	env.StartOperator(t, nil)
	tests := map[string]struct {
		answer, reason, says string
		refuse, mend         func(f *fixture)
	}{
		"a quota that is raised": {
			`pods "shop-x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1`, "QuotaExceeded", "pods=1 is asked for (spec.replicas) and 3 of 3 is used",
			func(f *fixture) { f.quota("3", "3") },
			func(f *fixture) {
				quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "team"}}
				update(f, quota, func(q *corev1.ResourceQuota) { q.Spec.Hard[corev1.ResourcePods] = quantity("4") })
				quota.Status.Hard = quota.Spec.Hard
				if err := env.Client.Status().Update(f.Context(), quota); err != nil {
					f.Fatal(err)
				}
			},
		},
		"a quota that is deleted": {
			`pods "shop-x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1`, "QuotaExceeded", "3 of 3 is used",
			func(f *fixture) { f.quota("3", "3") },
			func(f *fixture) {
				f.delete(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "team"}})
			},
		},
		"a ServiceAccount that is made": {
			`pods "shop-" is forbidden: error looking up service account team/robot: serviceaccount "robot" not found`, "PodsNotCreated", "spec.serviceAccountName",
			func(*fixture) {},
			func(f *fixture) {
				account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "robot"}}
				f.create(account)
			},
		},
		"a range that is widened": {
			`pods "shop-x" is forbidden: maximum memory usage per Container is 64Mi, but limit is 1Gi`, "PodsForbidden", "LimitRange",
			func(f *fixture) { f.limits("64Mi") },
			func(f *fixture) {
				limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "limits"}}
				update(f, limits, func(l *corev1.LimitRange) { l.Spec.Limits[0].Max[corev1.ResourceMemory] = quantity("2Gi") })
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tc.refuse(f)
			f.create(f.app())
			f.deployment()
			environment.Eventually(t, func() error { return f.cluster.RefusePods(t.Context(), f.namespace, "shop", tc.answer) })
			app := f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, tc.reason)
			if said := meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionDegraded).Message; !strings.Contains(said, tc.says) {
				t.Errorf("Degraded says %q, want %q in it", said, tc.says)
			}
			if mended := f.deployment().Annotations[refusal.AnnotationMended]; mended != "" {
				t.Errorf("it is called mended as %q before it is", mended)
			}

			tc.mend(f)
			f.noticed("the mend", func() error {
				if f.deployment().Annotations[refusal.AnnotationMended] == "" {
					return errors.New("the Deployment is not told of the mend")
				}
				app := &slipwayv1alpha1.WebApp{}
				if err := f.get("shop", app); err != nil {
					return err
				}
				if c := meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionDegraded); c.Status == metav1.ConditionTrue {
					return fmt.Errorf("it is still told: %s", c.Message)
				}
				return nil
			})
			mended := f.deployment().Annotations[refusal.AnnotationMended]
			update(f, app, func(a *slipwayv1alpha1.WebApp) { metav1.SetMetaDataAnnotation(&a.ObjectMeta, "look", "again") })
			f.settle()
			if again := f.deployment().Annotations[refusal.AnnotationMended]; again != mended {
				t.Errorf("the Deployment was told again of one mend: %s, then %s", mended, again)
			}
		})
	}
}
