// Package desired builds what a BackupRun makes: a Job for each volume and attempt, and a snapshot for it to read. It is
// pure.
package desired
