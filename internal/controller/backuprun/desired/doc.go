// Package desired builds what a BackupRun makes: a Job for each volume and attempt, and a snapshot for it to read. Of a run
// by hand it says who owns it. It is pure.
//
//	desired.go  the Job that copies a volume, and its names
//	dump.go     the container that runs the command of spec.dump
//	staging.go  the snapshot of a volume, and the claim that is made from it
package desired
