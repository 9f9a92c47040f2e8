// Package apigateway is the front end for APIGateway: it makes a table from the routes of a spec
// and from what they name. It is pure, as package table is.
//
//	routes.go       Compile: from the spec of an APIGateway to a table
//	action.go       header edits, CORS and addresses of a route
//	policy.go       timeouts, retries, rate limits and the other settings of a route
//	protect.go      settings of a GatewayPolicy, for a rule of another front end
//	auth.go         how clients authenticate, with the contents of Secrets
//	auth_oidc.go    log-ins at a provider
//	affinity.go     to which endpoint the requests of a client go
//	cache.go        which responses are kept
//	compression.go  which responses are compressed
//	backends.go     settings of backends, of a GatewayPolicy
//	health.go       health checks of backends
//	limits.go       what spec.policies says of backends
//	names.go        what a spec refers to: Services, Secrets and ConfigMaps
//	proxies.go      which proxies are trusted, and from where clients are let in
//	streams.go      streams: connections that are not read as HTTP
//	tls.go          TLS to backends, and certificates of clients
package apigateway
