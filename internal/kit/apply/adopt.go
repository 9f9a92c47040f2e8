package apply

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Adopt makes an owner the controller of an object that a user has made for it, and that nobody controls. What is desired of
// it is the owner reference alone: the rest of the object is the user's. It is done to the object as the cache shows it: one
// that has changed meanwhile, or has got a controller, is a conflict, and the next reconcile sees it as it is.
//
// The owner is read from the API server first: an object that gets an owner which has gone is deleted with it.
func (a *Applier) Adopt(ctx context.Context, owner client.Object, child Child) error {
	desired, err := encode(child.Desired)
	if err != nil {
		return err
	}
	same, err := withMetadata(desired, "resourceVersion", child.Current.GetResourceVersion())
	if err != nil {
		return fmt.Errorf("encode %s: %w", subject(child.Desired), err)
	}
	return a.patchExisting(ctx, owner, child, same, client.ForceOwnership)
}
