package children

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func TestAVariableComesAfterThoseThatItRefersTo(t *testing.T) {
	whole := slipwayv1alpha1.EnvFromSource{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}}
	keys := slipwayv1alpha1.EnvFromSource{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}, Keys: []string{"USER", "ZONE"}}
	cases := map[string]struct {
		values  map[string]slipwayv1alpha1.EnvValue
		sources []slipwayv1alpha1.EnvFromSource
		want    string
		problem string
	}{
		"nothing refers to anything": {map[string]slipwayv1alpha1.EnvValue{"B": "1", "A": "2", "C": "$"}, nil, "A B C", ""},
		"to an earlier one":          {map[string]slipwayv1alpha1.EnvValue{"A": "1", "B": "$(A)", "C": "2"}, nil, "A B C", ""},
		"to a later one":             {map[string]slipwayv1alpha1.EnvValue{"MESSAGE": "$(MESSAGE_FIRST)", "MESSAGE_FIRST": "Hello", "A": ""}, nil, "A MESSAGE_FIRST MESSAGE", ""},
		"in a chain":                 {map[string]slipwayv1alpha1.EnvValue{"A": "$(B)x", "B": "-$(C)$(D)", "C": "$(D)", "D": "1"}, nil, "D C B A", ""},
		"to a key of a Secret":       {map[string]slipwayv1alpha1.EnvValue{"URL": "$(USER)@$(ZONE)"}, []slipwayv1alpha1.EnvFromSource{keys}, "USER ZONE URL", ""},
		"to what nobody knows":       {map[string]slipwayv1alpha1.EnvValue{"A": "$(date)", "B": "1"}, []slipwayv1alpha1.EnvFromSource{whole}, "A B", ""},
		"escaped":                    {map[string]slipwayv1alpha1.EnvValue{"A": "$$(B)", "B": "$$(A)"}, nil, "A B", ""},
		"a dollar, and a reference":  {map[string]slipwayv1alpha1.EnvValue{"A": "$$$(B)", "B": "1"}, nil, "B A", ""},
		"not closed":                 {map[string]slipwayv1alpha1.EnvValue{"A": "$(B", "B": "1"}, nil, "A B", ""},
		"another dollar":             {map[string]slipwayv1alpha1.EnvValue{"A": "$x$(B)$", "B": "1"}, nil, "B A", ""},
		"to each other":              {map[string]slipwayv1alpha1.EnvValue{"A": "$(B)", "B": "$(C)", "C": "$(A)"}, nil, "C B A", "A, B and C refer to each other"},
		"to each other, and a source": {
			map[string]slipwayv1alpha1.EnvValue{"A": "$(B)", "B": "$(A)"}, []slipwayv1alpha1.EnvFromSource{whole}, "B A", "A and B refer to each other",
		},
		"to itself":                   {map[string]slipwayv1alpha1.EnvValue{"PATH": "$(PATH):/x"}, nil, "PATH", "PATH refers to itself"},
		"to what a source gives":      {map[string]slipwayv1alpha1.EnvValue{"PATH": "$(PATH):/x"}, []slipwayv1alpha1.EnvFromSource{whole}, "PATH", ""},
		"to a key that itself covers": {map[string]slipwayv1alpha1.EnvValue{"USER": "$(USER)x"}, []slipwayv1alpha1.EnvFromSource{keys}, "USER ZONE", "USER refers to itself"},
		"a prefix that the source does not give": {
			map[string]slipwayv1alpha1.EnvValue{"PATH": "$(PATH):/x"},
			[]slipwayv1alpha1.EnvFromSource{{SecretRef: whole.SecretRef, Prefix: "DB_"}},
			"PATH", "PATH refers to itself",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, variable := range Env(c.values, c.sources) {
				got = append(got, *variable.Name)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("the order, -want +got:\n%s", diff)
			}
			problem := EnvProblem(c.values, c.sources)
			if (problem == "") != (c.problem == "") || !strings.HasPrefix(problem, c.problem) {
				t.Errorf("the problem is %q, want %q", problem, c.problem)
			}
		})
	}
}

// In a list of Kubernetes a name may stand several times, and the last one counts.
func TestVariablesOfOneNameKeepTheirOrder(t *testing.T) {
	for list, want := range map[string]string{
		"A=1 A=2":                   "A=1 A=2",
		"A=1 B=$(A) A=2":            "A=1 B=$(A) A=2",
		"A=1 A=$(A):2":              "A=1 A=$(A):2",
		"A=$(A):1 A=2":              "A=$(A):1 A=2",
		"B=$(A) A=1 A=2":            "A=1 B=$(A) A=2",
		"A=1 A=$(B) B=2 A=3":        "A=1 B=2 A=$(B) A=3",
		"A=$(B) B=$(A) A=2 B=3 A=4": "B=$(A) A=$(B) A=2 B=3 A=4",
	} {
		var variables []*corev1ac.EnvVarApplyConfiguration
		for _, variable := range strings.Fields(list) {
			name, value, _ := strings.Cut(variable, "=")
			variables = append(variables, corev1ac.EnvVar().WithName(name).WithValue(value))
		}
		var got []string
		for _, variable := range InOrder(variables) {
			got = append(got, *variable.Name+"="+*variable.Value)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", list, diff)
		}
		if IsInOrder(variables) != (list == want) {
			t.Errorf("%s: IsInOrder says %t", list, list != want)
		}
	}
}

func TestWhatIsSaidOfALongCircleIsShort(t *testing.T) {
	values := map[string]slipwayv1alpha1.EnvValue{}
	long := strings.Repeat("X", 3000)
	for i := range 26 {
		values[long+string(rune('A'+i))] = slipwayv1alpha1.EnvValue("$(" + long + string(rune('A'+(i+1)%26)) + ")")
	}
	if problem := EnvProblem(values, nil); len(problem) > 600 || !strings.Contains(problem, "and 21 more refer") {
		t.Errorf("%d bytes: %q", len(problem), problem)
	}
}
