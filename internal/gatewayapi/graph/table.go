package graph

import (
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Table is what a table is made from, with the Services as the pods see them. Listeners keep their
// indexes; those that are not valid have no rules.
func (g *Graph) Table(services map[table.ServiceName]table.Service) table.Input {
	in := table.Input{Services: services, Settings: g.Settings}
	for _, l := range g.Listeners {
		in.Listeners = append(in.Listeners, table.Listener{Name: string(l.Name), Port: l.Port, Secure: l.Secure(), Hostname: l.Hostname})
	}
	for _, r := range g.Rules {
		in.Rules = append(in.Rules, r.Rule)
	}
	return in
}
