package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// Configuration is what every generated apply configuration offers.
type Configuration interface {
	runtime.ApplyConfiguration
	GetKind() *string
	GetAPIVersion() *string
	GetName() *string
	// GetNamespace returns nil for an object that is in no namespace.
	GetNamespace() *string
}

// Applier applies and deletes the children of one kind of owner.
type Applier struct {
	// Client writes.
	Client client.Client
	// Live reads from the API server, past the cache. It is asked only about an object
	// that the cache does not have and that may exist all the same: the caches hold
	// Slipway's own.
	Live client.Reader
	// FieldManager owns the desired fields, for example slipway-webapp.
	FieldManager string
	// Fresh is asked about the owner before anything is written for it. A lost child puts the
	// owner in doubt. Its error forbids the write. Nil allows all.
	Fresh *Freshness
	// Repaired is told which desired fields of a child had been changed, and by which field
	// manager, after they were restored. Nil: nobody is told.
	Repaired func(owner client.Object, what string)
	// Altered is told of a child that is only created, and that the API server has changed on its way. That of
	// others is an error, as long as it lasts. Nil: nobody is told.
	Altered func(owner client.Object, what string)
	// Clock tells the time. Default: the system's.
	Clock clock.PassiveClock

	settled settled
}

// Change says what Apply did.
type Change string

// What Apply did.
const (
	// Unchanged: the object was as desired, nothing was sent.
	Unchanged Change = "Unchanged"
	// Created: the object did not exist.
	Created Change = "Created"
	// Updated: a desired field had another value, or another owner.
	Updated Change = "Updated"
)

// Child is one object that an owner wants.
type Child struct {
	// Desired are the fields that the owner wants the object to have.
	Desired Configuration
	// Current is the object as the cache has it, or empty (no UID) when the cache has
	// none. Apply overwrites it with the API server's answer when it writes.
	Current client.Object
}

// Apply makes one child as desired. Errors carry a policy (package outcome); an
// object of that name which is not the owner's is Blocked with reason NameConflict.
func (a *Applier) Apply(ctx context.Context, owner client.Object, child Child) (Change, error) {
	desired, err := encode(child.Desired)
	if err != nil {
		return Unchanged, err
	}
	if child.Current.GetUID() == "" {
		created, exists, err := a.createOrGet(ctx, owner, child, desired)
		switch {
		case err != nil:
			return Unchanged, err
		case created:
			return Created, a.altered(child, desired)
		case !exists:
			change, err := a.recreate(ctx, owner, child, desired)
			return change, errors.Join(err, a.altered(child, desired))
		}
	}
	if a.Ours(owner, child.Current) {
		a.settled.see(child)
	}
	if err := a.checkOwnership(owner, child, child.Current); err != nil {
		return Unchanged, err
	}
	drifted, err := a.drifted(child, desired)
	if err != nil || !drifted {
		return Unchanged, err
	}
	if err := a.altered(child, desired); err != nil {
		return Unchanged, err
	}
	if err := a.repair(ctx, owner, child, desired); err != nil {
		return Unchanged, err
	}
	return Updated, a.altered(child, desired)
}

// Create creates a child that the cache does not have, and reports whether there was none.
// One that exists after all is read into child.Current, and left as it is.
func (a *Applier) Create(ctx context.Context, owner client.Object, child Child) (created bool, err error) {
	desired, err := encode(child.Desired)
	if err != nil {
		return false, err
	}
	created, exists, err := a.createOrGet(ctx, owner, child, desired)
	if err == nil && !created && !exists {
		var change Change
		change, err = a.recreate(ctx, owner, child, desired)
		created = change == Created
	}
	if created {
		a.reportAltered(owner, child, desired)
	}
	return created, err
}

// createOrGet creates a child that the cache does not have. One that exists after all is
// read into child.Current. There may be none at the end: it was looked for first, or has
// gone meanwhile.
func (a *Applier) createOrGet(ctx context.Context, owner client.Object, child Child, desired []byte) (created, exists bool, err error) {
	if !a.mayBeHidden(owner, child) {
		if created, err = a.create(ctx, owner, child, desired); err != nil || created {
			return created, false, err
		}
	}
	exists, err = a.getLive(ctx, owner, child)
	a.settled.setHidden(child, exists)
	return false, exists, err
}

// mayBeHidden reports whether a child may exist although the cache does not show it. Such a child is
// looked for before it is created: a look is a read, and an attempt to create is a write. There
// are two cases. The API server has shown it before. Or an earlier leader has written a status
// of this generation: it has created all children, except those whose name was taken.
func (a *Applier) mayBeHidden(owner client.Object, child Child) bool {
	if a.settled.isHidden(child) {
		return true
	}
	if a.Fresh == nil || a.Fresh.isNew(owner) || a.settled.knows(child) {
		return false
	}
	object, ok := owner.(interface{ GetConditions() []metav1.Condition })
	return ok && slices.ContainsFunc(object.GetConditions(), func(c metav1.Condition) bool {
		return c.ObservedGeneration == owner.GetGeneration()
	})
}

