package backuprun

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// adopt makes a run by hand one of its Backup before it begins: it goes with the Backup, counts as its history, and is never
// taken for a run of another Backup that gets the same name later. A run of another owner is refused.
func (r *Reconciler) adopt(ctx context.Context, s *scope) error {
	controller := metav1.GetControllerOfNoCopy(s.run)
	switch {
	case s.run.IsOf(s.backup) && controller != nil:
		return nil
	case s.run.IsOf(s.backup):
		return r.kit.Applier.Adopt(ctx, s.backup, apply.Child{Desired: desired.Owned(s.run, s.backup), Current: s.run})
	case controller == nil && s.run.Status.StartTime == nil:
		return outcome.Waitingf(
			0, slipwayv1alpha1.ReasonTerminating, "Backup %q is being deleted: no copy is made for it any more", s.backup.Name,
		)
	}
	// A stale cache may still have the Backup that was there before.
	if err := r.confirmBackup(ctx, s); err != nil {
		return err
	}
	if controller != nil && (controller.Kind != "Backup" || controller.Name != s.backup.Name) {
		return outcome.Invalidf(slipwayv1alpha1.ReasonOtherController,
			"%s %q controls this run, and only its Backup may: make one without another controller in metadata.ownerReferences",
			controller.Kind, controller.Name)
	}
	return outcome.Invalidf(slipwayv1alpha1.ReasonBackupReplaced,
		"this run is of a Backup %q that was deleted, and the one that has the name now is another", s.backup.Name)
}

// adoptEnded does so for a run that has ended: an older operator gave those by hand no owner.
func (r *Reconciler) adoptEnded(ctx context.Context, s *scope) error {
	if s.backup.UID == "" || metav1.GetControllerOfNoCopy(s.run) != nil || !s.run.IsOf(s.backup) {
		return nil
	}
	return r.adopt(ctx, s)
}

// confirmBackup returns an error while the cache does not show the Backup as it is: nothing may begin for one that was deleted
// meanwhile, and its name may be another's by now.
func (r *Reconciler) confirmBackup(ctx context.Context, s *scope) error {
	r.kit.Fresh.Invalidate(s.backup)
	return r.kit.Fresh.Confirm(ctx, s.backup)
}
