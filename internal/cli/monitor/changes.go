package monitor

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/text"
)

// maxFetched is how many changes one command shows at most.
const maxFetched = 5000

const changesLong = `Show what changed in the cluster, of every kind that the monitor follows and that you may list: the newest last.

Without --namespace, all namespaces are meant. The monitor has to be installed.`

const changesExample = `  # What changed in the last hour?
  kubectl slipway changes --since 1h

  # What did one program do, and to which fields?
  kubectl slipway changes --since 1d --actor kube-controller-manager --diff

  # What changed of one kind in a namespace?
  kubectl slipway changes --kind certificates.cert-manager.io -n shop`

// ChangesOptions are the flags of commands that show changes from the history of the monitor.
type ChangesOptions struct {
	*command.Program
	monitorFlags
	Output             command.Format
	Since, actor, kind string
	Diff               bool
	Limit              int
}

// NewChangesCommand makes the command changes.
func NewChangesCommand(p *command.Program) *cobra.Command {
	o := &ChangesOptions{Program: p, Output: command.FormatTable}
	cmd := &cobra.Command{
		Use: "changes", Short: "Show what changed, as the monitor has recorded it", Long: changesLong, Example: changesExample,
		Args:              command.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.changes(cmd.Context()) },
	}
	o.Output.AddFlag(cmd)
	o.AddFlags(cmd)
	cmd.Flags().StringVar(&o.Since, "since", "1h", "how far back: 30m, 12h, 7d, or a time such as 2026-11-25T14:00:00Z")
	cmd.Flags().StringVar(&o.actor, "actor", "", "only changes of this user or field manager")
	cmd.Flags().StringVar(&o.kind, "kind", "", "only changes of this kind")
	command.MustComplete(cmd, "kind", p.CompleteKinds)
	cmd.Flags().BoolVar(&o.Diff, "diff", false, "show the fields that changed")
	cmd.Flags().IntVar(&o.Limit, "limit", 200, "how many changes to show: the newest")
	return cmd
}

// sinceParam turns the value of --since into that of the API, which knows no days.
func sinceParam(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return fmt.Sprintf("%dh", n*24), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return text, nil
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return text, nil
	}
	return "", command.UsageErrorf("--since is how long ago, such as 30m, 12h or 7d, or a time such as 2026-11-25T14:00:00Z")
}

func (o *ChangesOptions) changes(ctx context.Context) error {
	since, err := sinceParam(o.Since)
	if err != nil {
		return err
	}
	if o.Limit < 1 || o.Limit > maxFetched {
		return command.UsageErrorf("--limit is from 1 to %d", maxFetched)
	}
	params := url.Values{
		"since": {since}, "actor": {o.actor}, "namespace": {explicitNamespace(o.Program)},
		"fields": {strconv.FormatBool(o.Diff || o.Output != command.FormatTable)},
	}
	if o.kind != "" {
		name, namespaced, err := o.ResourceName(o.kind)
		if err != nil {
			return err
		}
		params.Set("kind", name)
		if !namespaced {
			params.Del("namespace")
		}
	}
	return o.fetch(ctx, "changes", params)
}

// explicitNamespace is the namespace that was named on the command line. That of the kubeconfig is not meant: changes are looked
// for where they are.
func explicitNamespace(p *command.Program) string {
	if p.Flags.Namespace == nil {
		return ""
	}
	return *p.Flags.Namespace
}

// fetch reads changes page by page, and shows them, the oldest first.
func (o *ChangesOptions) fetch(ctx context.Context, endpoint string, params url.Values) error {
	monitor, err := newMonitorClient(ctx, o.Program, &o.monitorFlags)
	if err != nil {
		return err
	}
	defer monitor.stop()
	for name, values := range params {
		if values[0] == "" {
			delete(params, name)
		}
	}
	all := &api.Changes{}
	for {
		params.Set("limit", strconv.Itoa(min(o.Limit-len(all.Changes), 500)))
		page := &api.Changes{}
		if err := monitor.ask(ctx, endpoint, params, page); err != nil {
			return err
		}
		all.View, all.Next = page.View, page.Next
		all.Changes = append(all.Changes, page.Changes...)
		all.Incomplete = append(all.Incomplete, page.Incomplete...)
		if page.Next == "" || len(all.Changes) >= o.Limit {
			break
		}
		params.Set("cursor", page.Next)
	}
	if o.Output != command.FormatTable {
		return o.Output.Print(o.Streams.Out, all)
	}
	return o.printChanges(all, params.Get("namespace"))
}