// recreate creates a child that has gone meanwhile. Whoever is faster is not overwritten.
func (a *Applier) recreate(ctx context.Context, owner client.Object, child Child, desired []byte) (Change, error) {
	created, err := a.create(ctx, owner, child, desired)
	switch {
	case err != nil:
		return Unchanged, err
	case !created:
		return Unchanged, outcome.StaleCache(subject(child.Desired))
	default:
		return Created, nil
	}
}

// lost reports whether a child was there and has gone, or that nobody controls it any more.
// That is what the garbage collector does when an owner is deleted. Each kind has a watch
// of its own, so it may be seen before the end of the owner. What is created for an owner
// that has gone is deleted again at best. At worst the collector takes it for the child
// that it has just deleted, and forgets the pods of that. A child that was to be orphaned
// is deleted when it gets such an owner again. A retained volume never has an owner, and a
// child of that name may have been an earlier owner's: then the owner is read in vain.
func (a *Applier) lost(child Child) bool {
	if child.Current.GetUID() == "" {
		return a.settled.knows(child)
	}
	return uncontrolled(child.Current)
}

func uncontrolled(object client.Object) bool { return metav1.GetControllerOfNoCopy(object) == nil }

// create creates an object that the cache does not have, and reports whether there was
// none. The cache shows only objects with our label, and an apply would silently merge
// into any other one, so the API server is asked to refuse when there is one.
func (a *Applier) create(ctx context.Context, owner client.Object, child Child, desired []byte) (created bool, err error) {
	absent, err := withMetadata(desired, "resourceVersion", noVersion)
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", subject(child.Desired), err)
	}
	err = a.patch(ctx, owner, child, absent)
	switch {
	case apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, outcome.Classify(subject(child.Desired), err)
	}
	if a.Fresh != nil {
		a.Fresh.Wrote(child.Current)
	}
	return true, a.conclude(child, desired)
}

// noVersion is a resource version that no object ever has: etcd's, before the first
// write. An apply that names a version is refused when the object has another one, and
// creates the object when there is none.
const noVersion = "1"

// withMetadata adds a field to the metadata of a configuration. Only a kind and a version
// come before its metadata, so the first place is the right one.
func withMetadata(desired []byte, field, value string) ([]byte, error) {
	start := []byte(`"metadata":{`)
	before, after, found := bytes.Cut(desired, start)
	if !found {
		return nil, errors.New("it has no metadata")
	}
	return slices.Concat(before, start, fmt.Appendf(nil, "%q:%q,", field, value), after), nil
}

// getLive asks the API server about a child that the cache does not have, and reads it
// into child.Current when it exists after all: the cache shows only objects with our
// label, and somebody may have removed it. An object that is not the owner's is an
// error, as with Apply.
func (a *Applier) getLive(ctx context.Context, owner client.Object, child Child) (exists bool, err error) {
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(kindOf(child.Desired))
	key := client.ObjectKey{Namespace: namespaceOf(child.Desired), Name: *child.Desired.GetName()}
	if err := a.Live.Get(ctx, key, existing); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, outcome.Classify(subject(child.Desired), err)
	}
	if err := a.checkOwnership(owner, child, existing); err != nil {
		return true, err
	}
	if err := a.Live.Get(ctx, key, child.Current); err != nil {
		return true, outcome.Classify(subject(child.Desired), err)
	}
	return true, nil
}

// HandoverSuffix is what the second field manager of HandOver is called after the first.
const HandoverSuffix = "-handover"

// HandOver applies fields of a child that exists under a second field manager. They keep
// their value when the first one stops applying them: a field without an owner falls back to
// its default. Whoever sets the field next takes it over. It is not forced: a value that has
// changed meanwhile is a conflict, and the next reconcile sees the new one.
func (a *Applier) HandOver(ctx context.Context, owner client.Object, child Child) error {
	desired, err := encode(child.Desired)
	if err != nil {
		return err
	}
	return a.patchExisting(ctx, owner, child, desired, client.FieldOwner(a.FieldManager+HandoverSuffix))
}

// patchExisting applies to the object that the cache shows, and to no other. An apply
// without a UID creates an object that has gone, and takes over one that somebody else has
// made instead.
func (a *Applier) patchExisting(
	ctx context.Context, owner client.Object, child Child, desired []byte, options ...client.PatchOption,
) error {
	same, err := withMetadata(desired, "uid", string(child.Current.GetUID()))
	if err != nil {
		return fmt.Errorf("encode %s: %w", subject(child.Desired), err)
	}
	if err := a.patch(ctx, owner, child, same, options...); err != nil {
		return outcome.Classify(subject(child.Desired), err)
	}
	return nil
}

