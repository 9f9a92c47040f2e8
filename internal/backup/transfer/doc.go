// Package transfer is what the controllers that have data moved need beside the rest of the kit: a look at the volume, at the
// Secrets that a pod mounts, and at the log of a pod. What follows from that is decided in package mover.
package transfer
