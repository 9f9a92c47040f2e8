package backuprun

import (
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// captured reports whether what the copy is made of does not change any more, whatever the workload does: it need not be held any
// longer. That is so when a snapshot of the volume has been cut, or when the step that reads the volume has ended.
// Verification reads from the repository.
func captured(s *scope) bool {
	if s.cut() || s.seen.State == mover.Succeeded {
		return true
	}
	made := s.seen.Results[mover.StepSnapshot]
	return made != nil && made.OK
}

// cut reports whether later writes to the present volume do not reach the snapshot that is read.
func (s *scope) cut() bool {
	return s.current < len(s.volumes) && s.snapshot.UID != "" && s.snapshot.IsOf(s.volumes[s.current].Claim) && s.snapshot.Taken()
}
