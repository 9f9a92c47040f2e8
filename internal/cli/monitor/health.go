package monitor

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/api"
)

const healthLong = `Show how the objects do that the monitor follows and that you may list: how many are in which state, and which are
not healthy, with the reason. --all lists the healthy ones, too.`

type monitorOptions struct {
	*command.Program
	monitorFlags
	output command.Format
	all    bool
	kind   string
}

// NewHealthCommand makes the command health.
func NewHealthCommand(p *command.Program) *cobra.Command {
	o := &monitorOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use: "health", Short: "Show which objects are not healthy, of all kinds", Long: healthLong, Args: command.NoArguments,
		Example: "  # What is not healthy?\n  kubectl slipway health\n\n  # Everything of a kind in a namespace\n  kubectl " +
			"slipway health --all --kind webapps -n shop",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.health(cmd.Context()) },
	}
	o.output.AddFlag(cmd)
	o.AddFlags(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "list healthy objects, too")
	cmd.Flags().StringVar(&o.kind, "kind", "", "only objects of this kind")
	command.MustComplete(cmd, "kind", p.CompleteKinds)
	return cmd
}

// NewCoverageCommand makes the command coverage.
func NewCoverageCommand(p *command.Program) *cobra.Command {
	o := &monitorOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use: "coverage", Short: "Show which kinds the monitor follows, and which it cannot", Args: command.NoArguments,
		Long:              "Show which kinds the monitor follows, of those that you may list: in which state each is, since when, and why.",
		Example:           "  # Which kinds are not covered?\n  kubectl slipway coverage",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.coverage(cmd.Context()) },
	}
	o.output.AddFlag(cmd)
	o.AddFlags(cmd)
	return cmd
}

// askFor asks for an answer, in the namespace that was named.
func (o *monitorOptions) askFor(ctx context.Context, endpoint string, params url.Values, into any) error {
	if namespace := explicitNamespace(o.Program); namespace != "" {
		params.Set("namespace", namespace)
	}
	monitor, err := newMonitorClient(ctx, o.Program, &o.monitorFlags)
	if err != nil {
		return err
	}
	defer monitor.stop()
	return monitor.ask(ctx, endpoint, params, into)
}

func (o *monitorOptions) health(ctx context.Context) error {
	params := url.Values{"all": {fmt.Sprint(o.all)}, "limit": {"2000"}}
	if o.kind != "" {
		name, _, err := o.ResourceName(o.kind)
		if err != nil {
			return err
		}
		params.Set("kind", name)
	}
	answer := &api.HealthSummary{}
	if err := o.askFor(ctx, "health", params, answer); err != nil {
		return err
	}
	if o.output != command.FormatTable {
		return o.output.Print(o.Streams.Out, answer)
	}
	var counts []string
	for _, state := range []health.State{health.Failed, health.Terminating, health.Progressing, health.Unknown, health.Healthy} {
		if n := answer.Counts[string(state)]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(counts) == 0 {
		counts = []string{"nothing that " + o.mayList(explicitNamespace(o.Program))}
	}
	if _, err := fmt.Fprintf(o.Streams.Out, "%s\n", strings.Join(counts, ", ")); err != nil {
		return err
	}
	if len(answer.Objects) > 0 {
		rows := [][]string{{"NAMESPACE", "OBJECT", "STATE", "WHY"}}
		for _, one := range answer.Objects {
			rows = append(rows, []string{
				command.OrNone(one.Namespace), command.ObjectRef(one.KindName, one.Name), one.State,
				command.Because(one.Reason, one.Message),
			})
		}
		if _, err := fmt.Fprintln(o.Streams.Out); err != nil {
			return err
		}
		if err := command.Table(o.Streams.Out, rows); err != nil {
			return err
		}
	}
	return printView(o.Program, &answer.View, false, answer.Incomplete)
}

func (o *monitorOptions) coverage(ctx context.Context) error {
	answer := &api.Coverage{}
	if err := o.askFor(ctx, "coverage", url.Values{}, answer); err != nil {
		return err
	}
	if o.output != command.FormatTable {
		return o.output.Print(o.Streams.Out, answer)
	}
	// What is not live comes first.
	slices.SortStableFunc(answer.Kinds, func(a, b api.Covered) int { return rank(a.State) - rank(b.State) })
	rows := [][]string{{"KIND", "VERSION", "STATE", "SINCE", "LAG", "GAPS", "WHY"}}
	for _, one := range answer.Kinds {
		since := "unknown"
		if !one.Since.IsZero() {
			since = one.Since.Local().Format("2006-01-02 15:04:05")
		}
		rows = append(rows,
			[]string{one.Name, one.Version, one.State, since, fmt.Sprintf("%.1fs", one.Lag), fmt.Sprint(one.Gaps), one.Reason})
	}
	if err := command.Table(o.Streams.Out, rows); err != nil {
		return err
	}
	if len(answer.Kinds) == 0 {
		if _, err := fmt.Fprintf(o.Streams.ErrOut, "No kind that %s.\n", o.mayList(explicitNamespace(o.Program))); err != nil {
			return err
		}
	}
	if !answer.Complete {
		_, err := fmt.Fprintln(o.Streams.ErrOut, "The monitor has not read all definitions yet.")
		return err
	}
	return nil
}

func rank(state string) int {
	if state == "Live" {
		return 1
	}
	return 0
}
