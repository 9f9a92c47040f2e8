package why

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/cli/command"
)

// maxOwners bounds how far up owners are followed.
const maxOwners = 20

// relative is an object in the tree of owners and children.
type relative struct {
	kind      command.KindInfo
	namespace string
	name      string
	uid       types.UID
	// object is nil if it could not be read, and problem says why.
	object   *unstructured.Unstructured
	problem  string
	children []*relative
}

// family is what tree and why read of an object of any kind.
type family struct {
	// asked is the object that the user named.
	asked *relative
	// owners are what it belongs to, the nearest first. One owner of each is followed: its controller, or the first.
	owners []*relative
	// left is how many more objects there are below it than may be shown.
	left int
	// unreadable lists what the user may not read, and unanswered what could not be read for another reason. So it may be missing.
	unreadable, unanswered []string
}

// ref formats the name of the object that was named.
func (f *family) ref() string { return command.ObjectRef(f.asked.kind.Kind, f.asked.name) }

// These are problems of a relative.
const (
	problemForbidden = "you may not read it"
	problemGone      = "it does not exist any more"
	problemReplaced  = "it does not exist any more: another object has its name"
)

// loadFamily reads the owners of an object, and up to limit objects below it.
func loadFamily(
	ctx context.Context, c *command.AnyClients, object *unstructured.Unstructured, kind command.KindInfo, limit int,
) (*family, error) {
	f := &family{asked: &relative{
		kind: kind, namespace: object.GetNamespace(), name: object.GetName(), uid: object.GetUID(), object: object,
	}}
	kinds, unanswered, err := c.Kinds()
	if err != nil {
		return nil, err
	}
	// What lives in a namespace owns objects of that namespace only.
	namespace := object.GetNamespace()
	if namespace != "" {
		kinds = slices.DeleteFunc(kinds, func(k command.KindInfo) bool { return !k.Namespaced })
	}
	found, err := c.ListOwned(ctx, kinds, namespace)
	if err != nil {
		return nil, err
	}
	f.unreadable, f.unanswered = found.Unreadable, slices.Concat(unanswered, found.Unanswered)
	below := f.grow(found.Objects, limit)
	if err := readAll(ctx, c, below); err != nil {
		return nil, err
	}
	f.prune(f.asked)
	return f, climb(ctx, c, f)
}

// grow hangs every object below its owner, in the order of kinds and names, and returns those below the asked one.
func (f *family) grow(all []command.Owned, limit int) []*relative {
	slices.SortFunc(all, func(a, b command.Owned) int {
		return cmp.Or(strings.Compare(a.Info.Kind, b.Info.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Info.Group, b.Info.Group))
	})
	byOwner := map[types.UID][]int{}
	for i := range all {
		for _, owner := range all[i].OwnerReferences {
			byOwner[owner.UID] = append(byOwner[owner.UID], i)
		}
	}
	seen := map[types.UID]bool{f.asked.uid: true}
	queue, below := []*relative{f.asked}, []*relative(nil)
	// What is below an object that is not shown is counted too.
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		for _, i := range byOwner[parent.uid] {
			child := &all[i]
			// An object may have several owners, and may be offered by several groups. It is shown once.
			if seen[child.UID] {
				continue
			}
			seen[child.UID] = true
			next := &relative{kind: child.Info, namespace: child.Namespace, name: child.Name, uid: child.UID}
			queue = append(queue, next)
			if len(below) >= limit {
				f.left++
				continue
			}
			parent.children = append(parent.children, next)
			below = append(below, next)
		}
	}
	return below
}

// readAll reads the objects.
func readAll(ctx context.Context, c *command.AnyClients, relatives []*relative) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(command.ParallelReads)
	for _, r := range relatives {
		group.Go(func() error {
			r.fill(c.Read(ctx, r.kind, r.namespace, r.name))
			return ctx.Err()
		})
	}
	return group.Wait()
}

// fill takes what a read returned.
func (r *relative) fill(object *unstructured.Unstructured, err error) {
	switch {
	case apierrors.IsNotFound(err):
		r.problem = problemGone
	case apierrors.IsForbidden(err):
		r.problem = problemForbidden
	case err != nil:
		r.problem = command.Printable(err.Error())
	case object.GetUID() != r.uid:
		r.problem = problemReplaced
	default:
		r.object = object
	}
}

// prune removes what went while the tree was read. A child of what went is kept: it is still there.
func (f *family) prune(r *relative) {
	var kept []*relative
	for _, child := range r.children {
		f.prune(child)
		gone := child.problem == problemGone || child.problem == problemReplaced
		if !gone || len(child.children) > 0 {
			kept = append(kept, child)
		}
	}
	r.children = kept
}

// climb reads the owners.
func climb(ctx context.Context, c *command.AnyClients, f *family) error {
	seen := map[types.UID]bool{f.asked.uid: true}
	for at := f.asked; at.object != nil && len(f.owners) < maxOwners; {
		reference := ownerOf(at.object)
		if reference == nil || seen[reference.UID] {
			return nil
		}
		seen[reference.UID] = true
		owner := &relative{namespace: at.namespace, name: reference.Name, uid: reference.UID}
		owner.kind.Kind = reference.Kind
		f.owners = append(f.owners, owner)
		version, err := schema.ParseGroupVersion(reference.APIVersion)
		if err != nil {
			owner.problem = command.Printable(err.Error())
			return nil
		}
		mapping, err := c.Mapper.RESTMapping(schema.GroupKind{Group: version.Group, Kind: reference.Kind}, version.Version)
		if err != nil {
			owner.kind.GroupVersionResource = version.WithResource("")
			owner.problem = "the cluster does not have this kind any more"
			return nil
		}
		owner.kind = command.InfoOf(mapping)
		if !owner.kind.Namespaced {
			owner.namespace = ""
		}
		owner.fill(c.Read(ctx, owner.kind, owner.namespace, owner.name))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at = owner
	}
	return nil
}

// ownerOf returns the controller of an object, or else its first owner, or nil.
func ownerOf(object *unstructured.Unstructured) *metav1.OwnerReference {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return controller
	}
	owners := object.GetOwnerReferences()
	if len(owners) == 0 {
		return nil
	}
	return &owners[0]
}
