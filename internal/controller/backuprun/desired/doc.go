// Package desired builds what a BackupRun makes: a Job for each volume and attempt. It is pure.
package desired
