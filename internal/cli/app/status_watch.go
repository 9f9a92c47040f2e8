package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
)

// follow prints every change of a WebApp until its rollout has ended. from is a fresh copy
// of the WebApp.
func follow(
	ctx context.Context, p *command.Program, clients *command.Clients, from *slipwayv1alpha1.WebApp, output command.Format,
	timeout time.Duration,
) error {
	watchCtx, cancel := watchtools.ContextWithOptionalTimeout(ctx, timeout)
	defer cancel()
	start := p.Clock.Now()
	var last *slipwayv1alpha1.WebApp
	show := func(app *slipwayv1alpha1.WebApp) error {
		lines := changes(last, app)
		last = app
		if len(lines) > 0 && output != command.FormatTable {
			return output.PrintNext(p.Streams.Out, statusOf(app))
		}
		for _, line := range lines {
			if _, err := fmt.Fprintf(p.Streams.Out, "%7.1fs  %s\n", p.Clock.Since(start).Seconds(), line); err != nil {
				return err
			}
		}
		return nil
	}
	v, err := await(watchCtx, clients, from, show)
	switch {
	case err == nil:
		return endedWith(p, output, last.Name, command.Replicas(last), last.Status.Image, v)
	case ctx.Err() != nil:
		return &command.ExitError{Code: command.ExitInterrupted}
	case errors.Is(watchCtx.Err(), context.DeadlineExceeded):
		return &command.ExitError{
			Code: command.ExitTimeout,
			Message: fmt.Sprintf("error: %s is not ready after %s: %s", command.WebAppRef(from.Name), timeout,
				command.Because(v.Reason, v.Message)),
		}
	default:
		return err
	}
}

// await calls show with a WebApp, and again after each change. It ends when the WebApp is
// ready for a generation that is at least that of from, or when only a user can repair it.
// It returns the last verdict also when it ends with an error.
func await(
	ctx context.Context, c *command.Clients, from *slipwayv1alpha1.WebApp, show func(*slipwayv1alpha1.WebApp) error,
) (health.Verdict, error) {
	gone := &command.ExitError{Code: command.ExitNotReady, Message: fmt.Sprintf("error: %s was deleted", command.WebAppRef(from.Name))}
	last := command.Verdict(from, from.Generation)
	step := func(app *slipwayv1alpha1.WebApp) (bool, error) {
		if app.UID != from.UID || app.Generation < from.Generation {
			// An object with another UID is a new object with the same name. A lower
			// generation comes from a stale cache of the API server.
			if app.UID != from.UID {
				return false, gone
			}
			return false, nil
		}
		last = command.Verdict(app, from.Generation)
		if err := show(app); err != nil {
			return false, err
		}
		return last.State == health.Healthy || last.State == health.Failed && last.Terminal, nil
	}
	if done, err := step(from); done || err != nil {
		return last, err
	}
	_, err := watchtools.UntilWithSync(ctx, command.WatchOne(from.Name, webAppLister(c)), &slipwayv1alpha1.WebApp{},
		func(store cache.Store) (bool, error) {
			if len(store.List()) == 0 {
				return false, gone
			}
			return false, nil
		},
		func(event watch.Event) (bool, error) {
			switch event.Type {
			case watch.Deleted:
				return false, gone
			case watch.Error:
				return false, fmt.Errorf("watch %s: %w", command.WebAppRef(from.Name), apierrors.FromObject(event.Object))
			}
			app, ok := event.Object.(*slipwayv1alpha1.WebApp)
			if !ok {
				return false, nil
			}
			return step(app)
		})
	return last, err
}

func webAppLister(c *command.Clients) command.Lister {
	return command.Lister{
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.WebApps().List(ctx, options)
		},
		Watch: c.WebApps().Watch,
	}
}

// changes lists what is new in a WebApp since the earlier copy, one line for each change.
// With a nil copy it lists everything.
func changes(before, after *slipwayv1alpha1.WebApp) []string {
	if after.Status.ObservedGeneration < after.Generation {
		if before != nil && before.Generation == after.Generation {
			return nil
		}
		return []string{fmt.Sprintf("generation %d waits for the operator", after.Generation)}
	}
	if before == nil || before.Status.ObservedGeneration < before.Generation {
		// The status of an earlier generation was not printed.
		before = &slipwayv1alpha1.WebApp{}
	}
	var lines []string
	if after.Status.Revision != before.Status.Revision {
		lines = append(lines, line("Revision", fmt.Sprintf("%s, %s", after.Status.Revision, after.Status.Image)))
	}
	if command.Replicas(after) != command.Replicas(before) {
		lines = append(lines, line("Replicas", command.Replicas(after)+" ready"))
	}
	return append(lines, conditionChanges(before.Status.Conditions, after.Status.Conditions)...)
}

func conditionChanges(before, after []metav1.Condition) []string {
	var lines []string
	seen := map[string]bool{}
	for _, c := range after {
		old := meta.FindStatusCondition(before, c.Type)
		sameState := old != nil && old.Status == c.Status && old.Reason == c.Reason
		if sameState && (old.Message == c.Message || seen[c.Message]) {
			continue
		}
		why := command.Because(c.Reason, c.Message)
		if seen[c.Message] { // The line above has the same message, for another condition.
			why = c.Reason
		}
		seen[c.Message] = true
		lines = append(lines, line(c.Type, fmt.Sprintf("%-7s %s", c.Status, why)))
	}
	for _, c := range before {
		if meta.FindStatusCondition(after, c.Type) == nil {
			lines = append(lines, line(c.Type, "no longer"))
		}
	}
	return lines
}

func line(what, text string) string { return fmt.Sprintf("%-12s %s", what, command.Printable(text)) }
