package replica

import "github.com/slipway-dev/slipway/internal/gateway/revision"

// maxProblems bounds how many problems are kept of a pod. Those of this release tell fewer.
const maxProblems = 5000

// bounded leaves out problems that are too many: what else the pod says is true all the same.
// Beyond the bound, those are kept from which conditions are made.
func bounded(problems []revision.Problem) []revision.Problem {
	if len(problems) <= maxProblems {
		return problems
	}
	var kept []revision.Problem
	for i, decides := range revision.Decisive(problems) {
		if i < maxProblems || decides {
			kept = append(kept, problems[i])
		}
	}
	return kept
}
