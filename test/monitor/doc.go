// Package monitor lets slipway-monitor record what a seeded generator does to a real API server, while it is killed, cut off, and
// told that history is forgotten, and compares the store with what truly happened.
//
//   - oracle_test.go: the runs
//   - generator_test.go: what is done, and what is remembered of it
//   - process_test.go: the program, and the way between it and the API server
//   - disk_test.go: a disk that is full
//   - compare_test.go: what is missing, twice, or in the wrong order
package monitor
