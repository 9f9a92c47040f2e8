package restore

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// A Restore that an older operator began goes on after an upgrade. That operator wrote the name of the Restore to the volume, and
// not its UID.
func TestWhoseAVolumeIs(t *testing.T) {
	made := time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)
	const uid, label = slipwayv1alpha1.AnnotationRestoreUID, slipwayv1alpha1.LabelRestore
	tests := map[string]struct {
		annotations, labels map[string]string
		begun               bool
		after               time.Duration
		want                bool
	}{
		"its UID":                                 {map[string]string{uid: "mine"}, nil, false, time.Second, true},
		"the UID of an earlier one":               {map[string]string{uid: "other"}, map[string]string{label: "again"}, true, time.Second, false},
		"an older operator, and it has begun":     {nil, map[string]string{label: "again"}, true, time.Second, true},
		"the same, within the same second":        {nil, map[string]string{label: "again"}, true, 0, true},
		"an older operator, for an earlier one":   {nil, map[string]string{label: "again"}, true, -time.Second, false},
		"an older operator, and it has not begun": {nil, map[string]string{label: "again"}, false, time.Second, false},
		"an older operator, for another":          {nil, map[string]string{label: "other"}, true, time.Second, false},
		"nobody says":                             {nil, nil, true, time.Second, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			restore := &slipwayv1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: "again", UID: "mine", CreationTimestamp: metav1.NewTime(made)}}
			if tc.begun {
				restore.Status.StartTime = &metav1.Time{Time: made}
			}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
				Name: "restored", Annotations: tc.annotations, Labels: tc.labels, CreationTimestamp: metav1.NewTime(made.Add(tc.after)),
			}}
			if err := checkMaker(restore, claim); (err == nil) != tc.want {
				t.Errorf("it may write: %v, want %v: %v", err == nil, tc.want, err)
			}
		})
	}
}
