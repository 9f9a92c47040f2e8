//go:build csi

package csi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// className is the name of the StorageClass and of the VolumeSnapshotClass of hack/csi.
const className = "csi"

// claimSize is that of every volume.
const claimSize = "128Mi"

type fixture struct{ *livetest.Fixture }

func newFixture(t *testing.T) *fixture { return &fixture{livetest.New(t, cluster)} }

func ptr[T any](value T) *T { return &value }

// records is a pod that runs a command of the demo on a claim. See hack/demo/records.go.
func (f *fixture) records(command, claim string) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(1234)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "records", Image: cluster.DemoImage, Args: []string{"records", command, "/data"},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}},
	}
}

// writer starts a pod that writes numbers to a claim.
func (f *fixture) writer(claim string) {
	f.Helper()
	pod := &corev1.Pod{Spec: f.records("write", claim)}
	pod.Name = "writer-of-" + claim
	f.Create(pod)
	f.Eventually(func() error {
		if now := livetest.MustGet(f.Fixture, pod.Name, &corev1.Pod{}); now.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the writer is %s", now.Status.Phase)
		}
		return nil
	})
}

// check tells how many numbers a claim holds. It is an error when they are not of one moment.
func (f *fixture) check(claim string) (int, error) {
	f.Helper()
	job := &batchv1.Job{Spec: batchv1.JobSpec{BackoffLimit: ptr(int32(0)), Template: corev1.PodTemplateSpec{Spec: f.records("check", claim)}}}
	job.GenerateName = "check-"
	f.Create(job)
	var status batchv1.JobStatus
	f.Eventually(func() error {
		if status = livetest.MustGet(f.Fixture, job.Name, &batchv1.Job{}).Status; status.Succeeded+status.Failed == 0 {
			return fmt.Errorf("the check of %s has not ended", claim)
		}
		return nil
	})
	said := strings.TrimSpace(f.Kubectl("logs", "job/"+job.Name))
	if status.Failed > 0 {
		return 0, errors.New(said)
	}
	return strconv.Atoi(said)
}

// backup makes a Backup of a claim that runs by hand, into the claim "repository".
func (f *fixture) backup(name, claim string, policy slipwayv1alpha1.VolumeSnapshotPolicy) {
	f.Helper()
	b := &slipwayv1alpha1.Backup{Spec: slipwayv1alpha1.BackupSpec{
		Source: claim, Schedule: "0 2 * * *", Suspend: true, Destination: "pvc://repository/" + name,
		VolumeSnapshot: &slipwayv1alpha1.BackupVolumeSnapshot{Policy: policy},
	}}
	b.Name = name
	f.Create(b)
}

// restored restores the copy of a run into a new claim.
func (f *fixture) restored(run, claim string) {
	f.Helper()
	f.StartRestore(claim, claimSize, func(spec *slipwayv1alpha1.RestoreSpec) { spec.Run = &slipwayv1alpha1.LocalReference{Name: run} })
	f.Restored(claim, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
}

// listOf lists the objects of a kind of external-snapshotter.
func (f *fixture) listOf(kind string, options ...client.ListOption) []unstructured.Unstructured {
	f.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: kind + "List"})
	if err := cluster.List(f.Context(), list, options...); err != nil {
		f.Fatal(err)
	}
	return list.Items
}

// nothingIsLeft waits until of all that runs have made there are no VolumeSnapshots, no VolumeSnapshotContents, and no claims
// and volumes that were made from them.
func (f *fixture) nothingIsLeft() {
	f.Helper()
	f.Eventually(func() error {
		var left []string
		for _, snapshot := range f.listOf("VolumeSnapshot", client.InNamespace(f.Namespace)) {
			left = append(left, "VolumeSnapshot "+snapshot.GetName())
		}
		for _, content := range f.listOf("VolumeSnapshotContent") {
			if of, _, _ := unstructured.NestedString(content.Object, "spec", "volumeSnapshotRef", "namespace"); of == f.Namespace {
				left = append(left, "VolumeSnapshotContent "+content.GetName())
			}
		}
		claims := &corev1.PersistentVolumeClaimList{}
		if err := cluster.List(f.Context(), claims, client.InNamespace(f.Namespace), client.HasLabels{slipwayv1alpha1.LabelBackupRun}); err != nil {
			return err
		}
		for i := range claims.Items {
			left = append(left, "PersistentVolumeClaim "+claims.Items[i].Name)
		}
		volumes := &corev1.PersistentVolumeList{}
		if err := cluster.List(f.Context(), volumes); err != nil {
			return err
		}
		for i := range volumes.Items {
			of := volumes.Items[i].Spec.ClaimRef
			if of == nil || of.Namespace != f.Namespace || volumes.Items[i].Spec.CSI == nil {
				continue
			}
			if err := f.Get(of.Name, &corev1.PersistentVolumeClaim{}); err != nil {
				left = append(left, "PersistentVolume "+volumes.Items[i].Name+" of "+of.Name)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("there are still %s", strings.Join(left, ", "))
		}
		return nil
	})
}
