package graph

import (
	"fmt"
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/routes"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// logIn is how browsers log in by a policy in a namespace. Policies of other namespaces name other Secrets, so they share no
// sessions. made has the client secret. It is nil for who does not serve.
func logIn(namespace string, in *slipwayv1alpha1.OIDCAuth, made *table.OIDC) *table.OIDC {
	shape := table.OIDC{}
	if made != nil {
		shape = *made
	} else if checked, f := routes.LogIn(in); f == nil { // one with a fault is refused
		shape = *checked
	}
	shape.Scope = namespace + " " + shape.Scope
	return &shape
}

// refuseUnreturned refuses the rules at which no log-in could end, because the requests with which it ends come to another one.
// A browser would be sent to the provider again and again.
func refuseUnreturned(g *Graph) {
	if !slices.ContainsFunc(g.Rules, func(r Rule) bool { return r.Auth != nil && r.Auth.OIDC != nil }) {
		return
	}
	for _, p := range table.Unreturned(g.Table(nil)) {
		rule := &g.Rules[p.Index]
		if rule.Fault != nil {
			continue
		}
		rule.Fault = &table.Fault{Reason: p.Reason, Message: p.Message}
		if rule.CORS == nil {
			rule.CORS = &table.CORSRule{} // as with what policies refuse
		}
		rule.Route.noteUnreturned(g, rule)
	}
}

// noteUnreturned notes, for each parent, the first rule at which no log-in could end.
func (r *Route) noteUnreturned(g *Graph, rule *Rule) {
	for _, parent := range r.Parents {
		at := slices.IndexFunc(parent.Listeners, func(i int) bool { return slices.Contains(rule.Listeners, i) })
		if at >= 0 && parent.Refused == nil {
			parent.Refused = &Refusal{ReasonPolicyInvalid, fmt.Sprintf(
				"%s is answered with 500 at listener %q, because no log-in could end there: %s", r.rules[rule.Place].field, g.Listeners[parent.Listeners[at]].Key(), rule.Fault.Message)}
		}
	}
}
