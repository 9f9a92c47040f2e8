package crdcheck

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Checker evaluates objects by one version of a definition. Everything is compiled once. It may be used by several goroutines at the
// same time.
type Checker struct {
	apiVersion string
	// preserve reports whether the definition keeps unknown fields everywhere.
	preserve   bool
	structural *structuralschema.Structural
	costs      *costs
	// schema evaluates whole objects, status what is written to the subresource status. status is nil when there is no schema
	// for it.
	schema, status validation.SchemaValidator
	hasStatus      bool
	scale          *apiextensionsv1.CustomResourceSubresourceScale
	rules          *cel.Validator
	// creation reports whether an object may be refused only when it is made anew: a rule is also evaluated without an old value, or
	// looks at the status, which a new object does not have.
	creation bool
}

// NewChecker compiles a version of a definition. It returns an error when the definition has no such version, when its schema is
// none that an API server accepts, or when it is so large that checks would take too long.
func NewChecker(crd *apiextensionsv1.CustomResourceDefinition, version string) (*Checker, error) {
	v := versionOf(crd, version)
	if v == nil {
		return nil, fmt.Errorf("the definition has no version %q", version)
	}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s has no schema", version)
	}
	if err := acceptable(v.Schema.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("version %s: %w", version, err)
	}
	c := &Checker{apiVersion: crd.Spec.Group + "/" + version, preserve: crd.Spec.PreserveUnknownFields}
	if err := c.compile(v.Schema.OpenAPIV3Schema, v.Subresources); err != nil {
		return nil, fmt.Errorf("version %s: %w", version, err)
	}
	return c, nil
}

// acceptable refuses what makes a check slow, and what the API server's packages are not made for.
func acceptable(schema *apiextensionsv1.JSONSchemaProps) error {
	m := &measure{}
	m.visit(schema, 0)
	switch {
	case m.err != nil:
		return m.err
	case m.unique:
		return errors.New("uniqueItems cannot be true: the API server refuses it")
	case schema.Type != "object":
		return fmt.Errorf("the type of the root has to be object, and is %s", show(schema.Type))
	}
	return nil
}

func (c *Checker) compile(schema *apiextensionsv1.JSONSchemaProps, subresources *apiextensionsv1.CustomResourceSubresources) error {
	// Conversion and defaulting share memory with their input.
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema.DeepCopy(), internal, nil); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return fmt.Errorf("the schema is not structural: %w", err)
	}
	if errs := structuralschema.ValidateStructural(nil, structural); len(errs) > 0 {
		return fmt.Errorf("the schema is not structural: %s", shorten(errs[0].Error(), maxMessage))
	}
	c.structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(c.structural); err != nil {
		return fmt.Errorf("prune the defaults: %w", err)
	}
	if c.schema, _, err = validation.NewSchemaValidator(internal); err != nil {
		return fmt.Errorf("compile the schema: %w", err)
	}
	if subresources != nil {
		c.hasStatus, c.scale = subresources.Status != nil, subresources.Scale
	}
	if status, ok := internal.Properties["status"]; ok && c.hasStatus {
		if c.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return fmt.Errorf("compile the schema of the status: %w", err)
		}
	}
	c.rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	c.costs = costsOf(c.structural)
	c.creation = hasOptional(schema) || c.hasStatus && (len(schema.XValidations) > 0 || slices.Contains(schema.Required, "status"))
	return nil
}

// hasOptional reports whether a schema has a rule with optionalOldSelf.
func hasOptional(s *apiextensionsv1.JSONSchemaProps) bool {
	found := slices.ContainsFunc(s.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		return rule.OptionalOldSelf != nil && *rule.OptionalOldSelf
	})
	eachChild(s, func(child *apiextensionsv1.JSONSchemaProps) { found = found || child != nil && hasOptional(child) })
	return found
}
