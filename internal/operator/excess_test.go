package operator

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnOperatorFindsTheRightsThatItDoesNotAskFor(t *testing.T) {
	has := func(rights ...excess) func(strongRight, string) (bool, error) {
		return func(right strongRight, namespace string) (bool, error) {
			everywhere := slices.Contains(rights, excess{right.name, ""})
			return everywhere || slices.Contains(rights, excess{right.name, namespace}), nil
		}
	}
	exec, secrets, token := "create pods/exec", "get secrets", "create serviceaccounts/token"
	many := make([]string, 3*maxRightsNamespaces)
	for i := range many {
		many[i] = "team"
	}
	for name, tc := range map[string]struct {
		options Options
		has     []excess
		want    []excess
	}{
		"with nothing": {Options{}, nil, nil},
		"in all namespaces, with what it asks for":   {Options{}, []excess{{secrets, ""}, {"create deployments", ""}}, nil},
		"in all namespaces, with exec":               {Options{}, []excess{{exec, ""}}, []excess{{exec, ""}}},
		"in all namespaces, with exec for hooks":     {Options{BackupHooks: true}, []excess{{exec, ""}}, nil},
		"limited, with what it asks for":             {Options{Namespaces: []string{"a", "b"}}, []excess{{secrets, "a"}, {secrets, "b"}}, nil},
		"limited, with exec that an install left":    {Options{Namespaces: []string{"a", "b"}}, []excess{{exec, ""}}, []excess{{exec, ""}}},
		"limited, with exec for hooks everywhere":    {Options{Namespaces: []string{"a"}, BackupHooks: true}, []excess{{exec, ""}}, []excess{{exec, ""}}},
		"limited, with exec for hooks":               {Options{Namespaces: []string{"a"}, BackupHooks: true}, []excess{{exec, "a"}}, nil},
		"limited, with exec in its own":              {Options{Namespaces: []string{"a", "b"}}, []excess{{exec, "b"}}, []excess{{exec, "b"}}},
		"limited, with the rights of one for all":    {Options{Namespaces: []string{"a"}}, []excess{{secrets, ""}}, []excess{{secrets, ""}}},
		"limited, with secrets of the control plane": {Options{Namespaces: []string{"a"}}, []excess{{secrets, "kube-system"}}, []excess{{secrets, "kube-system"}}},
		"limited, with tokens of its own":            {Options{Namespaces: []string{"a"}}, []excess{{token, "a"}}, []excess{{token, "a"}}},
		"limited to many":                            {Options{Namespaces: many}, nil, nil},
	} {
		asked := 0
		got, err := excessRights(tc.options, func(right strongRight, namespace string) (bool, error) {
			asked++
			return has(tc.has...)(right, namespace)
		})
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v -want +got:\n%s", name, err, diff)
		}
		if most := len(strongRights()) * (2 + maxRightsNamespaces); asked > most {
			t.Errorf("%s: it asks %d times, want %d at most", name, asked, most)
		}
	}
	down := errors.New("down")
	if _, err := excessRights(Options{}, func(strongRight, string) (bool, error) { return false, down }); !errors.Is(err, down) {
		t.Errorf("while nobody answers: %v", err)
	}
}
