// Package backup is the controller of Backups: it makes a BackupRun for each time of the schedule, keeps the password and the
// ID of the repository, has old copies removed, and says how new the newest verified copy is.
//
// It copies nothing itself: that is what BackupRuns do (package backuprun). What it must remember stands in status: the last
// slot, so that none is run twice and missed ones are counted, and the ID of the repository, so that no other one is ever
// taken for it.
//
//	controller.go  Reconcile
//	budget.go      what is kept in memory of what Backups name
//	kind.go        what others ask of the kind: its name, cache, metrics and rights for people
//	setup.go       watches, indexes
//	scope.go       what one reconcile knows
//	validate.go    what the schema cannot check (pure), and the webhook that refuses it
//	source.go      which copies count, and how new the newest one is
//	references.go  what a Backup names: whether there is such a thing
//	containers.go  the containers that a Backup names: whether the workload has them
//	plan.go        when runs are due, and what the schedule promises (pure)
//	key.go         the Secret with the password, and the ID of the repository in it
//	children.go    making runs and Jobs, and deleting what is history
//	keep.go        removing old copies
//	delete.go      deleting the repository with the Backup
//	drill.go       drills: restoring the newest copy, and comparing it with the source
//	drillclaims.go the volumes that a drill copies, and as whom their pods run
//	drillplan.go   when drills are due (pure)
//	status.go      the status
//	metrics.go     the metrics
//	desired        the runs and the Jobs, those of drills among them
package backup
