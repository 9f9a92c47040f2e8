package why

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/slipway-dev/slipway/internal/cli/command"
)

// printDetails writes what is shown of a Gateway or a route of the Gateway API below the causes.
func printDetails(out io.Writer, view whyView) error {
	if view.Gateway != nil {
		return printGatewayDetails(out, view.Gateway)
	}
	if len(view.Parents) == 0 {
		return nil
	}
	rows := [][]string{{"PARENT", "LISTENER", "CONTROLLER", "ACCEPTED", "RESOLVED", "LIVE"}}
	for _, p := range view.Parents {
		rows = append(rows, []string{
			p.Parent, cmp.Or(p.Listener, "all"), command.OrNone(p.Controller), command.OrDash(p.Accepted), command.OrDash(p.Resolved),
			command.OrDash(p.Live),
		})
	}
	return printBlocks(out, rows)
}

func printGatewayDetails(out io.Writer, d *gatewayDetails) error {
	class := d.Class
	if d.Controller != "" {
		class += " (" + d.Controller + ")"
	}
	about := [][]string{
		{"Class:", class},
		{"Accepted:", command.OrDash(d.Accepted)},
		{"Programmed:", command.OrDash(d.Programmed)},
		{"Addresses:", command.OrNone(strings.Join(d.Addresses, ", "))},
	}
	listeners := [][]string{{"LISTENER", "PORT", "PROTOCOL", "HOSTNAME", "ROUTES", "PROGRAMMED", "NOT GOOD"}}
	for _, l := range d.Listeners {
		listeners = append(listeners, []string{
			l.Name, fmt.Sprint(l.Port), l.Protocol, cmp.Or(l.Hostname, "*"), fmt.Sprint(l.AttachedRoutes), command.OrDash(l.Programmed),
			strings.Join(l.Conditions, ", "),
		})
	}
	blocks := [][][]string{about, listeners}
	if len(d.Routes) > 0 {
		routes := [][]string{{"ROUTE", "LISTENER", "ACCEPTED", "RESOLVED", "LIVE", "WHY"}}
		for _, p := range d.Routes {
			routes = append(routes, []string{
				p.Route, cmp.Or(p.Listener, "all"), command.OrDash(p.Accepted), command.OrDash(p.Resolved), command.OrDash(p.Live),
				p.Reason,
			})
		}
		blocks = append(blocks, routes)
	}
	if err := printBlocks(out, blocks...); err != nil || d.RoutesLeft == 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "Not shown: %d more.\n", d.RoutesLeft)
	return err
}

// printBlocks writes tables, each after an empty line.
func printBlocks(out io.Writer, blocks ...[][]string) error {
	for _, rows := range blocks {
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
		if err := command.Table(out, rows); err != nil {
			return err
		}
	}
	return nil
}
