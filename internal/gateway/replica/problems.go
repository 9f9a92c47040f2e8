package replica

import "github.com/slipway-dev/slipway/internal/gateway/replica/document"

// maxProblems bounds how many problems are kept of a pod. Those of this release tell fewer.
const maxProblems = 5000

// bounded leaves out problems that are too many: what else the pod says is true all the same.
// Beyond the bound, those are kept from which conditions are made.
func bounded(problems []document.Problem) []document.Problem {
	if len(problems) <= maxProblems {
		return problems
	}
	var kept []document.Problem
	for i, decides := range document.Decisive(problems) {
		if i < maxProblems || decides {
			kept = append(kept, problems[i])
		}
	}
	return kept
}
