package backuprun

import (
	"context"
	"fmt"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
)

// hold has the volume held by the before hooks, and then a snapshot of it taken, where the Job is to read one. ready reports
// whether the Job can be made. used is why the volume itself cannot be read, or nil.
//
// Whether there will be a snapshot is decided first: no workload is held for a volume that cannot be read.
func (r *Reconciler) hold(ctx context.Context, s *scope, in *desired.Inputs, used error, now time.Time) (ready bool, err error) {
	volume := &s.volumes[s.current]
	class, why, err := r.decide(ctx, s, volume)
	if err != nil || s.staging != nil {
		return false, err
	}
	fromSnapshot := volume.ReadFrom == slipwayv1alpha1.ReadFromSnapshot
	if !fromSnapshot && used != nil {
		return false, used
	}
	if ready, err := r.quiesce(ctx, s, in.Claim, now); !ready || err != nil {
		return false, err
	}
	if !fromSnapshot {
		in.NoSnapshot = why
		return true, nil
	}
	if ready, err := r.stage(ctx, s, volume, class, in.Live); !ready || err != nil {
		return false, err
	}
	in.Snapshot, in.Node, in.Live = s.snapshot, "", s.snapshot.Annotations[desired.AnnotationLive] != ""
	return true, nil
}

// decide says with which class a snapshot of the volume is to be taken. Without one the volume itself is read, and why may say
// for what reason, or the snapshot is there. It sets staging where the status has to say first that a snapshot is read.
//
// What the first attempt reads the others read, too: one of them may find a copy that an earlier one has stored.
func (r *Reconciler) decide(ctx context.Context, s *scope, volume *slipwayv1alpha1.BackupVolume) (class, why string, err error) {
	if volume.ReadFrom == slipwayv1alpha1.ReadFromVolume || s.snapshot.UID != "" {
		return "", "", nil
	}
	class, why, err = r.choose(ctx, s, volume)
	if err == nil && class != "" && volume.ReadFrom == "" {
		volume.ReadFrom = slipwayv1alpha1.ReadFromSnapshot
		s.staging = r.taking(volume)
	}
	return class, why, err
}

// taking is that a snapshot of the volume is being taken, from now on.
func (r *Reconciler) taking(volume *slipwayv1alpha1.BackupVolume) *mover.Staging {
	return &mover.Staging{Does: fmt.Sprintf("a snapshot of volume %q is being taken", volume.Claim), Since: r.kit.Clock.Now()}
}
