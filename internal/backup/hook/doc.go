// Package hook decides about the hooks of a Backup: in which pods they run, whether a pod allows the command, and what comes
// after what. It is pure: it takes pods, states and results, and returns what is to be done.
//
//	permit.go  the annotation of a pod that allows commands
//	target.go  the pods and the container
//	progress.go  the states, and how one follows from another
package hook
