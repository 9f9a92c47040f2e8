package gatewayapi

import (
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Table is what a table is made from, with the Services as the pods see them. Listeners that are not
// valid have no rules. They keep their requests from other listeners, unless a valid one has the
// same port and hostname. A listener of a ListenerSet whose place another one has keeps none.
func (g *Graph) Table(services map[model.ServiceName]model.Service) table.Input {
	in := table.Input{Services: services, Settings: g.Settings}
	at := make([]int, len(g.Listeners)) // of the listeners, in the table
	taken := map[table.ListenerPlace]bool{}
	for _, valid := range []bool{true, false} {
		for i, l := range g.Listeners {
			if l.Valid != valid || l.barred {
				continue
			}
			made := table.Listener{Port: l.Port, Secure: l.Secure(), Hostname: l.Hostname, Transport: l.transport()}
			if !valid && taken[made.Place()] {
				continue
			}
			taken[made.Place()] = true
			made.Name = l.Key()
			at[i] = len(in.Listeners)
			in.Listeners = append(in.Listeners, made)
		}
	}
	for _, r := range g.Rules {
		made := r.Rule
		made.Listeners = make([]int, 0, len(r.Listeners))
		for _, i := range r.Listeners {
			made.Listeners = append(made.Listeners, at[i])
		}
		in.Rules = append(in.Rules, made)
	}
	return in
}
