package app

import (
	"fmt"
	"io"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

// RollbackPlan is what a rollback writes, and what it shows.
type RollbackPlan struct {
	Name      string       `json:"name"`
	Namespace string       `json:"namespace"`
	Number    int64        `json:"number"`
	Revision  string       `json:"revision"`
	Changes   []specChange `json:"changes"`
	Notes     []string     `json:"notes,omitempty"`
	DryRun    bool         `json:"dryRun,omitempty"`

	Spec slipwayv1alpha1.WebAppSpec `json:"-"`
}

// planRollback decides what a rollback writes. to is a revision's number or name. If it is
// empty, the newest revision is used that leads to other pods than the spec, which is the
// revision before the current one. configHash is the hash of the running pods.
func planRollback(app *slipwayv1alpha1.WebApp, revisions []revision, to, configHash string) (*RollbackPlan, error) {
	target, err := chooseRevision(app, revisions, to)
	if err != nil {
		return nil, err
	}
	merged := mergeRevision(app.Spec, *target)
	plan := &RollbackPlan{
		Name: app.Name, Namespace: app.Namespace, Number: target.Number, Revision: target.Name,
		Changes: diffSpecs(app.Spec, merged), Spec: merged,
	}
	configDiffers := target.ConfigHash != "" && target.ConfigHash != configHash
	if len(plan.Changes) == 0 {
		message := fmt.Sprintf("nothing to roll back: the spec of %s already asks for revision %s", command.WebAppRef(app.Name), target)
		if configDiffers {
			message += "; the content of its Secrets and ConfigMaps has changed since, and cannot be rolled back"
		}
		return nil, fmt.Errorf("%s", message)
	}
	if configDiffers {
		plan.Notes = append(plan.Notes, "Secrets and ConfigMaps are used as they are now: their content is not part of a rollback, and "+
			"it has changed since that revision.")
	}
	switch had, has := target.Spec.Storage != nil, app.Spec.Storage != nil; {
	case had && !has:
		plan.Notes = append(plan.Notes,
			fmt.Sprintf("That revision had a volume at %s. spec.storage is not part of a rollback: set it if the application needs it.",
				target.Spec.Storage.MountPath))
	case has && !had:
		plan.Notes = append(plan.Notes, "That revision had no volume. spec.storage is not part of a rollback and stays.")
	}
	if app.Spec.Paused {
		plan.Notes = append(plan.Notes, "spec.paused is set: nothing is rolled out until it is not.")
	}
	return plan, nil
}

func chooseRevision(app *slipwayv1alpha1.WebApp, revisions []revision, to string) (*revision, error) {
	if len(revisions) == 0 {
		return nil, fmt.Errorf("%s has no revision to roll back to: nothing has rolled out completely yet", command.WebAppRef(app.Name))
	}
	for i := len(revisions) - 1; i >= 0; i-- {
		r := &revisions[i]
		if to == r.Name || to == r.number() {
			return r, nil
		}
		if to == "" && !samePods(app, mergeRevision(app.Spec, *r), app.Spec) {
			return r, nil
		}
	}
	if to == "" {
		return nil, fmt.Errorf(
			"%s has no revision before the current one; there is only %s", command.WebAppRef(app.Name), available(revisions),
		)
	}
	return nil, fmt.Errorf("%s has no revision %q; there are %s", command.WebAppRef(app.Name), to, available(revisions))
}

// samePods reports whether two specs lead to the same pods. The specs may be written
// differently: one may write out a default, or have an empty object where the other has
// none.
func samePods(app *slipwayv1alpha1.WebApp, a, b slipwayv1alpha1.WebAppSpec) bool {
	nameA, errA := desired.RevisionOf(a, "").Name(app)
	nameB, errB := desired.RevisionOf(b, "").Name(app)
	return errA == nil && errB == nil && nameA == nameB
}

func available(revisions []revision) string {
	var names []string
	for _, r := range revisions {
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}

// mergeRevision sets the fields that pods depend on back to their values in a revision. The
// other fields stay: the number of pods, the rollout strategy, and the volume, which cannot
// be reverted.
func mergeRevision(spec slipwayv1alpha1.WebAppSpec, r revision) slipwayv1alpha1.WebAppSpec {
	spec = *spec.DeepCopy()
	merged := *r.Spec.DeepCopy()
	merged.Replicas = spec.Replicas
	merged.Autoscaling = spec.Autoscaling
	merged.Rollout = spec.Rollout
	merged.Paused = spec.Paused
	if spec.Storage != nil && merged.Storage != nil {
		spec.Storage.MountPath = merged.Storage.MountPath
	}
	merged.Storage = spec.Storage
	return merged
}

func printRollback(out io.Writer, plan *RollbackPlan) error {
	text := &strings.Builder{}
	done := "rolled back"
	if plan.DryRun {
		done = "would be rolled back"
	}
	fmt.Fprintf(text, "%s %s to revision %d (%s)", command.WebAppRef(plan.Name), done, plan.Number, plan.Revision)
	if plan.DryRun {
		fmt.Fprint(text, " (server dry run)")
	}
	fmt.Fprintln(text)
	for _, c := range plan.Changes {
		fmt.Fprintf(text, "  %s: %s -> %s\n", command.Printable(c.Field), c.From, c.To)
	}
	for _, note := range plan.Notes {
		fmt.Fprintf(text, "Note: %s\n", command.Printable(note))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
