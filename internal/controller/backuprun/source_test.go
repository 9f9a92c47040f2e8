package backuprun

import (
	"fmt"
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
	selecting(set, map[string]string{"app": "db"})
	for i := range templates {
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("v%d", i)}})
	}
	return set
}

// The claims that there are count, and not what the spec of a StatefulSet says of their number. Names alone prove nothing of a claim
// that no pod of the set uses.
func TestTheClaimsOfAStatefulSetAreThoseThatThereAre(t *testing.T) {
	many, none, one, two := int32(1<<31-1), int32(0), int32(1), int32(2)
	ours, others := map[string]string{"app": "db", "more": "x"}, map[string]string{"app": "x-db"}
	tests := map[string]struct {
		set    *appsv1.StatefulSet
		name   string
		labels map[string]string
		want   bool
	}{
		"of a pod":                                  {statefulSet(&two, 0, 1), "v0-db-1", nil, true},
		"of a pod that there is not any more":       {statefulSet(&one, 0, 1), "v0-db-1", ours, true},
		"of a set that was scaled to none":          {statefulSet(&none, 0, 1), "v0-db-0", ours, true},
		"of a pod before the first ordinal":         {statefulSet(&two, 1, 1), "v0-db-0", ours, true},
		"of a pod of nobody":                        {statefulSet(&one, 0, 1), "v0-db-1", nil, false},
		"of a pod of another set":                   {statefulSet(&one, 0, 1), "v0-db-1", others, false},
		"of a set whose name ends alike":            {statefulSet(&two, 0, 1), "v0-x-db-1", ours, false},
		"of a set whose name goes on":               {statefulSet(&two, 0, 1), "v0-db-0-1", ours, false},
		"of another template":                       {statefulSet(&two, 0, 1), "v1-db-0", ours, false},
		"of no ordinal":                             {statefulSet(&two, 0, 1), "v0-db-", ours, false},
		"of an ordinal that nobody writes":          {statefulSet(&two, 0, 1), "v0-db-01", ours, false},
		"of an ordinal with a sign":                 {statefulSet(&two, 0, 1), "v0-db-+1", ours, false},
		"of an ordinal beyond all numbers":          {statefulSet(&many, 0, 1), "v0-db-99999999999999999999", ours, false},
		"of the last of very many":                  {statefulSet(&many, 0, 1), "v0-db-2147483646", nil, true},
		"of a pod beyond the last ordinal":          {statefulSet(&many, 1<<31-1, 1), "v0-db-4294967293", nil, true},
		"of a name without a dash":                  {statefulSet(&two, 0, 1), "claim", ours, false},
		"of a template of ten thousand":             {statefulSet(&two, 0, 10_000), "v9999-db-1", nil, true},
		"of a set that selects by expressions":      {selecting(statefulSet(&one, 0, 1), nil), "v0-db-1", ours, false},
		"of a template with the name of the set":    {named(statefulSet(&two, 0, 1), "db"), "db-db-1", nil, true},
		"of a template with dashes":                 {named(statefulSet(&two, 0, 1), "data-x"), "data-x-db-1", nil, true},
		"of a template with dashes, of another":     {named(statefulSet(&one, 0, 1), "data-x"), "data-x-db-1", others, false},
		"of a template with dashes, not any more":   {named(statefulSet(&one, 0, 1), "data-x"), "data-x-db-1", ours, true},
		"of a template with a number in its name":   {named(statefulSet(&two, 0, 1), "v-1"), "v-1-db-1", nil, true},
		"of a pod of the set, in another set's way": {statefulSet(&two, 0, 1), "v0-db-1", others, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			templates := map[string]int{}
			for i := range tc.set.Spec.VolumeClaimTemplates {
				templates[tc.set.Spec.VolumeClaimTemplates[i].Name] = i
			}
			claim := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tc.name, Labels: tc.labels}}
			if got, ok := ownClaimOf(tc.set, templates, claim); ok != tc.want || ok && got.name != tc.name {
				t.Errorf("got %+v, %t, want %t", got, ok, tc.want)
			}
		})
	}
}

func selecting(set *appsv1.StatefulSet, labels map[string]string) *appsv1.StatefulSet {
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	return set
}

func named(set *appsv1.StatefulSet, template string) *appsv1.StatefulSet {
	set.Spec.VolumeClaimTemplates[0].Name = template
	return set
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
