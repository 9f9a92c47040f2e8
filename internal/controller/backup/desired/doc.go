// Package desired builds what a Backup makes: runs, the Job that removes old copies, and the one that is a drill. It is pure.
package desired
