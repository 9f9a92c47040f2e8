// Package scale measures the operator with thousands of objects against a real API
// server: requests, time and memory. `make bench-webapp` runs it and prints a table;
// docs/performance.md says how to read it.
package scale
