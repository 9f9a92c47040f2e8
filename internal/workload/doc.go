// Package workload judges a Deployment with its pods and its autoscaler: does what was asked for run, what is wrong with it,
// and what does it wait for. It is pure: objects in, verdicts out. It imports no client, no clock and no logger.
//
// What a rollout replaces is judged by nobody who does not ask for it: what is wrong with those pods is no news of the spec
// that status speaks of.
//
//	workload.go  Workload: a Deployment, its pods and its autoscaler
//	verdict.go   what is wrong with them
//	members.go   which ReplicaSets and pods belong to a Deployment
package workload
