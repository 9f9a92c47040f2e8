package replica_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// Pods of older releases tell all problems. What else they say counts.
func TestProblemsThatAreTooManyAreLeftOut(t *testing.T) {
	of := func(route int, reason string, n int) []document.Problem {
		var list []document.Problem
		for i := range n {
			list = append(list, document.Problem{Route: route, Reason: reason, Message: fmt.Sprint(i)})
		}
		return list
	}
	for name, tc := range map[string]struct{ says, want []document.Problem }{
		"as many as are kept":     {of(-1, "A", 5000), of(-1, "A", 5000)},
		"more":                    {of(-1, "A", 5121), of(-1, "A", 5000)},
		"then another reason":     {slices.Concat(of(-1, "A", 5121), of(-1, "B", 2)), slices.Concat(of(-1, "A", 5000), of(-1, "B", 1))},
		"then routes":             {slices.Concat(of(0, "A", 5121), of(1, "A", 2), of(2, "A", 1)), slices.Concat(of(0, "A", 5000), of(1, "A", 1), of(2, "A", 1))},
		"then one of those above": {slices.Concat(of(0, "A", 3), of(-1, "A", 5121), of(0, "B", 1)), slices.Concat(of(0, "A", 3), of(-1, "A", 4997))},
	} {
		t.Run(name, func(t *testing.T) {
			server := newGateway(t, document.Document{Protocol: 1, Revision: 7, Generation: 1, Routes: []string{"r"}, Problems: tc.says})
			follower, told := follow(t, server.URL)
			got := next(t, follower, told)
			if got.State != replica.Answering || len(got.Document.Routes) != 1 {
				t.Fatalf("state %v (%s)", got.State, got.Detail)
			}
			if diff := cmp.Diff(tc.want, got.Document.Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%.2000s", diff)
			}
		})
	}
}
