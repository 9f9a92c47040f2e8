// Package backuprun is the controller of BackupRuns: it makes a verified copy of every volume of a Backup, or says why there
// is none.
//
// A run goes from volume to volume, in the order of status.volumes. For each it makes a Job with two steps: snapshot, and
// verify in another process. Only the result that the second one gives itself makes the copy count. An attempt that failed
// for a reason that may pass is followed by another one, which finds what the first has stored. What is known stands in
// status, so an operator that begins anew goes on where the last one ended.
//
//	controller.go  Reconcile
//	kind.go        what others ask of the kind: its name, cache, metrics and rights for people
//	setup.go       watches, indexes
//	scope.go       what one reconcile knows
//	owner.go       whose run it is: one by hand gets its Backup as owner
//	source.go      which volumes there are, who uses them, and as which user
//	dump.go        the command whose output is copied instead
//	admission.go   which runs may have a pod: the limit of runs at a time
//	queue.go       the places, and who waits for one (pure)
//	children.go    making and deleting Jobs
//	hold.go        the order: hooks hold the workload, then a snapshot is taken, then a Job reads
//	staging.go     snapshots of volumes: what a Job reads instead of the volume itself
//	judge.go       what the present attempt has come to, and what follows
//	hooks.go       the hooks: beginning them, and what their end leads to
//	hookcall.go    running a hook in a pod
//	captured.go    when the workload need not be held any more
//	progress.go    how far a Job is, by its log
//	status.go      the status
//	metrics.go     the metrics
//	desired        the Job
package backuprun
