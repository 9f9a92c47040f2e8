//go:build apitest

package backuprun_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// A StatefulSet that was scaled down still has its data, and whoever backs it up means them.
func TestTheClaimsOfAStatefulSetAreCopiedWhateverItsReplicas(t *testing.T) {
	env.StartOperator(t, nil)
	one, none := int32(1), int32(0)
	for name, change := range map[string]func(*appsv1.StatefulSetSpec){
		"scaled to one":           func(s *appsv1.StatefulSetSpec) { s.Replicas = &one },
		"scaled to none":          func(s *appsv1.StatefulSetSpec) { s.Replicas = &none },
		"from another ordinal on": func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "statefulset/db" })
			f.statefulSet(change, "data-db-0", "data-db-1", "data-other-db-0")
			f.run("by-hand")
			environment.Eventually(t, func() error {
				run := &slipwayv1alpha1.BackupRun{}
				if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.namespace, Name: "by-hand"}, run); err != nil {
					return err
				}
				var claims []string
				for _, volume := range run.Status.Volumes {
					claims = append(claims, volume.Claim)
				}
				if got := strings.Join(claims, " "); got != "data-db-0 data-db-1" {
					return fmt.Errorf("it copies %q: %s", got, run.Status.Message)
				}
				return nil
			})
		})
	}
}

// A copy without a volume that a pod is to have must not pass for one of the whole set. What counts is what the spec of the set
// says, and no number there costs anything.
func TestAStatefulSetIsNotCopiedWithoutAVolume(t *testing.T) {
	env.StartOperator(t, nil)
	three, most := int32(3), int32(1<<31-1)
	for name, tc := range map[string]struct {
		replicas *int32
		phase    slipwayv1alpha1.BackupPhase
		reason   string
		want     string
	}{
		"a claim is lost":        {&three, slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSourceNotFound, `"data-db-1"`},
		"of more than there may": {&most, slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonInvalid, "more than 32 volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "statefulset/db" })
			f.statefulSet(func(s *appsv1.StatefulSetSpec) { s.Replicas = tc.replicas }, "data-db-0", "data-db-2")
			f.run("by-hand")
			if run := f.wait("by-hand", tc.phase, tc.reason); !strings.Contains(run.Status.Message, tc.want) {
				t.Errorf("it says %q, want %q", run.Status.Message, tc.want)
			}
		})
	}
}

// What is left of former pods must not keep the others from being copied, and what there is no room for is reported.
func TestAStatefulSetThatHadManyPodsIsCopied(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t, func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "statefulset/db" })
	var claims []string
	for i := range 40 {
		claims = append(claims, fmt.Sprintf("data-db-%d", i))
	}
	f.statefulSet(func(s *appsv1.StatefulSetSpec) { three := int32(3); s.Replicas = &three }, claims...)
	f.run("by-hand")
	environment.Eventually(t, func() error {
		run := &slipwayv1alpha1.BackupRun{}
		if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.namespace, Name: "by-hand"}, run); err != nil {
			return err
		}
		if len(run.Status.Volumes) != 32 || run.Status.Volumes[0].Claim != "data-db-0" || run.Status.LeftOut != 8 {
			return fmt.Errorf("%d volumes, %d left out: %s", len(run.Status.Volumes), run.Status.LeftOut, run.Status.Message)
		}
		return nil
	})
}

// statefulSet makes the StatefulSet db, whose template is data, and claims with its labels.
func (f *fixture) statefulSet(change func(*appsv1.StatefulSetSpec), claims ...string) {
	f.Helper()
	labels := map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: f.namespace}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db"}}},
		},
	}}
	claim := &corev1.PersistentVolumeClaim{}
	if err := env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: "shop-data"}, claim); err != nil {
		f.Fatal(err)
	}
	for _, name := range claims {
		made := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, Labels: labels}}
		made.Spec.AccessModes, made.Spec.Resources = claim.Spec.AccessModes, claim.Spec.Resources
		f.create(made)
	}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claim.Spec}}
	set.Spec.VolumeClaimTemplates[0].Spec.VolumeName = ""
	change(&set.Spec)
	f.create(set)
}
