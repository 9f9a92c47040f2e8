package restore

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/controller/restore/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// makeVolume makes the volume that the spec asks for. One that is there is refused unless this Restore has made it: the spec
// says that it is a new one. It is looked for past the cache, which has only claims with our label.
func (r *Reconciler) makeVolume(ctx context.Context, s *scope) error {
	claim := desired.Claim(s.restore)
	if claim == nil {
		return nil
	}
	current := &corev1.PersistentVolumeClaim{}
	key := types.NamespacedName{Namespace: s.restore.Namespace, Name: s.restore.Spec.Target.Claim}
	switch err := r.kit.Live.Get(ctx, key, current); {
	case err == nil:
		return checkMaker(s.restore, current)
	case !apierrors.IsNotFound(err):
		return outcome.Classify(fmt.Sprintf("PersistentVolumeClaim %q", key.Name), err)
	}
	if err := r.findStorageClass(ctx, s); err != nil {
		return err
	}
	// A volume stays for ever, so it is not made for a Restore that only a stale cache shows.
	r.kit.Fresh.Invalidate(s.restore)
	current = &corev1.PersistentVolumeClaim{}
	made, err := r.kit.Applier.Create(ctx, s.restore, apply.Child{Desired: claim, Current: current})
	if err != nil || made {
		return err
	}
	return checkMaker(s.restore, current)
}

// checkMaker returns an error unless a Restore may write to an existing volume as to a new one. The UID tells: a label has a
// name, which an earlier Restore may have had.
func checkMaker(restore *slipwayv1alpha1.Restore, claim *corev1.PersistentVolumeClaim) error {
	switch {
	case claim.Annotations[slipwayv1alpha1.AnnotationRestoreUID] != string(restore.UID) && !madeByOlder(restore, claim):
		return outcome.Blockedf(transfer.Recheck, slipwayv1alpha1.ReasonNameConflict,
			"PersistentVolumeClaim %q exists, and this Restore has not made it (spec.target.create): delete it, or make a Restore "+
				"with another "+
				"spec.target.claim, or one without spec.target.create", claim.Name)
	case !claim.DeletionTimestamp.IsZero():
		return outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonTerminating,
			"PersistentVolumeClaim %q is being deleted and is recreated afterwards", claim.Name)
	default:
		return nil
	}
}

// madeByOlder reports whether an older operator made the volume for this Restore: it wrote a label and no UID. A volume that is older
// than the Restore is of an earlier one. A Restore that has not begun has no volume yet that an older operator could have made.
func madeByOlder(restore *slipwayv1alpha1.Restore, claim *corev1.PersistentVolumeClaim) bool {
	_, reported := claim.Annotations[slipwayv1alpha1.AnnotationRestoreUID]
	return !reported && restore.Status.StartTime != nil && claim.Labels[slipwayv1alpha1.LabelRestore] == restore.Name &&
		!claim.CreationTimestamp.Before(&restore.CreationTimestamp)
}
