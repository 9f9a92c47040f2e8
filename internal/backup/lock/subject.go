package lock

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// Subject is what one Job at a time may write to. All fields are required.
type Subject struct {
	// What messages call it, for example: the repository.
	What string
	// Namespace is where it is, and where the Jobs and pods are that write to it.
	Namespace string
	// Lease is the name of its Lease.
	Lease string
	// Label stands on the Lease with Value. A Lease of that name without it is somebody else's.
	Label, Value string
	// Instead says what a user can do other than delete such a Lease, for example: rename the Backup.
	Instead string
	// Owner is whom the Lease goes with.
	Owner metav1.OwnerReference
	// Writers selects the Jobs and pods that may write to it.
	Writers client.ListOption
	// Writes reports whether a pod that was selected may.
	Writes func(pod *corev1.PodSpec) bool
	// Reason is what status says while another one writes.
	Reason string
}

// Repository is the repository of a Backup.
func Repository(backup *slipwayv1alpha1.Backup) Subject {
	return Subject{
		What: "the repository", Namespace: backup.Namespace,
		Lease: backup.Name + "-repository", Label: slipwayv1alpha1.LabelBackup, Value: backup.Name, Instead: "rename the Backup",
		Owner: metav1.OwnerReference{
			APIVersion: slipwayv1alpha1.SchemeGroupVersion.String(), Kind: "Backup", Name: backup.Name, UID: backup.UID,
		},
		Writers: client.MatchingLabels{slipwayv1alpha1.LabelBackup: backup.Name}, Writes: mover.Writes,
		Reason: slipwayv1alpha1.ReasonRepositoryBusy,
	}
}

// Target is a volume that Restores write to, with the UID of its claim. The Lease is named after that, so it is the Lease of no
// other volume.
func Target(claim types.NamespacedName, uid types.UID) Subject {
	return Subject{
		What: fmt.Sprintf("PersistentVolumeClaim %q", claim.Name), Namespace: claim.Namespace,
		Lease: "restore-" + string(uid), Label: slipwayv1alpha1.LabelManagedBy, Value: slipwayv1alpha1.ManagedBySlipway,
		Instead: "restore to another claim",
		Owner:   metav1.OwnerReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: claim.Name, UID: uid},
		Writers: client.HasLabels{slipwayv1alpha1.LabelRestore},
		Writes:  func(pod *corev1.PodSpec) bool { return mover.RestoresTo(pod, claim.Name) },
		Reason:  slipwayv1alpha1.ReasonTargetBusy,
	}
}

// writing is the first of some pods that may write to it, other than those of the Job with that UID, or nil. A pod may until it
// has ended.
func (s Subject) writing(pods []corev1.Pod, own types.UID) *corev1.Pod {
	for i := range pods {
		pod := &pods[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		ofOwn := own != "" && pod.Labels[batchv1.ControllerUidLabel] == string(own)
		if !ended && !ofOwn && s.Writes(&pod.Spec) {
			return pod
		}
	}
	return nil
}

func (s Subject) labels() map[string]string {
	return map[string]string{slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway, s.Label: s.Value}
}

func (s Subject) called() string { return fmt.Sprintf("Lease %q", s.Lease) }

func (s Subject) isBusy(what, name string, after time.Duration) error {
	return outcome.Waitingf(after, s.Reason, "%s %q may still write to %s, and one at a time may", what, name, s.What)
}
