package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/util/retry"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

// FieldManager is the field manager of the fields that a rollback writes.
const FieldManager = "kubectl-slipway"

const rollbackLong = `Write an earlier revision of a WebApp back into its spec.

What pods depend on is put back: image, port, env, envFrom, files, command, args, resources,
health, imagePullSecrets, serviceAccountName and where the volume is mounted. What is not part
of a revision stays: replicas, autoscaling, rollout, paused, the volume, and the content of
Secrets and ConfigMaps.

Without --to it is the revision before the current one. A change that somebody else makes to
the spec at the same time is never overwritten.`

const rollbackExample = `  # Back to the revision before this one
  kubectl slipway rollback webapp/shop

  # Back to a certain one, after a look at what it would change
  kubectl slipway history webapp/shop
  kubectl slipway rollback webapp/shop --to 3 --dry-run
  kubectl slipway rollback webapp/shop --to 3 --watch`

type rollbackOptions struct {
	*command.Program
	output  command.Format
	to      string
	dryRun  bool
	watch   bool
	timeout time.Duration
}

// NewRollbackCommand makes the command rollback.
func NewRollbackCommand(p *command.Program) *cobra.Command {
	o := &rollbackOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use:               "rollback webapp/NAME",
		Short:             "Write an earlier revision back into the spec",
		Long:              rollbackLong,
		Example:           rollbackExample,
		Args:              command.OneTarget,
		ValidArgsFunction: p.CompleteOf(command.WebAppKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.output.AddFlag(cmd)
	cmd.Flags().StringVar(&o.to, "to", "", "number or name of the revision; default: the one before the current one")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "let the API server check the change, and write nothing")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "follow the rollout until it is ready or has failed")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "with --watch, how long to wait at most; 0: no limit")
	command.MustComplete(cmd, "to", completeRevisions(p))
	return cmd
}

func (o *rollbackOptions) run(ctx context.Context, argument string) error {
	if o.watch && o.dryRun {
		return command.UsageErrorf("--watch has nothing to follow with --dry-run")
	}
	if o.timeout < 0 || (o.timeout > 0 && !o.watch) {
		return command.UsageErrorf("--timeout must be positive, and needs --watch")
	}
	clients, app, err := o.Target(ctx, argument)
	if err != nil {
		return err
	}
	plan, err := loadPlan(ctx, clients, app, o.to)
	if err != nil {
		return err
	}
	plan.DryRun = o.dryRun
	written, err := WriteRollback(ctx, clients, app, plan)
	if err != nil {
		return err
	}
	if err := o.show(plan); err != nil {
		return err
	}
	if o.watch {
		return follow(ctx, o.Program, clients, written, o.output, o.timeout)
	}
	return nil
}

func (o *rollbackOptions) show(plan *RollbackPlan) error {
	if o.output != command.FormatTable {
		return o.output.Print(o.Streams.Out, plan)
	}
	return printRollback(o.Streams.Out, plan)
}

func loadPlan(ctx context.Context, c *command.Clients, app *slipwayv1alpha1.WebApp, to string) (*RollbackPlan, error) {
	revisions, err := loadRevisions(ctx, c, app)
	if err != nil {
		return nil, err
	}
	configHash := ""
	deployment, err := c.Kube.AppsV1().Deployments(c.Namespace).Get(ctx, desired.Name(app), metav1.GetOptions{})
	switch {
	case err == nil:
		configHash = deployment.Spec.Template.Annotations[slipwayv1alpha1.AnnotationConfigHash]
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get the Deployment of %s: %w", command.WebAppRef(app.Name), err)
	}
	return planRollback(app, revisions, to, configHash)
}

// WriteRollback patches only the fields that differ, so that fields unknown to this program
// stay. The operator writes the status often. Then the resource version is new but the spec
// is the same, so the patch is sent again. If somebody else changed the spec, nothing is
// written.
func WriteRollback(
	ctx context.Context, c *command.Clients, app *slipwayv1alpha1.WebApp, plan *RollbackPlan,
) (*slipwayv1alpha1.WebApp, error) {
	options := metav1.PatchOptions{FieldManager: FieldManager}
	if plan.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	version := app.ResourceVersion
	var written *slipwayv1alpha1.WebApp
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		patch, err := rollbackPatch(app.Spec, plan.Spec, version)
		if err != nil {
			return err
		}
		written, err = c.WebApps().Patch(ctx, app.Name, types.MergePatchType, patch, options)
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh, getErr := c.GetWebApp(ctx, app.Name)
		if getErr != nil {
			return getErr
		}
		if fresh.UID != app.UID || fresh.Generation != app.Generation {
			return fmt.Errorf("somebody else changed it in the meantime; nothing was written")
		}
		version = fresh.ResourceVersion
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("roll back %s to revision %d (%s): %w", command.WebAppRef(app.Name), plan.Number, plan.Revision, err)
	}
	return written, nil
}

// rollbackPatch is a JSON merge patch from one spec to another. It holds the resource
// version, so the API server refuses it if the object has changed.
func rollbackPatch(from, to slipwayv1alpha1.WebAppSpec, version string) ([]byte, error) {
	before, err := json.Marshal(map[string]any{"spec": from})
	if err != nil {
		return nil, fmt.Errorf("encode the spec: %w", err)
	}
	after, err := json.Marshal(map[string]any{"spec": to, "metadata": map[string]string{"resourceVersion": version}})
	if err != nil {
		return nil, fmt.Errorf("encode the spec: %w", err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	if err != nil {
		return nil, fmt.Errorf("compare the specs: %w", err)
	}
	return patch, nil
}

// completeRevisions offers the names of the revisions of the WebApp that was named.
func completeRevisions(p *command.Program) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		clients, app, err := p.Target(cmd.Context(), args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		revisions, err := loadRevisions(cmd.Context(), clients, app)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, revision := range revisions {
			for _, name := range []string{revision.number(), revision.Name} {
				if strings.HasPrefix(name, typed) {
					names = append(names, name+"\t"+revision.Spec.Image)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
