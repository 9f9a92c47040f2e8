package backuprun

import (
	"github.com/slipway-dev/slipway/internal/mover"
)

// captured tells that what the copy is made of does not change any more, whatever the workload does: it need not be held any
// longer. That is so when the step that reads the volume has ended. Verification reads from the repository.
func captured(s *scope) bool {
	if s.seen.State == mover.Succeeded {
		return true
	}
	made := s.seen.Results[mover.StepSnapshot]
	return made != nil && made.OK
}
