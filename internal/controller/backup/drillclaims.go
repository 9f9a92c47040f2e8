package backup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// claimsOf are the claims of a run that there still are. A drill goes without: that a volume is gone is what backups are for.
func (r *Reconciler) claimsOf(ctx context.Context, run *slipwayv1alpha1.BackupRun) (map[string]*corev1.PersistentVolumeClaim, error) {
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, v := range run.Status.Volumes {
		if v.Dump != "" {
			continue // a claim of that name is another thing
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := r.kit.Live.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: v.Claim}, claim)
		switch {
		case err == nil:
			claims[v.Claim] = claim
		case !apierrors.IsNotFound(err):
			return nil, outcome.Classify(fmt.Sprintf("PersistentVolumeClaim %q", v.Claim), err)
		}
	}
	return claims, nil
}

// identityOf is who the pods of the source run as: the files that are restored are theirs. The volumes themselves are not used,
// so it does not matter how they may be.
func identityOf(run *slipwayv1alpha1.BackupRun, claims map[string]*corev1.PersistentVolumeClaim, pods []corev1.Pod) mover.Identity {
	for _, v := range run.Status.Volumes {
		if claims[v.Claim] == nil {
			continue
		}
		claim := claims[v.Claim].DeepCopy()
		claim.Spec.AccessModes = nil
		if use, trouble := mover.UseOf(claim, pods); trouble == nil && use.Identity.User != 0 {
			return use.Identity
		}
	}
	return mover.Identity{}
}
