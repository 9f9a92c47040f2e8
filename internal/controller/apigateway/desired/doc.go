// Package desired says what an APIGateway leads to: whole apply configurations, computed
// from inputs alone. It imports no client, no clock and no logger.
//
// Whatever is stated here is owned: it is restored when somebody changes it. The pod
// template has nothing of the routes, certificates and Secrets (but for a port below 1024): the gateways watch
// these themselves, and a change of them must not restart a pod.
//
//	access.go      ServiceAccount, Role and RoleBinding of the pods, and the Secret that replicas share
//	children.go    Service, HorizontalPodAutoscaler and PodDisruptionBudget
//	deployment.go  the Deployment
//	desired.go     inputs, names, labels and ports that all children have in common
//	expose.go      Ingress and HTTPRoutes that lead to the gateway
//	names.go       names of the Secrets and ConfigMaps that the pods read
package desired
