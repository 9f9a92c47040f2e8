package app

import (
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
)

// statusView is what status shows.
type statusView struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// State is Healthy, Progressing, Failed or Terminating.
	State              health.State                   `json:"state"`
	Reason             string                         `json:"reason,omitempty"`
	Message            string                         `json:"message,omitempty"`
	Generation         int64                          `json:"generation"`
	ObservedGeneration int64                          `json:"observedGeneration"`
	Replicas           string                         `json:"replicas"`
	Image              string                         `json:"image,omitempty"`
	WantedImage        string                         `json:"wantedImage"`
	URL                string                         `json:"url,omitempty"`
	Revision           string                         `json:"revision,omitempty"`
	LastGoodRevision   string                         `json:"lastGoodRevision,omitempty"`
	Paused             bool                           `json:"paused,omitempty"`
	Rollout            *slipwayv1alpha1.RolloutStatus `json:"rollout,omitempty"`
	Conditions         []metav1.Condition             `json:"conditions,omitempty"`
}

func statusOf(app *slipwayv1alpha1.WebApp) statusView {
	v := command.Verdict(app, app.Generation)
	return statusView{
		Name: app.Name, Namespace: app.Namespace,
		State: v.State, Reason: v.Reason, Message: v.Message,
		Generation: app.Generation, ObservedGeneration: app.Status.ObservedGeneration,
		Replicas: command.Replicas(app), Image: app.Status.Image, WantedImage: app.Spec.Image, URL: app.Status.ServiceURL,
		Revision: app.Status.Revision, LastGoodRevision: app.Status.LastGoodRevision,
		Paused: app.Spec.Paused, Rollout: app.Status.Rollout, Conditions: app.Status.Conditions,
	}
}

func printStatus(out io.Writer, view statusView, now time.Time) error {
	image := command.OrNone(view.Image)
	if view.Image != view.WantedImage {
		image += fmt.Sprintf(" (spec: %s)", view.WantedImage)
	}
	revision := command.OrNone(view.Revision)
	if view.Revision != "" && view.Revision == view.LastGoodRevision {
		revision += " (last good)"
	} else if view.LastGoodRevision != "" {
		revision += fmt.Sprintf(" (last good: %s)", view.LastGoodRevision)
	}
	generation := fmt.Sprintf("%d (observed)", view.Generation)
	if view.ObservedGeneration < view.Generation {
		generation = fmt.Sprintf("%d (observed: %d)", view.Generation, view.ObservedGeneration)
	}
	rows := [][]string{
		{"Name:", view.Name},
		{"Namespace:", view.Namespace},
		{"State:", string(view.State)},
		{"Replicas:", view.Replicas + " ready"},
		{"Image:", image},
		{"URL:", command.OrNone(view.URL)},
		{"Revision:", revision},
		{"Generation:", generation},
	}
	if view.Rollout != nil {
		rollout := fmt.Sprintf("%s, started %s ago", view.Rollout.Revision, command.Age(view.Rollout.StartTime, now))
		if view.State == health.Healthy {
			rollout += ", complete: the last good one when its pods have been ready for spec.rollout.minReadySeconds"
		}
		rows = append(rows, []string{"Rollout:", rollout})
	}
	if view.Paused {
		rows = append(rows, []string{"Paused:", "yes (spec.paused)"})
	}
	if err := command.Table(out, rows); err != nil {
		return err
	}
	if len(view.Conditions) == 0 {
		_, err := fmt.Fprintf(out, "\nThe operator has not said anything about %s yet.\n", command.WebAppRef(view.Name))
		return err
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	conditions := [][]string{{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}}
	seen := map[string]string{}
	for _, c := range view.Conditions {
		message := c.Message
		if first, ok := seen[message]; ok && message != "" {
			message = "as for " + first
		} else {
			seen[message] = c.Type
		}
		conditions = append(conditions, []string{c.Type, string(c.Status), command.Age(c.LastTransitionTime, now), c.Reason, message})
	}
	return command.Table(out, conditions)
}
