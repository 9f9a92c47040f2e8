package crdcheck

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// The functions in this file do what the strategies of the API server do (pkg/registry/customresource of
// k8s.io/apiextensions-apiserver), which cannot be imported without its storage. They take objects as they were read. A test
// compares them with a real API server, write by write.

// spent is what the rules may cost in one check, over all the validations that it makes. One validation may cost what the API
// server allows: about a second.
const spentLimit = 3 * celconfig.RuntimeCELCostBudget

// session is one check of an object.
type session struct {
	*Checker
	ctx   context.Context
	spent int64
	// over reports whether something was left out, because it would have taken too long.
	over bool
}

// create returns why the API server refuses to make an object.
func (s *session) create(object map[string]any) field.ErrorList {
	if s.hasStatus {
		object = maps.Clone(object)
		delete(object, "status")
	}
	errs := validation.ValidateCustomResource(nil, object, s.schema)
	errs = append(errs, scaleErrors(object, s.scale, true)...)
	errs = append(errs, objectmeta.Validate(s.ctx, nil, object, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	return s.withRules(errs, object, nil)
}

// update returns why the API server refuses to write an object over an old one. Of both, the status is that of old when there is
// a subresource status.
func (s *session) update(old, object map[string]any) field.ErrorList {
	if s.hasStatus {
		object = withStatusOf(object, old)
	}
	correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: s.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, object, old, s.schema, validation.WithRatcheting(correlated))
	errs = append(errs, scaleErrors(object, s.scale, true)...)
	errs = append(errs, objectmeta.Validate(s.ctx, nil, object, s.structural, false)...)
	if len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	}
	return s.withRules(errs, object, old, cel.WithRatcheting(correlated))
}

// updateStatus returns why the API server refuses to write the status of an object over that of an old one.
func (s *session) updateStatus(old, object map[string]any) field.ErrorList {
	object = withStatusOf(old, object)
	correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: s.structural})
	var errs field.ErrorList
	if status, ok := object["status"]; ok {
		errs = validation.ValidateCustomResourceUpdate(
			field.NewPath("status"), status, old["status"], s.status, validation.WithRatcheting(correlated.Key("status")))
	}
	errs = append(errs, scaleErrors(object, s.scale, false)...)
	if len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	}
	return s.withRules(errs, object, old, cel.WithRatcheting(correlated))
}

// everything returns what is wrong with an object that exists, whatever of it an update would let through.
func (s *session) everything(object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, s.schema)
	errs = append(errs, scaleErrors(object, s.scale, true)...)
	errs = append(errs, objectmeta.Validate(s.ctx, nil, object, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	return append(errs, s.evaluate(object, object)...)
}

// withRules adds what the rules refuse, unless the object is so wrong that the API server does not ask them.
func (s *session) withRules(errs field.ErrorList, object, old map[string]any, options ...cel.Option) field.ErrorList {
	if s.rules == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported,
			field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, notAsked())
		}
	}
	return append(errs, s.evaluate(object, old, options...)...)
}

// notAsked is what the API server adds when it does not ask the rules.
func notAsked() *field.Error {
	return field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; "+
		"correct the existing errors to complete validation")
}

// evaluate returns what the rules refuse. old is nil for an object that is made.
func (s *session) evaluate(object, old map[string]any, options ...cel.Option) field.ErrorList {
	if s.rules == nil {
		return nil
	}
	if s.spent > spentLimit {
		s.over = true
		return nil
	}
	var before any
	if old != nil {
		before = old
	}
	const budget = celconfig.RuntimeCELCostBudget
	errs, left := s.rules.Validate(s.ctx, nil, s.structural, object, before, budget, options...)
	s.spent += budget - max(left, 0)
	return errs
}

// withStatusOf returns an object with the status of another.
func withStatusOf(object, other map[string]any) map[string]any {
	object = maps.Clone(object)
	if status, ok := other["status"]; ok {
		object["status"] = status
	} else {
		delete(object, "status")
	}
	return object
}

// scaleErrors returns what the API server says of the fields to which the subresource scale leads. spec reports whether the spec
// counts.
func scaleErrors(object map[string]any, scale *apiextensionsv1.CustomResourceSubresourceScale, spec bool) field.ErrorList {
	if scale == nil {
		return nil
	}
	var errs field.ErrorList
	if spec {
		errs = append(errs, replicasErrors(object, scale.SpecReplicasPath)...)
	}
	errs = append(errs, replicasErrors(object, scale.StatusReplicasPath)...)
	if selector := scale.LabelSelectorPath; selector != nil {
		text, _, err := unstructured.NestedString(object, simplePath(*selector)...)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*selector), text, err.Error()))
		}
	}
	return errs
}

func replicasErrors(object map[string]any, at string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(object, simplePath(at)...)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(field.NewPath(at), replicas, err.Error())}
	case replicas < 0:
		return field.ErrorList{field.Invalid(field.NewPath(at), replicas, "should be a non-negative integer")}
	case replicas > math.MaxInt32:
		return field.ErrorList{field.Invalid(field.NewPath(at), replicas, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}

func simplePath(text string) []string { return strings.Split(strings.TrimPrefix(text, "."), ".") }
