package revision

import (
	"fmt"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// RouteProblems returns what the compiler of the table found, as a Document has it.
func RouteProblems(problems []table.Problem) []Problem {
	var list []Problem
	for _, p := range problems {
		list = append(list, Problem{
			Route: p.Index, Name: p.Route, Field: fmt.Sprintf("spec.routes[%d]", p.Index), Reason: p.Reason, Message: p.Message,
		})
	}
	return list
}
