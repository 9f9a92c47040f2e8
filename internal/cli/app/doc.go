// Package app has the commands about one WebApp: status, history and rollback. history shows changes of other objects as
// package monitor gets them.
//
//	status.go         the command status
//	status_view.go    what status shows (pure)
//	status_watch.go   following a rollout to its end, for status and rollback
//	history.go        the command history
//	history_view.go   what history shows (pure)
//	revision.go       revisions as the operator stored them, and what differs between two
//	rollback.go       the command rollback, and the one write of a spec
//	rollback_plan.go  which revision is meant, and what a rollback to it writes (pure)
package app
