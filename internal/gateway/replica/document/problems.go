package document

import (
	"fmt"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// TableProblems converts the problems of the table's compiler for a Document.
func TableProblems(problems []model.Problem) []Problem {
	var list []Problem
	for _, p := range problems {
		field := fmt.Sprintf("spec.routes[%d]", p.Index)
		if p.Index < 0 {
			field = fmt.Sprintf("spec.%s[%s]", p.List, p.Route)
		}
		list = append(list, Problem{Route: p.Index, Name: p.Route, Field: field, Reason: p.Reason, Message: p.Message})
	}
	return list
}
