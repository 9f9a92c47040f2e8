// Package transfer is what the controllers that have data moved need beside the rest of the kit: a look at the volume, at the
// Secrets that a pod mounts, and at the log of a pod. What follows from that is decided in package mover.
//
//	transfer.go    a claim and the pods that use it, and the log of a pod
//	jobs.go        what a Job that moves data has come to
//	pods.go        reading pods past the cache
//	references.go  whether the Secrets and ConfigMaps that a pod needs are there
//	status.go      what status says of it
package transfer
