package optional

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Running reports whether every required kind can be read. Before that nobody knows what there is.
func (k *Kinds) Running() bool { return k.running.Load() != nil }

// Has reports whether the cluster has a kind, as far as it was looked for.
func (k *Kinds) Has(object client.Object) bool {
	of, err := k.kindOf(object)
	return err == nil && k.clientOf(of) != nil
}

// Objects are the kinds, each as the budget has it.
func (k *Kinds) Objects() []client.Object {
	list := make([]client.Object, 0, len(k.kinds))
	for _, of := range k.kinds {
		list = append(list, of.object)
	}
	return list
}

// Watches reports whether objects of a namespace can be read.
func (k *Kinds) Watches(namespace string) bool { return k.options.Budget.Watches(namespace) }

// Client returns what reads a kind from its cache and sees its own writes. It is an error if the cluster does not have it.
func (k *Kinds) Client(object client.Object) (client.Client, error) {
	of, err := k.kindOf(object)
	if err != nil {
		return nil, err
	}
	if found := k.clientOf(of); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("the cluster does not have the kind %s", of.Kind)
}

func (k *Kinds) clientOf(of schema.GroupVersionKind) client.Client {
	running := k.running.Load()
	if running == nil {
		return nil
	}
	return (*running)[of]
}

// Get reads an object. Of a kind that the cluster does not have, and in a namespace that is not watched, there is none.
func (k *Kinds) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	of, err := k.kindOf(object)
	if err != nil {
		return err
	}
	in := k.clientOf(of)
	if in == nil || (key.Namespace != "" && !k.Watches(key.Namespace)) {
		return apierrors.NewNotFound(schema.GroupResource{Group: of.Group, Resource: strings.ToLower(of.Kind)}, key.Name)
	}
	return in.Get(ctx, key, object, options...)
}

// List lists objects. Of a kind that the cluster does not have there is none.
func (k *Kinds) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	in, err := k.listing(list)
	if err != nil || in == nil {
		return err
	}
	return in.List(ctx, list, options...)
}

func (k *Kinds) listing(list runtime.Object) (client.Client, error) {
	of, err := k.kindOf(list)
	if err != nil {
		return nil, err
	}
	of.Kind = strings.TrimSuffix(of.Kind, "List")
	return k.clientOf(of), nil
}
