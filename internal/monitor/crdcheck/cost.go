package crdcheck

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// What an object may have. The API server takes requests of 3 MiB.
const (
	maxObjectNodes = 1_000_000
	// maxWork is how many comparisons the check of an object may take, about. Each takes about a microsecond.
	maxWork = 5_000_000
)

// costs is how much work a schema makes for each value. It has the shape of the schema.
type costs struct {
	// value is the work for the value itself, and alternatives what allOf, anyOf, oneOf and not make for each value below it.
	value, alternatives int
	// defaults is how many values the defaults of its properties add.
	defaults      int
	properties    map[string]*costs
	values, items *costs
}

func costsOf(s *structuralschema.Structural) *costs {
	if s == nil {
		return nil
	}
	c := &costs{value: 1 + len(s.Properties), items: costsOf(s.Items)}
	if v := s.ValueValidation; v != nil {
		c.value += len(v.Enum) + len(v.Required)
		c.alternatives = alternatives(v)
	}
	if len(s.Properties) > 0 {
		c.properties = make(map[string]*costs, len(s.Properties))
		for name := range s.Properties {
			property := s.Properties[name]
			c.properties[name] = costsOf(&property)
			c.defaults += countValues(property.Default.Object)
		}
	}
	if s.AdditionalProperties != nil {
		c.values = costsOf(s.AdditionalProperties.Structural)
	}
	return c
}

// countValues returns of how many values a default is made.
func countValues(value any) int {
	count := 0
	switch value := value.(type) {
	case nil:
	case map[string]any:
		count++
		for _, child := range value {
			count += countValues(child)
		}
	case []any:
		count++
		for _, item := range value {
			count += countValues(item)
		}
	default:
		count++
	}
	return count
}

// alternatives returns the work that allOf, anyOf, oneOf and not make at most for one value.
func alternatives(v *structuralschema.ValueValidation) int {
	sum := 0
	for _, list := range [][]structuralschema.NestedValueValidation{v.AllOf, v.AnyOf, v.OneOf} {
		for i := range list {
			sum += nested(&list[i])
		}
	}
	return sum + nested(v.Not)
}

func nested(v *structuralschema.NestedValueValidation) int {
	if v == nil {
		return 0
	}
	sum := 1 + len(v.Enum) + len(v.Required) + alternatives(&v.ValueValidation) + nested(v.Items) + nested(v.AdditionalProperties)
	for name := range v.Properties {
		property := v.Properties[name]
		sum += nested(&property)
	}
	return sum
}

// meter measures an object before anything is done with it.
type meter struct {
	nodes, work int
	err         error
}

// measureObject says why an object is not checked, nil when it is. After it, an object is made of what JSON has, and its depth
// and the work that its check makes are bounded.
func measureObject(c *costs, object map[string]any) error {
	m := &meter{}
	m.visit(c, object, 0, 0)
	return m.err
}

// visit measures a value. extra is the work that the alternatives above make for it.
func (m *meter) visit(c *costs, value any, depth, extra int) {
	if m.err != nil {
		return
	}
	m.nodes++
	m.work += 1 + extra
	if c != nil {
		extra += c.alternatives
		m.work += c.value + c.alternatives
		m.nodes += c.defaults
	}
	switch {
	case depth > maxSteps:
		m.err = fmt.Errorf("the object is more than %d levels deep", maxSteps)
	case m.nodes > maxObjectNodes:
		m.err = fmt.Errorf("the object has more than %d values", maxObjectNodes)
	case m.work > maxWork:
		m.err = fmt.Errorf("the check would take more than %d comparisons", maxWork)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			m.visit(c.property(name), child, depth+1, extra)
		}
	case []any:
		var items *costs
		if c != nil {
			items = c.items
		}
		for _, item := range value {
			m.visit(items, item, depth+1, extra)
		}
	case nil, string, bool, int64, float64:
	default:
		m.err = fmt.Errorf("the object has a value of the Go type %T, which no JSON gives", value)
	}
}

func (c *costs) property(name string) *costs {
	if c == nil {
		return nil
	}
	if property, ok := c.properties[name]; ok {
		return property
	}
	return c.values
}
