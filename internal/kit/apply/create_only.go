package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateOnly makes a child that is never changed afterwards, such as a Job: its pod template is immutable, and what it has
// done cannot be done otherwise. A child that exists is left as it is, whatever is desired of it. child.Current has it then,
// and also when the cache did not show it.
//
// The ownership check is that of Apply: an object of that name which is not the owner's is Blocked with reason NameConflict,
// and one that is being deleted is Waiting with reason Terminating.
func (a *Applier) CreateOnly(ctx context.Context, owner client.Object, child Child) (Change, error) {
	if child.Current.GetUID() == "" {
		made, err := a.Create(ctx, owner, child)
		switch {
		case err != nil:
			return Unchanged, err
		case made:
			return Created, nil
		}
	}
	if a.Ours(owner, child.Current) {
		// So that one that goes is missed, and the owner is confirmed before it is made again.
		a.settled.see(child)
	}
	return Unchanged, a.checkOwnership(owner, child, child.Current)
}
