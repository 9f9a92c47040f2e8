package replica

import "github.com/slipway-dev/slipway/internal/gateway/revision"

// maxProblems bounds how many problems are kept of a pod. Those of this release tell fewer.
const maxProblems = 5000

// bounded leaves out problems that are too many: what else the pod says is true all the same.
// Beyond the bound, those are kept from which conditions are made: the first problem of each
// route, and the first with each reason of everything else. Without them a route would count
// as live.
func bounded(problems []revision.Problem) []revision.Problem {
	if len(problems) <= maxProblems {
		return problems
	}
	type key struct {
		route  int
		reason string
	}
	seen := map[key]bool{}
	var kept []revision.Problem
	for i, problem := range problems {
		of := key{route: problem.Route}
		if problem.Route < 0 {
			of.reason = problem.Reason
		}
		if i < maxProblems || !seen[of] {
			kept = append(kept, problem)
		}
		seen[of] = true
	}
	return kept
}
