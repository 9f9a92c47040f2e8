package selection

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}

func TestKindsAreChosenByPatterns(t *testing.T) {
	for name, test := range map[string]struct {
		include, exclude []string
		follow           bool
	}{
		"all by default":                  {follow: true},
		"by group":                        {include: []string{"example.com"}, follow: true},
		"by resource":                     {include: []string{"widgets.example.com"}, follow: true},
		"by the end of a group":           {include: []string{"*.com"}, follow: true},
		"by the begin of a name":          {include: []string{"wid*"}, follow: true},
		"another group":                   {include: []string{"example.org"}},
		"a part of a name is not enough":  {include: []string{"widgets"}},
		"excluding wins":                  {include: []string{"*"}, exclude: []string{"widgets.*"}},
		"another resource is excluded":    {exclude: []string{"gadgets.example.com"}, follow: true},
		"a dot is a dot and not anything": {include: []string{"example-com"}},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := New(test.include, test.exclude)
			if err != nil {
				t.Fatal(err)
			}
			if got := chosen.Refuses(widgets); (got == "") != test.follow {
				t.Errorf("refused: %q, follow %v", got, test.follow)
			}
		})
	}
	for _, wrong := range []string{"", "Widgets", "[a]", "a b", "a?", `a\`} {
		if _, err := New([]string{wrong}, nil); err == nil {
			t.Errorf("the pattern %q is taken", wrong)
		}
	}
}
