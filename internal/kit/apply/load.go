package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Load reads a child of the owner from the cache: the one of that name beside it, in its namespace, or in none as the owner is. It
// stays empty when there is none, and when the object of that name is not the owner's: status must not speak of it, and Apply
// finds it again and says so.
func Load[T any, P interface {
	*T
	client.Object
}](ctx context.Context, a *Applier, owner client.Object, name string, into P) error {
	return LoadFrom(ctx, a, owner, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name}, into)
}

// LoadFrom is Load for a child that is elsewhere: an owner that is in no namespace may have children in any.
func LoadFrom[T any, P interface {
	*T
	client.Object
}](ctx context.Context, a *Applier, owner client.Object, key types.NamespacedName, into P) error {
	err := a.Client.Get(ctx, key, into)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read %T %q: %w", into, key.Name, err)
	}
	if err == nil && !a.Ours(owner, into) {
		var empty T
		*into = empty
	}
	return nil
}
