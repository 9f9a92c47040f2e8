// Package apigateway is the controller of APIGateway.
//
// One pass of Reconcile loads everything into a scope, checks the routes, applies the
// children, judges the gateway pods and what they say they serve, and writes a status
// that is computed once from the scope. The pods follow the APIGateway by themselves:
// nothing here is on the way of a route that changes. Every file but the packages beside
// it does one of these:
//
//	controller.go  Reconcile, the table of contents, and writing status
//	setup.go       what is watched, and how an event finds its APIGateway
//	scope.go       what one pass knows, and loading it
//	check.go       what the spec alone tells about its routes (pure)
//	claims.go      which hosts belong to which APIGateway
//	children.go    applying and deleting children
//	gatewayapi.go  the kinds of the Gateway API, which a cluster need not have
//	pods.go        judging the pods (pure)
//	routes.go      which routes are live, from what the pods say (pure)
//	status.go      status from the scope (pure)
//	conditions.go  its conditions (pure)
//	metrics.go     what is measured
//
// Package desired says what an APIGateway leads to, package replica follows what its
// pods say.
package apigateway
