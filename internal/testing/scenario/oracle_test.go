package scenario

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/fault"
)

func TestAWayMayBeShorterAndNothingElse(t *testing.T) {
	tests := map[string]struct {
		want, got []string
		problem   bool // of one operator
		ofTwo     bool // of two that act at once
	}{
		"the same":           {[]string{"a", "b", "a"}, []string{"a", "b", "a"}, false, false},
		"one left out":       {[]string{"a", "b", "c"}, []string{"a", "c"}, false, false},
		"another state":      {[]string{"a", "b"}, []string{"a", "x", "b"}, true, true},
		"there and back":     {[]string{"a", "b"}, []string{"a", "b", "a", "b"}, true, false},
		"the wrong way":      {[]string{"a", "b"}, []string{"b", "a"}, true, false},
		"deleted":            {[]string{"a"}, []string{"a", gone, "a"}, true, true},
		"deleted as asked":   {[]string{"a", gone, "a"}, []string{"a", gone, "a"}, false, false},
		"deleted once more":  {[]string{"a", gone, "a"}, []string{"a", gone, "a", gone, "a"}, true, true},
		"made once more":     {[]string{"a", gone}, []string{"a", gone, "a", gone}, true, false},
		"and again":          {[]string{"a", gone}, []string{"a", gone, "a", gone, "a", gone}, true, true},
		"made, and left":     {[]string{"a", gone}, []string{"a", gone, "a"}, true, false},
		"nothing of it seen": {[]string{"a"}, nil, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for operators, problem := range map[int]bool{1: tc.problem, 2: tc.ofTwo} {
				problems := checkWays(map[string][]string{"Deployment/shop": tc.want}, map[string][]string{"Deployment/shop": tc.got}, operators)
				if (len(problems) > 0) != problem {
					t.Errorf("%d operators, problems: %v, want some: %v", operators, problems, problem)
				}
			}
		})
	}
}

func TestAnObjectThatNobodyAskedForIsFound(t *testing.T) {
	problems := checkWays(map[string][]string{}, map[string][]string{"Service/shop-2": {"a"}}, 2)
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "Service/shop-2") {
		t.Errorf("problems: %v", problems)
	}
}

func TestAClaimHasToBeTrueOfEveryChild(t *testing.T) {
	reference := &Outcome{
		claims: []claim{{"WebApp/shop", 2, map[string]string{"Deployment/shop": "new", "Service/shop": "s", "Job/shop": "j", "BackupRun/old": "r"}}},
		States: []map[string]any{{"BackupRun/old": ""}, {"WebApp/shop": "", "Deployment/shop": "", "Service/shop": "", "Job/shop": ""}},
	}
	tests := map[string]struct {
		got     claim
		problem string
	}{
		"as without the fault": {
			claim{"WebApp/shop", 2, map[string]string{"Deployment/shop": "new", "Service/shop": "s", "Job/shop": "j", "BackupRun/old": "r"}}, "",
		},
		"history is gone already": {claim{"WebApp/shop", 2, map[string]string{"Deployment/shop": "new", "Service/shop": "s", "Job/shop": "j"}}, ""},
		"a Job is gone already":   {claim{"WebApp/shop", 2, map[string]string{"Deployment/shop": "new", "Service/shop": "s"}}, ""},
		"one child is still old":  {claim{"WebApp/shop", 2, map[string]string{"Deployment/shop": "old", "Service/shop": "s"}}, "Deployment/shop asked for old"},
		"one child is missing":    {claim{"WebApp/shop", 2, map[string]string{"Deployment/shop": "new"}}, "there was no Service/shop"},
		"of a generation that is": {claim{"WebApp/shop", 1, map[string]string{}}, "generation 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			problems := checkClaims(reference, &Outcome{claims: []claim{tc.got}})
			switch {
			case tc.problem == "" && len(problems) > 0:
				t.Errorf("problems: %v", problems)
			case tc.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), tc.problem)):
				t.Errorf("problems: %v, want one with %q", problems, tc.problem)
			}
		})
	}
}

// ready is a version of an object with conditions.
func ready(number, generation, observed int64, status string) Version {
	return Version{Object: "WebApp/shop", Number: number, Fields: map[string]any{
		"apiVersion": "slipway.dev/v1alpha1", "kind": "WebApp",
		"metadata": map[string]any{"name": "shop", "generation": generation},
		"status": map[string]any{"observedGeneration": observed, "conditions": []any{
			map[string]any{"type": "Ready", "status": status},
		}},
	}}
}

