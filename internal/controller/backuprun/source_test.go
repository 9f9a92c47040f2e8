package backuprun

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
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

func ownOf(ordinals ...int64) []ownClaim {
	var list []ownClaim
	for _, ordinal := range ordinals {
		list = append(list, ownClaim{name: fmt.Sprintf("v0-db-%d", ordinal), ordinal: ordinal})
	}
	return list
}

func upTo(from, to int64) []int64 {
	var list []int64
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// A volume that is not there must not be left out of what counts as a copy of all.
func TestAClaimThatAPodIsToHaveIsMissed(t *testing.T) {
	none, one, three := int32(0), int32(1), int32(3)
	tests := map[string]struct {
		set     *appsv1.StatefulSet
		present []int64
		want    string
	}{
		"all are there":                {statefulSet(&three, 0, 1), []int64{0, 1, 2}, ""},
		"of a set without pods":        {statefulSet(&none, 0, 1), nil, ""},
		"of a set without templates":   {statefulSet(&three, 0, 0), nil, ""},
		"of one, as by default":        {statefulSet(nil, 0, 1), nil, `there is no PersistentVolumeClaim "v0-db-0", which a pod of StatefulSet "db" is to have (spec.source of the Backup)`},
		"the first":                    {statefulSet(&three, 0, 1), []int64{1, 2}, `there is no PersistentVolumeClaim "v0-db-0", which a pod of StatefulSet "db" is to have (spec.source of the Backup)`},
		"one between":                  {statefulSet(&three, 0, 1), []int64{0, 2}, `there is no PersistentVolumeClaim "v0-db-1", which a pod of StatefulSet "db" is to have (spec.source of the Backup)`},
		"the last, from an ordinal on": {statefulSet(&three, 5, 1), []int64{5, 6}, `there is no PersistentVolumeClaim "v0-db-7", which a pod of StatefulSet "db" is to have (spec.source of the Backup)`},
		"of another template":          {statefulSet(&one, 0, 2), []int64{0}, `there is no PersistentVolumeClaim "v1-db-0", which a pod of StatefulSet "db" is to have (spec.source of the Backup)`},
		"several":                      {statefulSet(&three, 0, 1), []int64{1}, `there is no PersistentVolumeClaim "v0-db-0", nor are 1 more that pods of StatefulSet "db" are to have (spec.source of the Backup)`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			own := ownClaims{present: ownOf(tc.present...), former: ownOf(8, 9)}
			got := ""
			if worst := outcome.Worst(own.refuseMissing(tc.set, mover.Source{Kind: mover.SourceStatefulSet, Name: "db"})); worst != nil {
				if got = worst.Message; worst.Reason != slipwayv1alpha1.ReasonSourceNotFound || worst.Kind != outcome.Waiting {
					t.Errorf("%+v", worst)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What pods use comes first. What is left of former pods must not keep it from being copied.
func TestWhatIsLeftOfFormerPodsGetsTheRoomThatThereIs(t *testing.T) {
	names := func(ordinals []int64, more ...string) []string {
		var list []string
		for _, claim := range ownOf(ordinals...) {
			list = append(list, claim.name)
		}
		return append(list, more...)
	}
	tests := map[string]struct {
		present, former []int64
		mounted         []string
		want            []string
		leftOut         int
		refused         bool
	}{
		"there is room":                       {upTo(0, 3), upTo(3, 6), nil, names(upTo(0, 6)), 0, false},
		"scaled from 40 to 3":                 {upTo(0, 3), upTo(3, 40), nil, names(upTo(0, 32)), 8, false},
		"as many as there may be":             {upTo(0, 32), nil, nil, names(upTo(0, 32)), 0, false},
		"as many as there may be, and others": {upTo(0, 32), upTo(32, 34), nil, names(upTo(0, 32)), 2, false},
		"before the first ordinal":            {upTo(35, 38), upTo(0, 35), nil, names(append(upTo(0, 29), upTo(35, 38)...)), 6, false},
		"one is mounted":                      {upTo(0, 3), upTo(3, 40), []string{"shared"}, names(upTo(0, 31), "shared"), 9, false},
		"one that is left is mounted":         {upTo(0, 3), upTo(3, 40), []string{"v0-db-39"}, names(upTo(0, 31), "v0-db-39"), 8, false},
		"pods use too many":                   {upTo(0, 32), nil, []string{"shared"}, nil, 0, true},
		"none":                                {nil, nil, nil, nil, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			template := &corev1.PodTemplateSpec{}
			for _, claim := range tc.mounted {
				template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{
					VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
				})
			}
			got, fits := ownClaims{present: ownOf(tc.present...), former: ownOf(tc.former...)}.choose(template)
			if fits == tc.refused || got.leftOut != tc.leftOut {
				t.Errorf("fits: %t, left out: %d", fits, got.leftOut)
			}
			if diff := cmp.Diff(tc.want, got.names); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
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
