package app

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
)

// historyView is what history shows.
type historyView struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Revisions []historyEntry `json:"revisions"`
}

// historyEntry is one revision.
type historyEntry struct {
	// Number orders the revisions. A revision that was not stored has none.
	Number  int64        `json:"number,omitempty"`
	Name    string       `json:"name"`
	Image   string       `json:"image,omitempty"`
	Changes []specChange `json:"changes,omitempty"`
	// Created is when the revision first rolled out completely.
	Created  *metav1.Time `json:"created,omitempty"`
	Running  bool         `json:"running,omitempty"`
	LastGood bool         `json:"lastGood,omitempty"`
	Rolling  bool         `json:"rollingOut,omitempty"`
	// Proving reports whether it has rolled out, and its pods have not been ready for long enough to be the last good one.
	Proving bool   `json:"proving,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func historyOf(app *slipwayv1alpha1.WebApp, revisions []revision) historyView {
	view := historyView{Name: app.Name, Namespace: app.Namespace, Revisions: []historyEntry{}}
	serves := command.TrueCondition(app, slipwayv1alpha1.ConditionReady) != nil
	for i, r := range revisions {
		wanted := app.Status.Rollout != nil && r.Name == app.Status.Rollout.Revision
		entry := historyEntry{
			Number: r.Number, Name: r.Name, Image: r.Spec.Image, Created: &r.Created,
			Running:  r.Name == app.Status.Revision,
			LastGood: r.Name == app.Status.LastGoodRevision,
			Rolling:  wanted && !serves,
			Proving:  wanted && serves,
		}
		if i > 0 {
			entry.Changes = diffRevisions(revisions[i-1].Revision, r.Revision)
		}
		view.Revisions = append(view.Revisions, entry)
	}
	if entry := wantedEntry(app, revisions); entry != nil {
		view.Revisions = append(view.Revisions, *entry)
	}
	return view
}

// wantedEntry is the revision that the spec asks for, when it is not one of the good
// revisions: it failed, it is still rolling out, or it has just done so.
func wantedEntry(app *slipwayv1alpha1.WebApp, revisions []revision) *historyEntry {
	entry := &historyEntry{}
	switch {
	case app.Status.Rollback != nil:
		rollback := app.Status.Rollback
		entry.Name, entry.Failed, entry.Reason, entry.Message = rollback.FromRevision, true, rollback.Reason, rollback.Message
	case app.Status.Rollout != nil:
		serves := command.TrueCondition(app, slipwayv1alpha1.ConditionReady) != nil
		entry.Name, entry.Rolling, entry.Proving = app.Status.Rollout.Revision, !serves, serves
		if stalled := command.TrueCondition(app, slipwayv1alpha1.ConditionStalled); stalled != nil {
			entry.Failed, entry.Reason, entry.Message = true, stalled.Reason, stalled.Message
		}
	default:
		return nil
	}
	for _, r := range revisions {
		if r.Name == entry.Name && (entry.Rolling || entry.Proving) {
			return nil // A good revision has its own line already.
		}
	}
	entry.Running = entry.Name == app.Status.Revision
	// The status describes this spec only if the generations are equal.
	if app.Status.ObservedGeneration == app.Generation {
		entry.Image = app.Spec.Image
		if len(revisions) > 0 {
			last := revisions[len(revisions)-1]
			entry.Changes = diffSpecs(last.Spec, app.Spec)
			if len(entry.Changes) == 0 {
				entry.Changes = []specChange{{Field: configContent}}
			}
		}
	}
	return entry
}

func printHistory(out io.Writer, view historyView, now time.Time) error {
	if len(view.Revisions) == 0 {
		_, err := fmt.Fprintf(out, "%s has no revision yet: nothing has rolled out completely.\n", command.WebAppRef(view.Name))
		return err
	}
	rows := [][]string{{"REVISION", "NAME", "IMAGE", "AGE", "CHANGED", "STATE"}}
	for i, entry := range view.Revisions {
		number, since := "-", "-"
		if entry.Created != nil {
			number, since = fmt.Sprint(entry.Number), command.Age(*entry.Created, now)
		}
		rows = append(rows, []string{number, entry.Name, command.OrNone(entry.Image), since, changedText(i, entry), stateText(entry)})
	}
	if err := command.Table(out, rows); err != nil {
		return err
	}
	for _, entry := range view.Revisions {
		if entry.Failed {
			if _, err := fmt.Fprintf(out, "\n%s failed: %s\n", entry.Name, command.Because(entry.Reason, entry.Message)); err != nil {
				return err
			}
		}
	}
	return nil
}

func changedText(index int, entry historyEntry) string {
	changes := entry.Changes
	switch {
	case len(changes) == 0 && (index == 0 || entry.Created == nil):
		return "-" // There is no earlier revision to compare it with.
	case len(changes) == 0:
		// The spec is the same, but the operator built other pods from it, for example
		// after an operator update.
		return "pod template"
	}
	const most = 4
	var fields []string
	for i, c := range changes {
		if i == most {
			fields = append(fields, fmt.Sprintf("%d more", len(changes)-most))
			break
		}
		fields = append(fields, c.Field)
	}
	return strings.Join(fields, ", ")
}

func stateText(entry historyEntry) string {
	var words []string
	for _, state := range []struct {
		is   bool
		word string
	}{
		{entry.Running, "running"},
		{entry.LastGood, "last good"},
		{entry.Rolling && !entry.Failed, "rolling out"},
		{entry.Proving, "not yet last good"},
		{entry.Failed, "failed"},
	} {
		if state.is {
			words = append(words, state.word)
		}
	}
	return strings.Join(words, ", ")
}
