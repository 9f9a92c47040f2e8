// Package mover is what the operator and the program slipway-backup have in common: the configuration that one writes and
// the other reads, the result that goes the other way, and the Job that runs the program. It is pure.
//
//	place.go        where a repository is, and what is backed up, as users write it
//	config.go       the configuration of slipway-backup
//	result.go       what slipway-backup says in the end, and on the way
//	use.go          how pods use a volume, and as which user
//	job.go          the Job
//	dump.go         the containers of a dump, and as which user they run
//	drill.go        what a drill has of its own: the scratch, and the user's command
//	observe.go      what a Job has come to
//	retry.go        which failures are worth another attempt
//	mismatch.go     in what the copy that was made and the one that was verified differ
//	staging.go      what follows while a snapshot of a volume is taken
//	runprogress.go  what follows from that: attempts, waiting, deadlines
//	pod.go          what a user says of the pods
//	names.go        how messages name the objects and fields that a Job uses
package mover