// patch confirms the owner, sends the desired fields and stores the answer in
// child.Current. client.Apply would decode the answer into the configuration, from where it
// had to be copied into the object.
func (a *Applier) patch(ctx context.Context, owner client.Object, child Child, desired []byte, options ...client.PatchOption) error {
	if err := a.confirm(ctx, owner, a.lost(child)); err != nil {
		return err
	}
	current := reflect.ValueOf(child.Current).Elem()
	// Into a new object: what the answer leaves out is not there.
	answer := reflect.New(current.Type())
	object, ok := answer.Interface().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", child.Current)
	}
	object.SetNamespace(namespaceOf(child.Desired))
	object.SetName(*child.Desired.GetName())
	options = append([]client.PatchOption{client.FieldOwner(a.FieldManager)}, options...)
	if _, secret := object.(*corev1.Secret); secret {
		// Secrets are cached as metadata. To wait for a cache that shows what was written would make one of all their content.
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	if err := a.Client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, desired), options...); err != nil {
		return a.failed(err, owner, child.Current)
	}
	current.Set(answer.Elem())
	if a.Fresh != nil {
		a.Fresh.Saw(child.Current)
	}
	return nil
}

// Delete deletes a child that is no longer wanted. It does nothing when the cache has
// none, when it is already going, or when it is not the owner's.
func (a *Applier) Delete(ctx context.Context, owner, current client.Object) error {
	if current.GetUID() == "" || !current.GetDeletionTimestamp().IsZero() || !a.Ours(owner, current) {
		return nil
	}
	// A child that nobody controls may have been orphaned to stay.
	if err := a.confirm(ctx, owner, uncontrolled(current)); err != nil {
		return err
	}
	uid := current.GetUID()
	err := a.Client.Delete(ctx, current,
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err = a.failed(err, owner, current); err != nil && !apierrors.IsNotFound(err) {
		return outcome.Classify(fmt.Sprintf("%T %q", current, current.GetName()), err)
	}
	return nil
}

// Ours reports whether an existing object belongs to the owner: it controls the object,
// or nobody does and this field manager has applied fields of it. The latter are objects
// whose owner reference somebody removed, and volumes that were to be retained.
func (a *Applier) Ours(owner, existing client.Object) bool {
	if controller := metav1.GetControllerOfNoCopy(existing); controller != nil {
		return controller.UID == owner.GetUID()
	}
	return a.ownEntry(existing) != nil
}

// checkOwnership returns an error when the existing object is not the owner's, or is going away.
// It names the object where no cache shows that it goes: one without our label, and
// one that belongs to somebody else.
func (a *Applier) checkOwnership(owner client.Object, child Child, existing client.Object) error {
	refusal := a.ownershipError(owner, child, existing)
	if refusal == nil {
		return nil
	}
	shown := a.Ours(owner, existing) && existing.GetLabels()[slipwayv1alpha1.LabelManagedBy] == slipwayv1alpha1.ManagedBySlipway
	if !shown {
		refusal.Blocker, refusal.After = blockerOf(child, existing), conflictRecheck
	}
	return refusal
}

func (a *Applier) ownershipError(owner client.Object, child Child, existing client.Object) *outcome.Error {
	controller := metav1.GetControllerOfNoCopy(existing)
	switch {
	case a.Ours(owner, existing) && existing.GetDeletionTimestamp().IsZero():
		return nil
	case a.Ours(owner, existing):
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonTerminating, "%s is being deleted and is recreated afterwards",
			placed(owner, child.Desired))
	case controller != nil && controller.Name == owner.GetName() && a.ownEntry(existing) != nil:
		// An owner of the same name was deleted, and the garbage collector is on its way.
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonTerminating,
			"%s belongs to a deleted %s of the same name and is recreated when it is gone", placed(owner, child.Desired), controller.Kind)
	case controller != nil:
		return outcome.Blockedf(0, slipwayv1alpha1.ReasonNameConflict, "%s exists and belongs to %s %q: rename one of them",
			placed(owner, child.Desired), controller.Kind, controller.Name)
	default:
		return outcome.Blockedf(0, slipwayv1alpha1.ReasonNameConflict,
			"%s exists and was not made by Slipway: rename or delete one of them", placed(owner, child.Desired))
	}
}

// blockerOf is as much of an existing object as tells whether it is still the same.
func blockerOf(child Child, existing client.Object) *metav1.PartialObjectMetadata {
	blocker := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespaceOf(child.Desired), Name: *child.Desired.GetName(), UID: existing.GetUID(),
		DeletionTimestamp: existing.GetDeletionTimestamp(), OwnerReferences: existing.GetOwnerReferences(),
	}}
	blocker.SetGroupVersionKind(kindOf(child.Desired))
	return blocker
}

// conflictRecheck is when to look again for a foreign object. The caches do not show
// it; the watch that does may be one too many, or may hear nothing.
const conflictRecheck = 10 * time.Second
