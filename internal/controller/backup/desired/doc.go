// Package desired builds what a Backup makes: runs, and the Job that removes old copies. It is pure.
package desired
