// Package restore is the controller of Restores: it brings a copy of a volume back, once.
//
// A Restore finds its repository by a Backup, by a BackupRun, or by itself. It makes the volume where it is asked to, and a
// Job that writes it. An attempt that failed for a reason that may pass is followed by another one, which goes on with what
// the first has written: slipway-backup marks the volume, and no other restore is taken for this one.
//
//	controller.go  Reconcile
//	kind.go        what others ask of the kind: its name, cache, metrics and rights for people
//	setup.go       watches, indexes
//	scope.go       what one reconcile knows
//	origin.go      where the copy is
//	references.go  the classes that a Restore names, and what tells that something it names comes
//	target.go      the volume that is written, and whose it is
//	children.go    making and deleting Jobs
//	judge.go       what the present attempt has come to, and what follows
//	status.go      the status
//	metrics.go     the metrics
//	desired        the volume and the Job
package restore