func (o *ChangesOptions) printChanges(all *api.Changes, namespace string) error {
	printer := command.Painter{Colours: o.Colour}
	lines := &strings.Builder{}
	for i := len(all.Changes) - 1; i >= 0; i-- {
		r := &all.Changes[i].Record
		fmt.Fprintf(lines, "%s %s\n", printer.Colour(command.Faint, r.Time.Local().Format(time.DateTime)), changeTitle(printer, r))
		if o.Diff {
			printer.Fields(lines, r.Fields)
		}
		if r.Reason != "" {
			fmt.Fprintf(lines, "  note: %s\n", command.Printable(r.Reason))
		}
	}
	if len(all.Changes) == 0 {
		fmt.Fprintf(lines, "No changes of what %s.\n", o.mayList(namespace))
	}
	if _, err := io.WriteString(o.Streams.Out, lines.String()); err != nil {
		return err
	}
	return printView(o.Program, &all.View, all.Next != "", all.Incomplete)
}

func changeTitle(printer command.Painter, r *change.Record) string {
	if r.Type == change.Gap {
		return printer.Colour(command.Yellow, "Gap") + " " + command.Printable(r.Kind.GroupResource().String()) + ": changes since " +
			r.Since.Local().Format(time.DateTime) + " may be missing"
	}
	return printer.Title(r)
}

// printView says, beside the output, what of an answer is missing or late.
func printView(p *command.Program, view *api.View, more bool, incomplete []string) error {
	out := &strings.Builder{}
	if more {
		fmt.Fprintln(out, "There are more: use --limit, or a shorter --since.")
	}
	for _, one := range incomplete {
		fmt.Fprintf(out, "Not complete: %s\n", command.Printable(one))
	}
	switch {
	case view.Lag < 0:
		fmt.Fprintln(out, "Of some of these kinds the monitor has heard nothing yet.")
	case view.Lag >= 1:
		fmt.Fprintf(out, "The monitor is up to %s late.\n", time.Duration(view.Lag*float64(time.Second)).Round(time.Second))
	}
	for _, one := range view.Uncovered {
		fmt.Fprintf(out, "Not covered: %s is %s: %s\n", command.Printable(one.Kind), command.Printable(one.State),
			command.Printable(one.Reason))
	}
	if n := view.UncoveredCount - len(view.Uncovered); n > 0 {
		fmt.Fprintf(out, "Not covered: %s\n", text.Count(int64(n), "more kind"))
	}
	_, err := io.WriteString(p.Streams.ErrOut, out.String())
	return err
}

// ObjectHistory shows the changes of one object. It is not asked for in the cluster: it may be gone.
func (o *ChangesOptions) ObjectHistory(ctx context.Context, argument string) error {
	since, err := sinceParam(o.Since)
	if err != nil {
		return err
	}
	if o.Limit < 1 || o.Limit > maxFetched {
		return command.UsageErrorf("--limit is from 1 to %d", maxFetched)
	}
	kind, name, found := strings.Cut(argument, "/")
	if !found {
		kind, name = command.WebAppKind.Singular(), argument
	}
	resource, namespaced, err := o.ResourceName(kind)
	if err != nil {
		return err
	}
	params := url.Values{
		"kind": {resource}, "name": {name}, "since": {since}, "fields": {strconv.FormatBool(o.Diff || o.Output != command.FormatTable)},
	}
	if namespaced {
		namespace, _, err := o.Flags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return fmt.Errorf("find the namespace: %w", err)
		}
		params.Set("namespace", namespace)
	}
	return o.fetch(ctx, "history", params)
}
