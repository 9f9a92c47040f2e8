package gatewayapi

import (
	"fmt"
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// logIn is how browsers log in by a policy in a namespace. Policies of other namespaces name other Secrets, so they share no
// sessions. made has the client secret. It is nil for who does not serve.
func logIn(namespace string, in *slipwayv1alpha1.OIDCAuth, made *auth.OIDC) *auth.OIDC {
	shape := auth.OIDC{}
	if made != nil {
		shape = *made
	} else if checked, f := auth.LogIn(in, table.Checks()); f == nil { // one with a fault is refused
		shape = *checked
	}
	shape.Scope = namespace + " " + shape.Scope
	return &shape
}

// refuseUnreturned tells of the rules at which no log-in could end, because the requests with which it ends come to another one. A
// browser would be sent to the provider again and again. They are refused, unless that is so for a narrower host only.
func refuseUnreturned(g *Graph) {
	if !slices.ContainsFunc(g.Rules, func(r Rule) bool { return r.Auth != nil && r.Auth.OIDC != nil }) {
		return
	}
	for _, found := range table.NoReturns(g.Table(nil)) {
		rule := &g.Rules[found.Index]
		if rule.Fault != nil {
			continue
		}
		becomes := "is answered with 500"
		if found.Host == "" {
			rule.Fault = &model.Fault{Reason: found.Reason, Message: found.Message}
			if rule.CORS == nil {
				rule.CORS = &cors.Rule{} // as with what policies refuse
			}
		} else {
			becomes = fmt.Sprintf("lets nobody log in at host %q", found.Host)
		}
		rule.Route.noteUnreturned(g, rule, becomes, found.Message)
		rule.noteUnreturned(becomes, found.Message)
	}
}

// noteUnreturned notes, for each parent, the first rule at which no log-in could end.
func (r *Route) noteUnreturned(g *Graph, rule *Rule, becomes, why string) {
	for _, parent := range r.Parents {
		at := slices.IndexFunc(parent.Listeners, func(i int) bool { return slices.Contains(rule.Listeners, i) })
		if at >= 0 && parent.Refused == nil {
			parent.Refused = &Refusal{ReasonPolicyInvalid, fmt.Sprintf(
				"%s %s at listener %q, because no log-in could end there: %s", r.rules[rule.Place].field, becomes, g.Listeners[parent.Listeners[at]].Key(), why)}
		}
	}
}

// noteUnreturned notes the first rule in its policy. Who writes that need not see routes of other namespaces.
func (r *Rule) noteUnreturned(becomes, why string) {
	p := r.asks
	if p == nil || p.unreturned != nil {
		return
	}
	where := "a rule of a route of another namespace"
	if r.Route.Name.Namespace == p.Name.Namespace {
		where = fmt.Sprintf("%s of %s %q", r.Route.rules[r.Place].field, r.Route.Kind, r.Route.Name.Name)
	}
	p.unreturned = invalidPolicy("spec.%s.%s: so %s %s", r.askedIn, why, where, becomes)
}
