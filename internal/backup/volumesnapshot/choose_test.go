package volumesnapshot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func aClass(name, driver, policy string, isDefault bool) Class {
	class := Class{ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: driver, DeletionPolicy: policy}
	if isDefault {
		class.Annotations = map[string]string{annotationDefault: "true"}
	}
	return class
}

// A volume is read as it is only where nothing else was asked for, and never for a reason that nobody tells.
func TestWithWhichClassASnapshotIsTaken(t *testing.T) {
	const auto, require, never = slipwayv1alpha1.VolumeSnapshotAuto, slipwayv1alpha1.VolumeSnapshotRequire, slipwayv1alpha1.VolumeSnapshotNever
	retain, remove := corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	csi := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}}}}
	folder := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
	storage := func(change func(*storagev1.StorageClass)) *storagev1.StorageClass {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "d", ReclaimPolicy: &remove}
		if change != nil {
			change(class)
		}
		return class
	}
	good := []Class{aClass("other", "e", "Delete", true), aClass("slow", "d", "Delete", false), aClass("snap", "d", "Delete", true)}
	tests := map[string]struct {
		policy  slipwayv1alpha1.VolumeSnapshotPolicy
		named   string
		volume  *corev1.PersistentVolume
		storage *storagev1.StorageClass
		classes []Class
		blind   string
		class   string
		why     string
		trouble string
	}{
		"the default one of the driver":    {volume: csi, storage: storage(nil), classes: good, class: "snap"},
		"the default one, and required":    {policy: require, volume: csi, storage: storage(nil), classes: good, class: "snap"},
		"the one that is named":            {named: "slow", volume: csi, storage: storage(nil), classes: good, class: "slow"},
		"never":                            {policy: never, volume: csi, storage: storage(nil), classes: good, why: "Never"},
		"not a CSI volume":                 {volume: folder, storage: storage(nil), classes: good, why: "no CSI volume"},
		"no volume yet":                    {storage: storage(nil), classes: good, why: "no volume yet"},
		"no StorageClass":                  {volume: csi, classes: good, why: "no StorageClass"},
		"a StorageClass of another driver": {volume: csi, storage: storage(func(s *storagev1.StorageClass) { s.Provisioner = "e" }), classes: good, why: "another driver"},
		"volumes would be left behind":     {volume: csi, storage: storage(func(s *storagev1.StorageClass) { s.ReclaimPolicy = &retain }), classes: good, why: "leave a volume behind"},
		"the StorageClass says nothing of what becomes of volumes": {
			volume: csi, storage: storage(func(s *storagev1.StorageClass) { s.ReclaimPolicy = nil }), classes: good, class: "snap",
		},
		"snapshots would be left behind":     {volume: csi, storage: storage(nil), classes: []Class{aClass("snap", "d", "Retain", true)}, why: "leave a snapshot behind"},
		"none is the default one":            {volume: csi, storage: storage(nil), classes: good[:2], why: "is the default one"},
		"the cluster has none":               {volume: csi, storage: storage(nil), blind: "no such kind", why: "no such kind"},
		"two are the default one":            {volume: csi, storage: storage(nil), classes: append(good[:3:3], aClass("snap2", "d", "Delete", true)), trouble: `"snap" and "snap2"`},
		"required, and none is the default":  {policy: require, volume: csi, storage: storage(nil), classes: good[:2], trouble: "is the default one"},
		"required of what is no CSI volume":  {policy: require, volume: folder, storage: storage(nil), classes: good, trouble: "no CSI volume"},
		"required, and the cluster has none": {policy: require, volume: csi, storage: storage(nil), blind: "no such kind", trouble: "no such kind"},
		"named, and there is none":           {named: "nope", volume: csi, storage: storage(nil), classes: good, trouble: `no VolumeSnapshotClass "nope"`},
		"named, and of another driver":       {named: "other", volume: csi, storage: storage(nil), classes: good, trouble: `of the driver "e"`},
		"named, and it leaves snapshots behind": {
			named: "snap", volume: csi, storage: storage(nil), classes: []Class{aClass("snap", "d", "Retain", true)}, trouble: "leave a snapshot behind",
		},
		"named, and not a CSI volume": {policy: auto, named: "snap", volume: folder, storage: storage(nil), classes: good, trouble: "no CSI volume"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
			in := Inputs{Claim: claim, Volume: tc.volume, StorageClass: tc.storage, Classes: tc.classes, Blind: tc.blind}
			if tc.policy != "" || tc.named != "" {
				in.Spec = &slipwayv1alpha1.BackupVolumeSnapshot{Policy: tc.policy, ClassName: tc.named}
			}
			class, why, trouble := Choose(in)
			reported := ""
			if trouble != nil {
				reported = trouble.Message
			}
			if class != tc.class || !strings.Contains(why, tc.why) || !strings.Contains(reported, tc.trouble) ||
				(why == "") != (tc.why == "") || (reported == "") != (tc.trouble == "") {
				t.Errorf("got class %q, why %q, trouble %q", class, why, reported)
			}
			if outcomes := [...]bool{class != "", why != "", trouble != nil}; outcomes != [...]bool{tc.class != "", tc.why != "", tc.trouble != ""} {
				t.Errorf("not one outcome: %v", outcomes)
			}
		})
	}
}

// What the driver says is said by somebody else: it must not break a status, nor be longer than one takes.
func TestTheWordsOfAFailure(t *testing.T) {
	long, odd, none := strings.Repeat("ä", 2000), "no\x00 space\n\x1b[31m left\u2028", ""
	for name, tc := range map[string]struct {
		message *string
		want    string
	}{
		"long":        {&long, strings.Repeat("ä", maxFailure/2-2)},
		"unprintable": {&odd, "no  space  [31m left "},
		"empty":       {&none, "no message"},
		"missing":     {nil, "no message"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := &VolumeSnapshot{Status: &Status{Error: &Error{Message: tc.message}}}
			if got := snapshot.Failure(); !strings.HasPrefix(got, tc.want) || len(got) > maxFailure {
				t.Errorf("got %q", got)
			}
			ready := true
			if snapshot.Status.ReadyToUse = &ready; snapshot.Failure() != "" {
				t.Error("it has recovered, and still says that it failed")
			}
		})
	}
}