func TestClaimsAreFoundInTheOrderOfVersions(t *testing.T) {
	// Two kinds are watched apart, so what happened first may be told last.
	history := []Version{
		ready(1, 1, 0, "False"), ready(4, 1, 1, "True"), ready(5, 2, 1, "True"), ready(9, 2, 2, "True"),
		{Object: "Deployment/shop", Number: 2, Asks: "old"},
		{Object: "Deployment/shop", Number: 8, Asks: "new"},
	}
	claims := claimsOf(history)
	if len(claims) != 2 {
		t.Fatalf("claims: %+v, want two", claims)
	}
	for i, want := range []string{"old", "new"} {
		if got := claims[i].others["Deployment/shop"]; got != want {
			t.Errorf("claim %d was made while the Deployment asked for %q, want %q", i+1, got, want)
		}
	}
}

func TestTooManyWritesOfOneObjectAreFound(t *testing.T) {
	accepted := fault.Write{Path: "/a", Code: http.StatusOK}
	refused := fault.Write{Path: "/a", Code: http.StatusConflict}
	reference := []fault.Write{accepted}
	const allowed = 2
	for name, tc := range map[string]struct {
		accepted, refused int
		problems          int
	}{
		"within the allowance":      {accepted: 1 + allowed},
		"one more":                  {accepted: 2 + allowed, problems: 1},
		"refused now and then":      {accepted: 1 + allowed, refused: allowed + refusals},
		"refused over and over":     {accepted: 1, refused: allowed + refusals + 1, problems: 1},
		"too many of both kinds":    {accepted: 2 + allowed, refused: allowed + refusals + 1, problems: 2},
		"less than without a fault": {},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Concat(slices.Repeat([]fault.Write{accepted}, tc.accepted), slices.Repeat([]fault.Write{refused}, tc.refused))
			if problems := checkWrites(reference, got, allowed, refusals); len(problems) != tc.problems {
				t.Errorf("problems: %v, want %d", problems, tc.problems)
			}
		})
	}
}

func TestATryInADeletedNamespaceMayFollowEachStatus(t *testing.T) {
	tests := map[string]struct {
		refused, reported int
		fine              bool
	}{
		"a try and another one after the pause": {2, 0, true},
		"more tries than pauses":                {3, 0, false},
		"a try after a status":                  {3, 1, true},
		"two after a status":                    {4, 1, false},
		"status after status":                   {2, 3, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			refused := fault.Write{Path: "/ingresses/a", Code: http.StatusForbidden}
			reported := fault.Write{Path: "/apigateways/a/status", Code: http.StatusOK}
			err := givenUp(slices.Concat(slices.Repeat([]fault.Write{refused}, tc.refused), slices.Repeat([]fault.Write{reported}, tc.reported)))
			if (err == nil) != tc.fine {
				t.Errorf("fine: %v, got %v", tc.fine, err)
			}
		})
	}
}

func TestWhatIsUnsafeIsToldFromWhatIsLate(t *testing.T) {
	reference := &Outcome{ways: map[string][]string{"Deployment/shop": {"1", "2"}}}
	claims := []claim{{object: "WebApp/shop", generation: 1}}
	for name, tc := range map[string]struct {
		got    *Outcome
		ended  bool
		unsafe bool
	}{
		"the same":                        {got: reference, ended: true},
		"a way that breaks off":           {got: &Outcome{ways: map[string][]string{"Deployment/shop": {"1"}}}},
		"another way":                     {got: &Outcome{ways: map[string][]string{"Deployment/shop": {"1", gone}}}, unsafe: true},
		"a false claim":                   {got: &Outcome{claims: claims}, ended: true, unsafe: true},
		"a claim of a run that broke off": {got: &Outcome{claims: claims}},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("step 1: %w", errors.Join(errors.New("late"), checkSafety(reference, tc.got, nil, tc.ended, 1)))
			if errors.As(err, new(Unsafe)) != tc.unsafe {
				t.Errorf("%v is unsafe: %t, want %t", err, !tc.unsafe, tc.unsafe)
			}
		})
	}
}

func TestTheTableCounts(t *testing.T) {
	table := &Table{}
	table.Add("webapp/b", "F1", true)
	table.Add("webapp/a", "F1", true)
	table.Add("webapp/a", "F1", false)
	table.Add("webapp/a", "F2", true)
	want := "| |F1|F2|\n|---|---|---|\n|webapp/a|1/2|1/1|\n|webapp/b|1/1||\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if passed, run := table.Total(); passed != 3 || run != 4 {
		t.Errorf("%d of %d, want 3 of 4", passed, run)
	}
}
