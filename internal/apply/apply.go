package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/outcome"
)

// Configuration is what every generated apply configuration offers.
type Configuration interface {
	runtime.ApplyConfiguration
	GetKind() *string
	GetAPIVersion() *string
	GetName() *string
	GetNamespace() *string
}

// Applier applies and deletes the children of one kind of owner.
type Applier struct {
	// Client writes.
	Client client.Client
	// Live reads from the API server, past the cache. It is asked only about a name
	// that the cache does not know: the caches hold Slipway's own objects, so an object
	// missing there may still exist.
	Live client.Reader
	// FieldManager owns the stated fields, for example slipway-webapp.
	FieldManager string

	settled settled
}

// Change says what Apply did.
type Change string

// What Apply did.
const (
	// Unchanged: the object was as stated, nothing was sent.
	Unchanged Change = "Unchanged"
	// Created: the object did not exist.
	Created Change = "Created"
	// Updated: a stated field had another value, or another owner.
	Updated Change = "Updated"
)

// Child is one object that an owner wants.
type Child struct {
	// Desired is what the owner states about the object.
	Desired Configuration
	// Current is the object as the cache has it, or empty (no UID) when the cache has
	// none. Apply overwrites it with the API server's answer when it writes.
	Current client.Object
}

// Apply makes one child as desired. Errors carry a policy (package outcome); an
// object of that name which is not the owner's is Invalid with reason NameConflict.
func (a *Applier) Apply(ctx context.Context, owner client.Object, child Child) (Change, error) {
	if child.Current.GetUID() == "" {
		return a.create(ctx, owner, child)
	}
	if err := a.refuse(owner, child, child.Current); err != nil {
		return Unchanged, err
	}
	drifted, err := a.Drifted(child.Desired, child.Current)
	if err != nil || !drifted {
		return Unchanged, err
	}
	return Updated, a.send(ctx, child, client.ForceOwnership)
}

// create looks before it creates, because the cache shows only objects with our
// label and an apply would silently merge into any other one.
func (a *Applier) create(ctx context.Context, owner client.Object, child Child) (Change, error) {
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(kindOf(child.Desired))
	key := client.ObjectKey{Namespace: *child.Desired.GetNamespace(), Name: *child.Desired.GetName()}
	err := a.Live.Get(ctx, key, existing)
	switch {
	case apierrors.IsNotFound(err):
		// Not forced: whoever comes first between the look and the apply is not overwritten.
		return Created, a.send(ctx, child)
	case err != nil:
		return Unchanged, outcome.Classify(subject(child.Desired), err)
	}
	if err := a.refuse(owner, child, existing); err != nil {
		return Unchanged, err
	}
	return Updated, a.send(ctx, child, client.ForceOwnership)
}

// HandOver states fields under a second field manager, so that they keep their value
// when the first one stops stating them: a field without an owner falls back to its
// default. Whoever sets the field next takes it over. It is not forced: a value that
// has changed meanwhile is a conflict, and the next pass sees the new one.
func (a *Applier) HandOver(ctx context.Context, desired Configuration) error {
	if err := a.Client.Apply(ctx, desired, client.FieldOwner(a.FieldManager+"-handover")); err != nil {
		return outcome.Classify(subject(desired), err)
	}
	return nil
}

// send applies, and stores the answer in child.Current.
func (a *Applier) send(ctx context.Context, child Child, options ...client.ApplyOption) error {
	stated, err := encode(child.Desired)
	if err != nil {
		return err
	}
	if err := a.Client.Apply(ctx, child.Desired, append(options, client.FieldOwner(a.FieldManager))...); err != nil {
		return outcome.Classify(subject(child.Desired), err)
	}
	// The client has written the answer into the apply configuration.
	answer, err := json.Marshal(child.Desired)
	if err != nil {
		return fmt.Errorf("read the answer for %s: %w", subject(child.Desired), err)
	}
	if err := json.Unmarshal(answer, child.Current); err != nil {
		return fmt.Errorf("read the answer for %s: %w", subject(child.Desired), err)
	}
	a.settled.add(child.Current, stated)
	return nil
}

// Delete deletes a child that is no longer wanted. It does nothing when the cache
// has none, when it is already going, or when the owner does not control it.
func (a *Applier) Delete(ctx context.Context, owner, current client.Object) error {
	if current.GetUID() == "" || !current.GetDeletionTimestamp().IsZero() || !metav1.IsControlledBy(current, owner) {
		return nil
	}
	uid := current.GetUID()
	err := a.Client.Delete(ctx, current,
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		return outcome.Classify(fmt.Sprintf("%T %q", current, current.GetName()), err)
	}
	return nil
}

// refuse returns an error when the existing object is not the owner's, or is going
// away. The owner's are those that it controls, and those that nobody controls and
// that this field manager has stated fields of: an owner reference that somebody
// removed, and a volume that was to be retained.
func (a *Applier) refuse(owner client.Object, child Child, existing client.Object) error {
	controller := metav1.GetControllerOf(existing)
	switch {
	case controller != nil && controller.UID != owner.GetUID():
		return conflict("%s exists and belongs to %s %q: rename one of them", subject(child.Desired), controller.Kind, controller.Name)
	case controller == nil && a.ownEntry(existing) == nil:
		return conflict("%s exists and was not made by Slipway: rename or delete one of them", subject(child.Desired))
	case !existing.GetDeletionTimestamp().IsZero():
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonTerminating, "%s is being deleted and is made anew afterwards", subject(child.Desired))
	default:
		return nil
	}
}

// conflictRecheck is when to look again for a foreign object. The caches do not show
// it, so nothing tells when it goes away.
const conflictRecheck = 10 * time.Second

func conflict(format string, args ...any) error {
	err := outcome.Invalidf(slipwayv1alpha1.ReasonNameConflict, format, args...)
	err.After = conflictRecheck
	return err
}

func kindOf(c Configuration) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(*c.GetAPIVersion(), *c.GetKind())
}

func subject(c Configuration) string {
	return fmt.Sprintf("%s %q", *c.GetKind(), *c.GetName())
}
