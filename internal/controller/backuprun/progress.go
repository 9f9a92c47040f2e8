package backuprun

import (
	"context"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
)

// listen reads how far the present step is.
func (r *Reconciler) listen(ctx context.Context, s *scope, now time.Time) {
	if s.err != nil || s.seen.State != mover.Working || s.next.Phase != slipwayv1alpha1.BackupRunning {
		return
	}
	s.recheck.After(transfer.ListenEvery)
	s.progress = transfer.Progress(ctx, r.logs, s.run.Namespace, s.seen, s.run.Status.Progress, now)
}
