// Package apigateway is the front end for APIGateway: it makes a table from the routes of a spec
// and from what they name. It is pure, as package table is.
//
//	routes.go    Compile: from the spec of an APIGateway to a table
//	action.go    header edits, rewrite, redirect and own answer of a route
//	settings.go  the settings of a route that features read: package feature/list has them
//	policy.go    timeouts and retries of a route
//	health.go    health checks of backends
//	limits.go    what spec.policies says of backends
//	names.go     what a spec refers to: Services, Secrets and ConfigMaps
//	proxies.go   which proxies are trusted
//	streams.go   streams: connections that are not read as HTTP
//	tls.go       TLS to backends, and certificates of clients
package apigateway
