package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// freshMemory bounds how many owners a Freshness remembers: entries of about 200 bytes.
const freshMemory = 65536

// Freshness makes sure that the cache of an operator that has just started shows things
// as they are. An API server whose own cache lags shows it an earlier spec, or a status
// without the decision to roll back; acting on it would roll pods back and forth. What
// the cache shows afterwards can only be newer, so each owner is looked at once, before
// the first write for it: at rest nothing is written, so nothing is read. Newer is not new
// enough where a child has gone, or has lost its owner: Reconfirm.
type Freshness struct {
	client client.Client
	live   client.Reader
	// owners and children are the UIDs of the owners that the cache has shown as they were,
	// themselves and with their children. Losing them costs live reads, nothing else.
	owners, children *lru.Cache
	// dependsOn is what else the cache has shown of what an owner refers to, by its UID.
	dependsOn *lru.Cache
}

// NewFreshness knows nothing to be fresh yet. live reads past the cache of the client.
func NewFreshness(cached client.Client, live client.Reader) *Freshness {
	return &Freshness{client: cached, live: live, owners: lru.New(freshMemory), children: lru.New(freshMemory), dependsOn: lru.New(freshMemory)}
}

// Trust takes an owner for fresh on which, as the cache has it, nobody has worked yet:
// nothing can be undone by acting on it. A child that is there all the same invalidates it.
func (f *Freshness) Trust(owner client.Object) {
	f.owners.Add(owner.GetUID(), nil)
	f.children.Add(owner.GetUID(), nil)
}

// Invalidate takes back that an owner is known to be fresh: it is looked at live again before
// the next write for it.
func (f *Freshness) Invalidate(owner client.Object) {
	f.owners.Remove(owner.GetUID())
	f.children.Remove(owner.GetUID())
}

// DependsOn says what else is made into what is written for an owner, as the cache shows
// it: a Secret that it refers to, or, without a version, that there is none. Each kind may
// lag for itself.
func (f *Freshness) DependsOn(owner client.Object, objects ...client.Object) {
	if _, fresh := f.owners.Get(owner.GetUID()); !fresh {
		f.dependsOn.Add(owner.GetUID(), objects)
	}
}

// Confirm returns an error while the cache does not show the owner as it is, and what it
// depends on.
func (f *Freshness) Confirm(ctx context.Context, owner client.Object) error {
	objects := []client.Object{owner}
	if known, ok := f.dependsOn.Get(owner.GetUID()); ok {
		objects = append(objects, known.([]client.Object)...)
	}
	if err := f.confirm(ctx, f.owners, owner, objects...); err != nil {
		return err
	}
	f.dependsOn.Remove(owner.GetUID())
	return nil
}

// Reconfirm returns an error while the cache does not show the owner as it is now,
// whatever it has shown before.
func (f *Freshness) Reconfirm(ctx context.Context, owner client.Object) error {
	f.owners.Remove(owner.GetUID())
	return f.Confirm(ctx, owner)
}

// ConfirmAll returns an error while the cache does not show the owner and its children as
// they are. It comes before the first status: that must not say that a Deployment is
// ready which is another one by now.
func (f *Freshness) ConfirmAll(ctx context.Context, owner client.Object, children ...client.Object) error {
	if err := f.Confirm(ctx, owner); err != nil {
		return err
	}
	return f.confirm(ctx, f.children, owner, children...)
}

func (f *Freshness) confirm(ctx context.Context, known *lru.Cache, owner client.Object, objects ...client.Object) error {
	if _, fresh := known.Get(owner.GetUID()); fresh {
		return nil
	}
	for _, object := range objects {
		if err := f.compare(ctx, object); err != nil {
			return err
		}
	}
	known.Add(owner.GetUID(), nil)
	return nil
}

// compare returns an error when the cache does not show an object as the API server has
// it.
func (f *Freshness) compare(ctx context.Context, cached client.Object) error {
	kind, err := f.client.GroupVersionKindFor(cached)
	if err != nil {
		return err
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	subject := fmt.Sprintf("%s %q", kind.Kind, cached.GetName())
	if err := f.live.Get(ctx, client.ObjectKeyFromObject(cached), live); client.IgnoreNotFound(err) != nil {
		return outcome.Classify(subject, err)
	}
	if live.ResourceVersion != cached.GetResourceVersion() {
		return outcome.StaleCache(subject)
	}
	return nil
}

// confirm returns an error while the cache does not show the owner as it is; live looks
// even where it once has.
func (a *Applier) confirm(ctx context.Context, owner client.Object, live bool) error {
	switch {
	case a.Fresh == nil:
		return nil
	case live:
		return a.Fresh.Reconfirm(ctx, owner)
	default:
		return a.Fresh.Confirm(ctx, owner)
	}
}

// invalidate has the owner looked at before the next write for it: a cache that lacks a child
// may lack the last edit of the owner, too.
func (a *Applier) invalidate(owner client.Object) {
	if a.Fresh != nil {
		a.Fresh.Invalidate(owner)
	}
}

// failed returns the error of a write. One that the API server has not refused may have been
// made all the same, and the cache may not show it yet. If the owner then asks for what it
// asked for before, nothing is left to write, and status would call an object ready that is
// another one by now. So owner and children are looked at before the next write.
func (a *Applier) failed(owner client.Object, err error) error {
	var answer apierrors.APIStatus
	refused := errors.As(err, &answer) && answer.Status().Code >= 400 && answer.Status().Code < 500
	if err != nil && !refused {
		a.invalidate(owner)
	}
	return err
}
