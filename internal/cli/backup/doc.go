// Package backup has the commands backup (now, ls, drill) and restore.
//
//	backup.go         the commands backup and backup now
//	drill.go          the command backup drill
//	list.go           the command backup ls, and what it shows
//	restore.go        the command restore
//	transfer.go       what a BackupRun and a Restore have in common while they run (pure)
//	transfer_wait.go  waiting for one, and showing its progress
package backup
