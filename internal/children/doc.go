// Package children builds what several kinds have as children and state alike: what stands
// around a Deployment. It is pure; what is special to a kind is in its package desired.
//
//	children.go  owner, names and labels, the autoscaler, and the disruption budget
//	pods.go      how pods are spread, bounded and secured
//	env.go       environment variables
//	envorder.go  variables that refer to each other, put in an order in which each can be set
package children
