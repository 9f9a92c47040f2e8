package why

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/apply"
)

// addition is a field of a child that another writer has added.
type addition struct {
	// Object is kind/name.
	Object string `json:"object"`
	Field  string `json:"field"`
	// Manager is the field manager that wrote the field.
	Manager string `json:"manager"`
	// Time is when the manager last changed a field of the object.
	Time *metav1.Time `json:"time,omitempty"`
}

// foreignView is the output of why --foreign.
type foreignView struct {
	Object    string     `json:"object"`
	Namespace string     `json:"namespace"`
	Additions []addition `json:"additions"`
	// Unreadable lists what could not be read, and so is missing here.
	Unreadable []string `json:"unreadable,omitempty"`
}

// owning is an object with children to which others may add something.
type owning interface {
	explained
	owner() command.Declared
	ref() string
}

// namedChild is a child as it was read, with its name as kind/name.
type namedChild struct {
	name   string
	object metav1.Object
}

// loadChildren reads the children of an owner. It also returns the names of those that the
// user may not read.
func loadChildren(ctx context.Context, c *command.Clients, f owning) (children []namedChild, unreadable []string, err error) {
	name := f.owner().GetName()
	get := metav1.GetOptions{}
	reads := []struct {
		kind, name string
		read       func(name string) (metav1.Object, error)
	}{
		{"deployment", name, func(n string) (metav1.Object, error) {
			return c.Kube.AppsV1().Deployments(c.Namespace).Get(ctx, n, get)
		}},
		{"service", name, func(n string) (metav1.Object, error) { return c.Kube.CoreV1().Services(c.Namespace).Get(ctx, n, get) }},
		{"horizontalpodautoscaler", name, func(n string) (metav1.Object, error) {
			return c.Kube.AutoscalingV2().HorizontalPodAutoscalers(c.Namespace).Get(ctx, n, get)
		}},
		{"poddisruptionbudget", name, func(n string) (metav1.Object, error) {
			return c.Kube.PolicyV1().PodDisruptionBudgets(c.Namespace).Get(ctx, n, get)
		}},
		{"persistentvolumeclaim", name + "-data", func(n string) (metav1.Object, error) {
			return c.Kube.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, n, get)
		}},
		{"ingress", name + "-ingress", func(n string) (metav1.Object, error) {
			return c.Kube.NetworkingV1().Ingresses(c.Namespace).Get(ctx, n, get)
		}},
		{"serviceaccount", name, func(n string) (metav1.Object, error) {
			return c.Kube.CoreV1().ServiceAccounts(c.Namespace).Get(ctx, n, get)
		}},
		{"role", name, func(n string) (metav1.Object, error) { return c.Kube.RbacV1().Roles(c.Namespace).Get(ctx, n, get) }},
		{"rolebinding", name, func(n string) (metav1.Object, error) {
			return c.Kube.RbacV1().RoleBindings(c.Namespace).Get(ctx, n, get)
		}},
	}
	for _, r := range reads {
		object, err := r.read(r.name)
		switch {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			unreadable = append(unreadable, r.kind+"/"+r.name)
		case err != nil:
			return nil, nil, fmt.Errorf("read %s/%s of %s: %w", r.kind, r.name, f.ref(), err)
		default:
			children = append(children, namedChild{name: r.kind + "/" + r.name, object: object})
		}
	}
	return children, unreadable, nil
}

// revisionPath is the annotation that the Deployment controller writes.
var revisionPath = fieldpath.MakePathOrDie("metadata", "annotations", health.AnnotationRevision)

// additions lists the fields of a child that others than Slipway and Kubernetes itself own.
// An object without any field of Slipway is not a child.
func additions(child namedChild) []addition {
	ours := &fieldpath.Set{}
	entries := child.object.GetManagedFields()
	for i := range entries {
		if strings.HasPrefix(entries[i].Manager, "slipway-") {
			ours = ours.Union(fieldsOfEntry(&entries[i]))
		}
	}
	if ours.Empty() {
		return nil
	}
	var list []addition
	for i := range entries {
		entry := &entries[i]
		// Fields that were written through a subresource (status or scale) are not
		// additions.
		if strings.HasPrefix(entry.Manager, "slipway-") || entry.Manager == "kube-controller-manager" || entry.Subresource != "" {
			continue
		}
		theirs := fieldsOfEntry(entry).Difference(ours)
		theirs.Iterate(func(path fieldpath.Path) {
			if isPartOfItem(theirs, path) || isOuter(theirs, path) || path.Equals(revisionPath) {
				return
			}
			list = append(list, addition{Object: child.name, Field: apply.FieldName(path), Manager: entry.Manager, Time: entry.Time})
		})
	}
	slices.SortStableFunc(list, func(a, b addition) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Manager, b.Manager))
	})
	return list
}

func fieldsOfEntry(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return &fieldpath.Set{}
	}
	return set
}

// isPartOfItem reports whether a field belongs to a list item, such as a container, that
// the other manager owns as a whole.
func isPartOfItem(set *fieldpath.Set, path fieldpath.Path) bool {
	for i := 1; i < len(path); i++ {
		if last := path[i-1]; (last.Key != nil || last.Value != nil) && set.Has(path[:i]) {
			return true
		}
	}
	return false
}

// isOuter reports whether the set also has a field below this one. The inner field says
// more.
func isOuter(set *fieldpath.Set, path fieldpath.Path) bool {
	last := path[len(path)-1]
	if last.FieldName == nil {
		return false
	}
	inner := set
	for _, element := range path {
		next, ok := inner.Children.Get(element)
		if !ok {
			return false
		}
		inner = next
	}
	return !inner.Empty()
}

// foreignOf lists the fields that others added to the children of an owner.
func foreignOf(f owning, children []namedChild, unreadable []string) foreignView {
	view := foreignView{Object: f.ref(), Namespace: f.owner().GetNamespace(), Additions: []addition{}, Unreadable: unreadable}
	for _, child := range children {
		view.Additions = append(view.Additions, additions(child)...)
	}
	return view
}

func printForeign(out io.Writer, view foreignView, now time.Time) error {
	if len(view.Additions) == 0 {
		if _, err := fmt.Fprintf(out, "Nobody has added anything to what belongs to %s.\n", view.Object); err != nil {
			return err
		}
	} else {
		rows := [][]string{{"OBJECT", "FIELD", "MANAGER", "AGE"}}
		for _, a := range view.Additions {
			when := "-"
			if a.Time != nil {
				when = command.Age(*a.Time, now)
			}
			rows = append(rows, []string{a.Object, command.Printable(a.Field), command.Printable(a.Manager), when})
		}
		if err := command.Table(out, rows); err != nil {
			return err
		}
	}
	if len(view.Unreadable) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "Not looked at, because you may not read it: %s\n", strings.Join(view.Unreadable, ", "))
	return err
}

// runForeign prints the fields that others added.
func (o *whyOptions) runForeign(ctx context.Context, found owning) error {
	children, unreadable, err := loadChildren(ctx, found.facts().clients, found)
	if err != nil {
		return err
	}
	view := foreignOf(found, children, unreadable)
	if o.output != command.FormatTable {
		return o.output.Print(o.Streams.Out, view)
	}
	return printForeign(o.Streams.Out, view, o.Clock.Now())
}
