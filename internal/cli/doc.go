// Package cli is kubectl slipway. Each command has a file of its own name that talks
// to the API server; what it decides and prints is in pure functions beside it, which
// take what was loaded and return what to show.
package cli
