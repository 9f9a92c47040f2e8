package serve

import (
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/jwks"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/oidc"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Table is what auth needs of a table.
type Table struct {
	engine *Engine
	keys   map[string]*jwks.Source // by address
	logins map[*auth.OIDC]*login
	asking map[string]bool // names of routes that ask a Service
}

// Table returns that of a table whose routes are added next.
func (n *Engine) Table() *Table {
	return &Table{engine: n, keys: map[string]*jwks.Source{}, logins: map[*auth.OIDC]*login{}, asking: map[string]bool{}}
}

// Add begins to fetch what a route needs. A route without a log-in that can work lets nobody in.
func (t *Table) Add(route string, policy *auth.Policy) {
	if policy.External != nil {
		t.asking[route] = true
	}
	if policy.JWT != nil && policy.JWT.JWKSURL != "" {
		t.keys[policy.JWT.JWKSURL] = t.engine.keys.Source(policy.JWT.JWKSURL)
	}
	if policy.OIDC != nil && t.logins[policy.OIDC] == nil {
		t.addLogin(route, policy.OIDC)
	}
}

func (t *Table) addLogin(route string, policy *auth.OIDC) {
	config := oidc.Config{
		Gateway: t.engine.identity, Scope: policy.Scope, Issuer: policy.Issuer, ClientID: policy.ClientID, Scopes: policy.Scopes,
		RedirectPath: policy.RedirectPath, AfterLogout: policy.AfterLogout, Length: policy.Length,
		KeepAccessToken: policy.Forward == auth.ForwardAccessToken, KeepIDToken: policy.Forward == auth.ForwardIDToken,
	}
	if config.Scope == "" { // it shares sessions with none
		config.Scope = "route " + route
	}
	for _, secret := range policy.Secrets {
		config.Secrets = append(config.Secrets, string(secret))
	}
	if client, err := oidc.NewClient(config, &t.engine.traffic); err == nil { // the table has checked the secrets
		t.logins[policy] = &login{client: client, source: t.engine.providers.Source(policy.Issuer)}
	}
}

// Of returns the step of a route that was added. service is what policy.External asks, and protocol how. mostBody bounds the bodies of
// the route, unless it is 0.
func (t *Table) Of(policy *auth.Policy, mostBody int64, service *upstream.Service, protocol upstream.Protocol) *Step {
	s := &Step{Policy: policy, engine: t.engine, service: service, protocol: protocol}
	if policy.External != nil {
		if s.most = policy.External.MaxBody; mostBody > 0 {
			s.most = min(s.most, mostBody)
		}
	}
	if policy.JWT != nil {
		s.keys = t.keys[policy.JWT.JWKSURL]
	}
	if policy.OIDC != nil {
		s.login = t.logins[policy.OIDC]
	}
	return s
}

// Guard returns what holds on every route.
func (t *Table) Guard() Guard {
	if t == nil { // there is no table yet
		return Guard{}
	}
	return Guard{logins: len(t.logins) > 0}
}

// MissingKeys returns the addresses from which no public keys could be fetched yet. Routes
// that need these keys let no request through. The addresses of providers are among them.
func (t *Table) MissingKeys() map[string]bool {
	missing := map[string]bool{}
	for address, source := range t.keys {
		if source.Missing() {
			missing[address] = true
		}
	}
	for policy, login := range t.logins {
		if login.source.Missing() {
			missing[auth.ProviderAddress(policy.Issuer)] = true
		}
	}
	return missing
}

// Keep drops what no route of the table needs, and what went on with it.
func (t *Table) Keep() {
	used, clients := map[string]bool{}, []*oidc.Client(nil)
	for policy, login := range t.logins {
		used[policy.Issuer] = true
		clients = append(clients, login.client)
	}
	t.engine.traffic.Keep(clients)
	t.engine.providers.Keep(func(issuer string) bool { return used[issuer] })
	t.engine.keys.Keep(func(address string) bool { return t.keys[address] != nil })
	t.engine.metrics.external.Keep(t.asking)
}
