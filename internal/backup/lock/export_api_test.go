//go:build apitest

package lock

import (
	"context"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Take takes the Lease, as the first step of Create does.
func (w Writers) Take(ctx context.Context, backup *slipwayv1alpha1.Backup, holder string) error {
	return w.take(ctx, Repository(backup), holder)
}

// Confirm is the last step of Create.
func (w Writers) Confirm(ctx context.Context, backup *slipwayv1alpha1.Backup, holder string) error {
	return w.confirm(ctx, Repository(backup), holder)
}

// HolderOf and OwnedBy read a Lease.
var (
	HolderOf = holderOf
	OwnedBy  = ownedBy
)
