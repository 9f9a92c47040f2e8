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
func (o *whyOptions) find(ctx context.Context, argument string) (*command.Clients, *findings, error) {
	if !strings.Contains(argument, "/") {
		argument = command.WebAppKind.Ref(argument)
	}
	kind, name := command.ParseOurs(argument)
	clients, found, err := o.findOurs(ctx, argument, kind, name)
	missing := &command.ExitError{}
	if found == nil && (err == nil || errors.As(err, &missing) && missing.NotFound) {
		// It is another kind, or what kubectl takes for that name is one.
		clients, other, otherErr := o.loadAny(ctx, argument)
		if err == nil || otherErr == nil {
			return clients, other, otherErr
		}
	}
	return clients, found, err
}

// findOurs reads everything about an object of Slipway that why explains by itself. For others it returns nothing.
func (o *whyOptions) findOurs(ctx context.Context, argument string, kind *command.OurKind, name string) (*command.Clients, *findings, error) {
	if word, _, _ := strings.Cut(argument, "/"); kind == command.GatewayKind && strings.EqualFold(word, command.ShortGateway) {
		return o.findShort(ctx, name)
	}
	load := map[*command.OurKind]func(*command.Clients) (*findings, error){
		command.WebAppKind: func(c *command.Clients) (*findings, error) {
			app, err := c.GetWebApp(ctx, name)
			if err != nil {
				return nil, err
			}
			return loadWebApp(ctx, c, app)
		},
		command.GatewayKind: func(c *command.Clients) (*findings, error) {
			gateway, err := getAPIGateway(ctx, c, name)
			if err != nil {
				return nil, err
			}
			return loadGateway(ctx, c, gateway)
		},
		command.BackupKind:  func(c *command.Clients) (*findings, error) { return loadKept(ctx, c, kind, name) },
		command.RunKind:     func(c *command.Clients) (*findings, error) { return loadKept(ctx, c, kind, name) },
		command.RestoreKind: func(c *command.Clients) (*findings, error) { return loadKept(ctx, c, kind, name) },
	}[kind]
	if load == nil {
		return nil, nil, nil
	}
	clients, err := o.Clients()
	if err != nil {
		return nil, nil, err
	}
	found, err := load(clients)
	return clients, found, err
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
	clients, found, err := o.find(ctx, argument)
	if err != nil {
		return err
	}
	if o.foreign && (found.backup != nil || found.any != nil) {
		return command.UsageErrorf("--foreign is about WebApps and APIGateways")
	}
	if o.foreign {
		return o.runForeign(ctx, clients, found)
	}
	found.now = o.Clock.Now()
	if o.tail > 0 {
		found.logs = loadLogs(ctx, clients, logTargets(found), o.tail)
	}
	view := explain(found)
	view.Other = found.other
	if o.output != command.FormatTable {
		err = o.output.Print(o.Streams.Out, view)
	} else {
		err = printWhy(o.Streams.Out, view)
	}
	if err != nil {
		return err
	}
	if view.State != health.Healthy || found.any != nil && anyFailed(view.Causes) {
		return &command.ExitError{Code: command.ExitNotReady} // Everything was printed already.
	}
	return nil
}
