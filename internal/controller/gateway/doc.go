// Package gateway is the controller of the Gateway API: GatewayClasses and Gateways of Slipway, and what the status of routes
// says of them.
//
// Reconcile loads a Gateway of ours with everything that it depends on, has package gatewayapi compute what it serves, applies the
// children, asks the pods what they serve, and writes the statuses of the Gateway, of its ListenerSets, of its routes and of their
// policies. The pods compute the same by themselves: a route that changes does not wait for this controller. Every file does one of
// these:
//
//	controller.go  Reconcile, the table of contents, and following the pods
//	budget.go      what is kept in memory of the Gateway API
//	kind.go        what others ask of the kind: its name, cache, metrics and rights for people
//	setup.go       what is watched
//	mapper.go      how an event finds its Gateways
//	kinds.go       the kinds of the Gateway API, which a cluster need not have
//	class.go       GatewayClasses, and which Gateways are ours
//	features.go    what is supported, as classes tell
//	parameters.go  the parameters of classes and Gateways
//	scope.go       what one reconcile knows, and loading it
//	routes.go      the kinds of routes, and what they have in common
//	objects.go     loading what listeners and routes refer to
//	secrets.go     certificates, and the Secret with the copies
//	bundles.go     authorities that are trusted, and their copies
//	grants.go      confirming that the cache shows grants as they are
//	children.go    applying children
//	released.go    what a class has left that belongs to another controller now
//	rights.go      whom the bindings name by which pods read the Gateway API
//	pods.go        what the pods serve (pure)
//	rollout.go     what keeps pods from serving (pure)
//	conditions.go  types and reasons of conditions that the Gateway API does not have
//	status.go      the status of a Gateway from the scope (pure)
//	targets.go     targets of GatewayPolicies that no Gateway of ours has
//	parents.go     the entries in the status of a route (pure)
//	policies.go    BackendTLSPolicies: loading them, and the entries in their status
//	gateway_policies.go  GatewayPolicies: loading them, and their status
//	credentials.go  whom GatewayPolicies let in: the Secrets that say so, and their copies
//	shared.go      the secrets that pods have in common, for sessions and for limits
//	sets.go        ListenerSets: loading them, and their status
//	orphans.go     retracting the statuses of ListenerSets that no Gateway has
//	write.go       which statuses are written, and when
//	changes.go     writing the statuses of routes and GatewayPolicies, of which there may be thousands
//	pace.go        looks at a Gateway that changes all the time
//	metrics.go     what is measured
//
// Package desired says what a Gateway leads to. What other kinds have too is in package kit.
package gateway
