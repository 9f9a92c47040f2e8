package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

// revision is a good revision as the operator stored it.
type revision struct {
	desired.Revision
	Name    string
	Number  int64
	Created metav1.Time
}

func (r revision) number() string { return strconv.FormatInt(r.Number, 10) }

func (r revision) String() string { return fmt.Sprintf("%d (%s)", r.Number, r.Name) }

// loadRevisions reads the stored revisions of a WebApp, oldest first.
func loadRevisions(ctx context.Context, c *command.Clients, app *slipwayv1alpha1.WebApp) ([]revision, error) {
	list, err := c.Kube.AppsV1().ControllerRevisions(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{
			slipwayv1alpha1.LabelWebApp:    app.Name,
			slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway,
		}).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the revisions of %s: %w", command.WebAppRef(app.Name), err)
	}
	var revisions []revision
	for i := range list.Items {
		stored := &list.Items[i]
		// A revision of an earlier WebApp with the same name will be deleted soon. A draft
		// is not a good revision.
		if !metav1.IsControlledBy(stored, app) || stored.Revision == desired.DraftNumber {
			continue
		}
		r := revision{Name: stored.Name, Number: stored.Revision, Created: stored.CreationTimestamp}
		if err := json.Unmarshal(stored.Data.Raw, &r.Revision); err != nil {
			return nil, fmt.Errorf("ControllerRevision %q of %s cannot be read: %w", stored.Name, command.WebAppRef(app.Name), err)
		}
		revisions = append(revisions, r)
	}
	slices.SortFunc(revisions, func(a, b revision) int { return cmp.Compare(a.Number, b.Number) })
	return revisions, nil
}

// configContent is the field name shown for the content of the Secrets and ConfigMaps that
// a revision uses. Only a hash of the content is known.
const configContent = "config content"

// specChange is one field that differs between two revisions.
type specChange struct {
	Field string `json:"field"`
	From  value  `json:"from,omitempty"`
	To    value  `json:"to,omitempty"`
}

// value is the value of a field as JSON. Empty means that the field is not set.
type value string

// MarshalJSON returns the value unchanged, because it is JSON already.
func (v value) MarshalJSON() ([]byte, error) { return []byte(v), nil }

// String shortens the value so that it fits on a line. It removes the quotes when the value
// stays unambiguous.
func (v value) String() string {
	const most = 80
	text := string(v)
	if text == "" {
		return "(not set)"
	}
	var plain string
	if err := json.Unmarshal([]byte(text), &plain); err == nil && plain != "" && !strings.ContainsFunc(plain, oddInText) {
		text = plain
	}
	text = command.Printable(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

func oddInText(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' || r == '(' }

// diffRevisions lists what changed from one revision to the next.
func diffRevisions(from, to desired.Revision) []specChange {
	changes := diffSpecs(from.Spec, to.Spec)
	refers := slices.ContainsFunc(changes, func(c specChange) bool { return c.Field == "envFrom" || c.Field == "files" })
	if from.ConfigHash != to.ConfigHash && !refers {
		changes = append(changes, specChange{Field: configContent})
	}
	return changes
}

// diffSpecs lists the fields that differ, among those that pods depend on. A list is one
// value, because its order matters.
func diffSpecs(from, to slipwayv1alpha1.WebAppSpec) []specChange {
	before, after := leaves(from), leaves(to)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var changes []specChange
	for _, field := range slices.SortedFunc(maps.Keys(all), imageFirst) {
		if before[field] != after[field] {
			changes = append(changes, specChange{Field: field, From: before[field], To: after[field]})
		}
	}
	return changes
}

// imageFirst sorts the image first, because it changes most often.
func imageFirst(a, b string) int {
	if (a == "image") != (b == "image") {
		if a == "image" {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

// leaves maps the path of each field that pods depend on to its value as JSON.
func leaves(spec slipwayv1alpha1.WebAppSpec) map[string]value {
	found := map[string]value{}
	raw, err := json.Marshal(desired.RevisionOf(spec, "").Spec)
	if err != nil {
		return found // Only a type that JSON cannot express could fail, and the API has none.
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return found
	}
	collect("", tree, found)
	delete(found, "storage.size") // A revision does not store it.
	return found
}

func collect(path string, tree any, found map[string]value) {
	object, ok := tree.(map[string]any)
	if !ok {
		raw, err := json.Marshal(tree)
		if err == nil {
			found[path] = value(raw)
		}
		return
	}
	for key, child := range object {
		if path != "" {
			key = path + "." + key
		}
		collect(key, child, found)
	}
}
