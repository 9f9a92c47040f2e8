package crdcheck

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// What a definition may have. The API server stores 1.5 MiB of it, and those that people write stay far below all of these.
const (
	maxSchemaDepth = 100
	maxSchemaNodes = 200_000
	maxRules       = 5_000
	maxRuleBytes   = 1 << 20
)

// measure is the size of a schema.
type measure struct {
	nodes, rules, ruleBytes int
	unique                  bool
	err                     error
}

// schemaTooLarge says why a schema is not looked at, nil when it is.
func schemaTooLarge(schema *apiextensionsv1.JSONSchemaProps) error {
	m := &measure{}
	m.visit(schema, 0)
	return m.err
}

func (m *measure) visit(s *apiextensionsv1.JSONSchemaProps, depth int) {
	if s == nil || m.err != nil {
		return
	}
	m.nodes++
	m.rules += len(s.XValidations)
	m.unique = m.unique || s.UniqueItems
	for i := range s.XValidations {
		m.ruleBytes += len(s.XValidations[i].Rule) + len(s.XValidations[i].MessageExpression)
	}
	switch {
	case depth > maxSchemaDepth:
		m.err = fmt.Errorf("the schema is more than %d levels deep", maxSchemaDepth)
	case m.nodes > maxSchemaNodes:
		m.err = fmt.Errorf("the schema has more than %d parts", maxSchemaNodes)
	case m.rules > maxRules:
		m.err = fmt.Errorf("the schema has more than %d rules", maxRules)
	case m.ruleBytes > maxRuleBytes:
		m.err = fmt.Errorf("the rules of the schema are longer than %d bytes", maxRuleBytes)
	}
	eachChild(s, func(child *apiextensionsv1.JSONSchemaProps) { m.visit(child, depth+1) })
}

// eachChild calls visit with every schema that is directly within s.
func eachChild(s *apiextensionsv1.JSONSchemaProps, visit func(*apiextensionsv1.JSONSchemaProps)) {
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			visit(&list[i])
		}
	}
	for _, named := range []map[string]apiextensionsv1.JSONSchemaProps{s.Properties, s.PatternProperties, s.Definitions} {
		for name := range named {
			child := named[name]
			visit(&child)
		}
	}
	visit(s.Not)
	if s.Items != nil {
		visit(s.Items.Schema)
		for i := range s.Items.JSONSchemas {
			visit(&s.Items.JSONSchemas[i])
		}
	}
	for _, either := range []*apiextensionsv1.JSONSchemaPropsOrBool{s.AdditionalProperties, s.AdditionalItems} {
		if either != nil {
			visit(either.Schema)
		}
	}
	for name := range s.Dependencies {
		visit(s.Dependencies[name].Schema)
	}
}
