// Package monitor has the commands that ask the monitor: changes, health, coverage and ui.
//
//	monitor.go   how the monitor is reached, with whose token, and asking it
//	tunnel.go    a connection to its pod, as kubectl port-forward makes one
//	changes.go   the command changes, and the changes of one object
//	health.go    the commands health and coverage
//	ui.go        the command ui
//	ui_proxy.go  the page of the monitor for one browser on this machine
package monitor
