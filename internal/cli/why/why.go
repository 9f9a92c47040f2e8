package why

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
)

const whyLong = `Say why an object is not ready, followed down from its conditions to what causes
them: a missing Secret or ConfigMap, the Deployment, its ReplicaSets and pods, the volume; of an
APIGateway each route that is not live with its Service and the pods behind it, what exposes it, its
certificates, and the replica that does not serve the spec; of a Gateway of the Gateway API its class,
parameters, listeners, address and pods, and the routes that it does not serve; of a route of the
Gateway API each parent that does not serve it, and each Service that cannot be used; of a Backup its
newest run; of that or of a Restore the Job and its pod; of an object of any other kind what belongs to
it by owner references, down to what has failed or is not ready. A container that ends or does not
become ready shows its last log lines, and every object its recent warnings.

Where other projects have a kind of the same name, such as Backup, that of Slipway comes first. gw/NAME is the APIGateway of that
name, or else the Gateway of the Gateway API.

Exit code 0 when all is well, 1 when something is not, or nothing tells.`

const whyExample = `  # What is wrong?
  kubectl slipway why webapp/shop

  # Why does a route not answer?
  kubectl slipway why apigateway/edge

  # The Gateway API: is it served, and who refuses the route?
  kubectl slipway why gateway/edge
  kubectl slipway why httproute/shop

  # Why is there no new copy?
  kubectl slipway why backup/shop-data

  # Any other kind
  kubectl slipway why statefulset/db
  kubectl slipway why certificates.cert-manager.io/shop-tls

  # What did others add to it: a sidecar, a port, a label?
  kubectl slipway why webapp/shop --foreign

  # With more of the log
  kubectl slipway why webapp/shop --tail 50`

type whyOptions struct {
	*command.Program
	output command.Format
	tail   int64
	// foreign lists the fields that others added, instead of the causes.
	foreign bool
}

// NewCommand makes the command why.
func NewCommand(p *command.Program) *cobra.Command {
	o := &whyOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use:               "why KIND/NAME",
		Short:             "Say why an object is not ready",
		Long:              whyLong,
		Example:           whyExample,
		Args:              oneWhyTarget,
		ValidArgsFunction: p.CompleteObjects(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.output.AddFlag(cmd)
	cmd.Flags().Int64Var(&o.tail, "tail", 10, "how many log lines of a failing container to show; 0: none")
	cmd.Flags().BoolVar(&o.foreign, "foreign", false, "list what others added to what belongs to it instead, with their field managers")
	return cmd
}

// find reads everything that the tree needs.
func (o *whyOptions) find(ctx context.Context, argument string) (explained, error) {
	if !strings.Contains(argument, "/") {
		argument = command.WebAppKind.Ref(argument)
	}
	clients, err := o.AnyClients()
	if err != nil {
		return nil, err
	}
	found, err := findOurs(ctx, clients, argument)
	missing := &command.ExitError{}
	if found == nil && (err == nil || errors.As(err, &missing) && missing.NotFound) {
		// It is another kind, or what kubectl takes for that name is one.
		other, otherErr := o.findAny(ctx, clients, argument)
		if err == nil || otherErr == nil {
			return other, otherErr
		}
	}
	return found, err
}

// findOurs reads everything about an object of Slipway that why explains by itself. For others it returns nothing.
func findOurs(ctx context.Context, clients *command.AnyClients, argument string) (explained, error) {
	ours, name := command.ParseOurs(argument)
	if ours == nil {
		return nil, nil
	}
	if word, _, _ := strings.Cut(argument, "/"); ours == command.GatewayKind && strings.EqualFold(word, command.ShortGateway) {
		return findShort(ctx, clients, name)
	}
	kind := kindOf(ours.Info())
	if kind == nil {
		return nil, nil
	}
	return kind.Load(ctx, clients, named{kind: ours.Info(), name: name})
}

// findAny reads everything about the object that kubectl takes for the argument.
func (o *whyOptions) findAny(ctx context.Context, clients *command.AnyClients, argument string) (explained, error) {
	object, info, other, err := o.getMeant(ctx, clients, argument)
	if err != nil {
		return nil, err
	}
	load := loadAny
	if isStandard(info) {
		load = kindOf(info).Load
	}
	found, err := load(ctx, clients, named{kind: info, name: object.GetName(), object: object})
	if err != nil {
		return nil, err
	}
	found.facts().other = other
	return found, nil
}

// oneWhyTarget accepts every kind.
func oneWhyTarget(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && command.NamesObject(args[0]) {
		return nil
	}
	return command.OneTarget(cmd, args)
}

func (o *whyOptions) run(ctx context.Context, argument string) error {
	if o.tail < 0 {
		return command.UsageErrorf("--tail must not be negative")
	}
	found, err := o.find(ctx, argument)
	if err != nil {
		return err
	}
	if o.foreign {
		owner, ok := found.(owning)
		if !ok {
			return command.UsageErrorf("--foreign is about WebApps and APIGateways")
		}
		return o.runForeign(ctx, owner)
	}
	facts := found.facts()
	facts.now = o.Clock.Now()
	if o.tail > 0 {
		facts.logs = loadLogs(ctx, facts.clients, logTargets(found), o.tail)
	}
	view := found.explain()
	view.Other = facts.other
	if o.output != command.FormatTable {
		err = o.output.Print(o.Streams.Out, view)
	} else {
		err = printWhy(o.Streams.Out, view)
	}
	if err != nil {
		return err
	}
	if view.State != health.Healthy || facts.byCauses && anyFailed(view.Causes) {
		return &command.ExitError{Code: command.ExitNotReady} // Everything was printed already.
	}
	return nil
}
