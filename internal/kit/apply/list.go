package apply

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Wanted is a child of a list. Its configuration may be nil: then the child is not wanted.
func Wanted[T any, P interface {
	*T
	Configuration
}](desired P, current client.Object) Child {
	if desired == nil {
		// Not the nil pointer: an interface that holds one is not nil.
		return Child{Current: current}
	}
	return Child{Desired: desired, Current: current}
}

// All makes children as desired, in their order, and deletes those that are not wanted. They do not depend on each other:
// one that fails does not keep the others from being made.
//
// Deletions come first. An autoscaler that is no longer wanted must not change a number of pods that is desired again.
// explain may say of the error of a child what the user knows it by; nil leaves errors as they are.
func (a *Applier) All(ctx context.Context, owner client.Object, children []Child, explain func(Child, error) error) error {
	var errs []error
	for _, child := range children {
		if child.Desired == nil {
			errs = append(errs, a.Delete(ctx, owner, child.Current))
		}
	}
	for _, child := range children {
		if child.Desired == nil {
			continue
		}
		_, err := a.Apply(ctx, owner, child)
		if err != nil && explain != nil {
			err = explain(child, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// AnyDrifted reports whether All would change anything.
func (a *Applier) AnyDrifted(children ...Child) (bool, error) {
	for _, child := range children {
		exists := child.Current.GetUID() != ""
		if exists != (child.Desired != nil) {
			return true, nil
		}
		if !exists {
			continue
		}
		if drifted, err := a.Drifted(child.Desired, child.Current); drifted || err != nil {
			return drifted, err
		}
	}
	return false, nil
}

// Existing are those of the children that exist, as the cache has them.
func Existing(children ...client.Object) []client.Object {
	return slices.DeleteFunc(children, func(child client.Object) bool { return child.GetUID() == "" })
}
