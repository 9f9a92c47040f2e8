// Package monitorbench measures slipway-monitor as a process of its own, against a real API server or a replayed watch.
//
//   - main_test.go: what runs, how much, and the table
//   - child_test.go: the monitor that is measured, with figures of its heap
//   - process_test.go: a process, and what the system says of it
//   - proxy_test.go: the way to a server, which can be cut
//   - object_test.go: objects of 2 KB
//   - replay_test.go: a server that serves lists and watches of kinds from memory
//   - server_test.go: a real API server, and who writes to it
//   - plain_test.go: the watcher that tutorials show, for comparison
//   - the other files: a part each
package monitorbench
