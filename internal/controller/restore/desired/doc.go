// Package desired builds what a Restore makes: the volume, where it asks for a new one, and a Job for each attempt. It is pure.
package desired
