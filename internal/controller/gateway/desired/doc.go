// Package desired says what a Gateway leads to in the cluster: complete apply
// configurations with deterministic names. It is pure: the same inputs give the same
// objects, and nothing is read but the inputs.
//
//	children.go    Deployment, Service, autoscaler, disruption budget, account, rights, and the Secret with copies
//	desired.go     inputs, names, labels and ports that all children have in common
//	released.go    marking children of a Gateway that another controller serves now
//	parameters.go  what GatewayParameters ask for
package desired
