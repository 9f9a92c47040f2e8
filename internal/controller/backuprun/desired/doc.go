// Package desired builds what a BackupRun makes: a Job for each volume and attempt, and a snapshot for it to read. Of a run
// by hand it says who owns it. It is pure.
package desired
