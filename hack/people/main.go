// Command people writes config/rbac/users.yaml: the rights of people to the kinds of Slipway, from what the kinds say of them.
package main

import (
	_ "embed"
	"slices"
	"strings"
	"text/template"

	"github.com/slipway-dev/slipway/hack/generated"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/operator"
)

//go:generate go run . -output ../../config/rbac/users.yaml

//go:embed users.yaml.tmpl
var manifest string

func main() {
	generated.Main("people", func() ([]byte, error) { return render(operator.Kinds()) })
}

// resources are those of the rules.
type resources struct {
	// View has a list for each rule of who may view a namespace: what kinds of one shape have shares a rule.
	View [][]string
	// Edit is what may be written, Scale what may be scaled, and Status what of that tells how it is.
	Edit, Scale, Status []string
}

func render(kinds []kit.Kind) ([]byte, error) {
	return generated.Fill(
		manifest, template.FuncMap{"list": func(all []string) string { return strings.Join(all, ", ") }}, resourcesOf(kinds),
	)
}

func resourcesOf(kinds []kit.Kind) resources {
	var all resources
	var last []kit.People
	for _, kind := range kinds {
		if len(kind.People) == 0 {
			continue
		}
		shape := shapeOf(kind.People)
		if !slices.Equal(shape, last) {
			all.View, last = append(all.View, nil), shape
		}
		rule := &all.View[len(all.View)-1]
		for _, people := range kind.People {
			*rule = append(*rule, people.Resource)
			if people.Edit {
				all.Edit = append(all.Edit, people.Resource)
			}
			if people.Status {
				*rule = append(*rule, people.Resource+"/status")
				all.Status = append(all.Status, people.Resource+"/status")
			}
			if people.Scale {
				*rule = append(*rule, people.Resource+"/scale")
				all.Scale = append(all.Scale, people.Resource+"/scale")
			}
		}
	}
	slices.Sort(all.Edit)
	slices.Sort(all.Scale)
	slices.Sort(all.Status)
	return all
}

// shapeOf is what rights have in common but for the names.
func shapeOf(all []kit.People) []kit.People {
	shape := slices.Clone(all)
	for i := range shape {
		shape[i].Resource = ""
	}
	return shape
}
