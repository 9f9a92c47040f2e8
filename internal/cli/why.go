package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

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

gw/NAME is the APIGateway of that name, or else the Gateway of the Gateway API.

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
	*program
	output format
	tail   int64
	// foreign lists the fields that others added, instead of the causes.
	foreign bool
}

func newWhyCommand(p *program) *cobra.Command {
	o := &whyOptions{program: p, output: formatTable}
	command := &cobra.Command{
		Use:               "why KIND/NAME",
		Short:             "Say why an object is not ready",
		Long:              whyLong,
		Example:           whyExample,
		Args:              oneWhyTarget,
		ValidArgsFunction: p.completeTargets,
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	o.output.addFlag(command)
	command.Flags().Int64Var(&o.tail, "tail", 10, "how many log lines of a failing container to show; 0: none")
	command.Flags().BoolVar(&o.foreign, "foreign", false, "list what others added to what belongs to it instead, with their field managers")
	return command
}

// find reads everything that the tree needs.
func (o *whyOptions) find(ctx context.Context, argument string) (*clients, *findings, error) {
	if kind, name, ok := parseKept(argument); ok {
		clients, err := o.clients()
		if err != nil {
			return nil, nil, err
		}
		found, err := clients.loadKept(ctx, kind, name)
		return clients, found, err
	}
	name, isGateway := parseGateway(argument)
	if _, err := parseTarget(argument); err != nil && !isGateway {
		return o.loadAny(ctx, argument)
	}
	if !isGateway {
		clients, app, err := o.target(ctx, argument)
		if err != nil {
			return nil, nil, err
		}
		found, err := clients.load(ctx, app)
		return clients, found, err
	}
	if kind, _, _ := strings.Cut(argument, "/"); strings.EqualFold(kind, shortGateway) {
		return o.findShort(ctx, name)
	}
	clients, err := o.clients()
	if err != nil {
		return nil, nil, err
	}
	gateway, err := clients.getAPIGateway(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	found, err := clients.loadGateway(ctx, gateway)
	return clients, found, err
}

// oneWhyTarget accepts every kind.
func oneWhyTarget(command *cobra.Command, args []string) error {
	if len(args) == 1 {
		_, isGateway := parseGateway(args[0])
		_, _, isKept := parseKept(args[0])
		isAny := namesObject(args[0])
		if isGateway || isKept || isAny {
			return nil
		}
	}
	return oneTarget(command, args)
}

func (o *whyOptions) run(ctx context.Context, argument string) error {
	if o.tail < 0 {
		return usageErrorf("--tail must not be negative")
	}
	clients, found, err := o.find(ctx, argument)
	if err != nil {
		return err
	}
	if o.foreign && (found.backup != nil || found.any != nil) {
		return usageErrorf("--foreign is about WebApps and APIGateways")
	}
	if o.foreign {
		return o.runForeign(ctx, clients, found)
	}
	found.now = o.Clock.Now()
	if o.tail > 0 {
		found.logs = clients.loadLogs(ctx, logTargets(found), o.tail)
	}
	view := explain(found)
	view.Other = found.other
	if o.output != formatTable {
		err = o.output.print(o.Streams.Out, view)
	} else {
		err = printWhy(o.Streams.Out, view)
	}
	if err != nil {
		return err
	}
	if view.State != health.Healthy || found.any != nil && anyFailed(view.Causes) {
		return &exitError{code: exitNotReady} // Everything was printed already.
	}
	return nil
}
