// Package apigateway is the controller of APIGateway.
//
// Reconcile loads everything into a scope, checks the routes, applies the children, judges the gateway pods and what they
// say they serve, and writes a status that is computed once from the scope. The pods follow the APIGateway by themselves:
// a route that changes does not wait for this controller. Every file does one of these:
//
//	controller.go  Reconcile, the table of contents, and following the pods
//	budget.go      what is kept in memory of the Gateway API's kinds
//	kind.go        what others ask of the kind: its name, cache, metrics and rights for people
//	setup.go       what is watched, and how an event finds its APIGateway
//	scope.go       what one reconcile knows, and loading it
//	check.go       what the spec alone tells about its routes (pure)
//	claims.go      which hosts the gateway asks for, gets and gives up
//	records.go     whom a change of the record of a host wakes
//	permission.go  for which Gateways HTTPRoutes may be made (pure)
//	children.go    applying and deleting children
//	quota.go       the Secret by which replicas know each other that share rate limits
//	gatewayapi.go  the kinds of the Gateway API, which a cluster need not have
//	exposure.go    whether a Gateway takes the HTTPRoutes (pure)
//	pods.go        judging the pods (pure)
//	stale.go       pods that do not hear the API server (pure)
//	routes.go      which routes are live, from what the pods say (pure)
//	status.go      status from the scope (pure)
//	conditions.go  its conditions (pure)
//	metrics.go     what is measured
//	validate.go    the admission webhook: what the schema cannot refuse
//
// Package desired says what an APIGateway leads to, package replica follows what its
// pods say, package hosts records whose a host is. What other kinds have too is in package kit.
package apigateway
