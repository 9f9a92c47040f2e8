// Package operator assembles the manager that the controllers run in: what is
// cached and why, leader election with a warm standby, probes, metrics, and the
// registration of every controller.
package operator
