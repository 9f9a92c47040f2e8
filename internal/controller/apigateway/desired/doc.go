// Package desired says what an APIGateway leads to: whole apply configurations, computed
// from inputs alone. It imports no client, no clock and no logger.
//
// Whatever is stated here is owned: it is restored when somebody changes it. The pod
// template has nothing of the routes, certificates and Secrets (but for a port below 1024): the gateways watch
// these themselves, and a change of them must not restart a pod.
package desired
