package backuprun

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func statefulSet(replicas *int32, start int32, templates int) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	set.Spec.Replicas, set.Spec.Ordinals = replicas, &appsv1.StatefulSetOrdinals{Start: start}
	for i := range templates {
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("v%d", i)}})
	}
	return set
}

// Neither the number of pods nor the first ordinal of a StatefulSet says how much is done to find its claims.
func TestTheClaimsOfAStatefulSetAreThoseOfItsPods(t *testing.T) {
	many, none, one, two, negative := int32(1<<31-1), int32(0), int32(1), int32(2), int32(-1)
	for name, tc := range map[string]struct {
		set         *appsv1.StatefulSet
		count       int
		first, last string
	}{
		"as many as nobody says":       {statefulSet(nil, 0, 1), 1, "v0-db-0", "v0-db-0"},
		"two of two pods":              {statefulSet(&two, 0, 2), 4, "v0-db-0", "v1-db-1"},
		"none":                         {statefulSet(&none, 0, 1), 0, "", ""},
		"less than none":               {statefulSet(&negative, 0, 1), 0, "", ""},
		"from another ordinal on":      {statefulSet(&two, 5, 1), 2, "v0-db-5", "v0-db-6"},
		"the last ordinals":            {statefulSet(&two, 1<<31-2, 1), 2, "v0-db-2147483646", "v0-db-2147483647"},
		"beyond the last ordinal":      {statefulSet(&one, 1<<31-1, 1), 1, "v0-db-2147483647", "v0-db-2147483647"},
		"the largest number":           {statefulSet(&many, 0, 1), tooMany, "v0-db-0", "v0-db-32"},
		"the largest numbers":          {statefulSet(&many, 1<<31-1, 1), tooMany, "v0-db-2147483647", "v0-db-2147483679"},
		"the largest number of none":   {statefulSet(&many, 0, 0), 0, "", ""},
		"many templates for one pod":   {statefulSet(&one, 0, 10_000), tooMany, "v0-db-0", "v32-db-0"},
		"many templates for many":      {statefulSet(&many, 0, 10_000), tooMany, "v0-db-0", "v32-db-0"},
		"many templates for no pod":    {statefulSet(&none, 0, 10_000), 0, "", ""},
		"as many as a run may have":    {statefulSet(&two, 0, maxVolumes/2), maxVolumes, "v0-db-0", "v15-db-1"},
		"one more than a run may have": {statefulSet(&one, 0, tooMany), tooMany, "v0-db-0", "v32-db-0"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := claimsOf(tc.set)
			runtime.ReadMemStats(&after)
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
				t.Errorf("it took %d KiB of memory, want at most 1024", taken>>10)
			}
			if len(got) != tc.count || tc.count > 0 && (got[0] != tc.first || got[len(got)-1] != tc.last) {
				t.Errorf("%d claims %v, want %d from %s to %s", len(got), got, tc.count, tc.first, tc.last)
			}
		})
	}
}

func TestTheClaimsThatPodsMountAreNamedOnce(t *testing.T) {
	template := &corev1.PodTemplateSpec{}
	mount := func(claims ...string) {
		for _, claim := range claims {
			template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{
				VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
			})
		}
	}
	mount("b", "a", "b")
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{})
	if diff := cmp.Diff([]string{"a", "b"}, slices.Sorted(slices.Values(addMounted([]string{"a"}, template)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 20_000 {
		mount(fmt.Sprint(i))
	}
	if got := addMounted(nil, template); len(got) != tooMany {
		t.Errorf("%d claims, want %d", len(got), tooMany)
	}
}
