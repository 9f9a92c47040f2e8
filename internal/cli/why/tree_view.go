package why

import (
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/text"
)

// branch is an object in the output of tree.
type branch struct {
	// Object is kind/name.
	Object     string       `json:"object"`
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Namespace  string       `json:"namespace,omitempty"`
	Name       string       `json:"name"`
	UID        types.UID    `json:"uid,omitempty"`
	State      health.State `json:"state"`
	Reason     string       `json:"reason,omitempty"`
	Message    string       `json:"message,omitempty"`
	// Field is the field that decided, and Value what it holds.
	Field string `json:"field,omitempty"`
	Value string `json:"value,omitempty"`
	// Layer is which of the layers of docs/health.md decided.
	Layer   health.Layer `json:"layer,omitempty"`
	Created *metav1.Time `json:"created,omitempty"`
	// Asked marks the object that was named.
	Asked    bool     `json:"asked,omitempty"`
	Children []branch `json:"children,omitempty"`
}

// treeView is the output of tree. Its root is the topmost owner.
type treeView struct {
	branch
	// Left is how many more objects there are than were shown.
	Left int `json:"left,omitempty"`
	// Unreadable lists what could not be read, and so may be missing here.
	Unreadable []string `json:"unreadable,omitempty"`
	// Unanswered lists what could not be read for another reason than rights.
	Unanswered []string `json:"unanswered,omitempty"`
}

// These are reasons of objects that could not be read.
const (
	reasonNotReadable = "NotReadable"
	reasonGone        = "Gone"
)

// treeOf builds the tree: the owners in a line, with the object and what is below it at the end.
func treeOf(f *family, now time.Time) treeView {
	top := branchOf(f.asked, now)
	top.Asked = true
	for _, owner := range f.owners {
		above := branchOf(owner, now)
		above.Children = []branch{top}
		top = above
	}
	return treeView{branch: top, Left: f.left, Unreadable: f.unreadable, Unanswered: f.unanswered}
}

func branchOf(r *relative, now time.Time) branch {
	v := verdictOfRelative(r, now)
	b := branch{
		Object: command.ObjectRef(r.kind.Kind, r.name), APIVersion: r.kind.GroupVersion().String(), Kind: r.kind.Kind,
		Namespace: r.namespace,
		Name:      r.name, UID: r.uid, State: v.State, Reason: v.Reason, Message: v.Message, Field: v.Field, Value: v.Value, Layer: v.Layer,
	}
	if r.object != nil {
		if created := r.object.GetCreationTimestamp(); !created.IsZero() {
			b.Created = &created
		}
	}
	for _, child := range r.children {
		b.Children = append(b.Children, branchOf(child, now))
	}
	return b
}

// verdictOfRelative judges an object. Of one that could not be read nothing is known.
func verdictOfRelative(r *relative, now time.Time) health.Verdict {
	switch {
	case r.object != nil:
		return health.Evaluate(r.object.Object, health.Options{Now: now})
	case r.problem == problemGone || r.problem == problemReplaced:
		return health.Verdict{State: health.Unknown, Reason: reasonGone, Message: r.problem}
	default:
		return health.Verdict{State: health.Unknown, Reason: reasonNotReadable, Message: r.problem}
	}
}

// printTree writes the tree as a table.
func printTree(out io.Writer, view treeView, now time.Time) error {
	rows := treeRows([][]string{{"OBJECT", "STATE", "AGE", "WHY"}}, view.branch, "", "", now)
	if err := command.Table(out, rows); err != nil {
		return err
	}
	if view.Left > 0 {
		if _, err := fmt.Fprintf(out, "Not shown: %s (--limit).\n", text.Count(int64(view.Left), "more object")); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, notLookedAt(view.Unreadable, view.Unanswered))
	return err
}

// treeRows adds a row for an object, and those below it. first stands before its own name, rest before those below.
func treeRows(rows [][]string, b branch, first, rest string, now time.Time) [][]string {
	name := first + b.Object
	if b.Asked {
		name += " *"
	}
	when := "-"
	if b.Created != nil {
		when = command.Age(*b.Created, now)
	}
	rows = append(rows, []string{name, string(b.State), when, whyOf(b)})
	for i, child := range b.Children {
		if i == len(b.Children)-1 {
			rows = treeRows(rows, child, rest+"└─ ", rest+"   ", now)
		} else {
			rows = treeRows(rows, child, rest+"├─ ", rest+"│  ", now)
		}
	}
	return rows
}

// whyOf says why an object is not healthy. What has no status by design needs no words.
func whyOf(b branch) string {
	if b.State == health.Healthy || b.Reason == health.ReasonHasNoStatus {
		return ""
	}
	return command.Because(b.Reason, b.Message)
}
