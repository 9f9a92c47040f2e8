// Package cli is kubectl slipway. Each command has a file with its name, which talks to the
// API server. The decisions and the output are in pure functions beside it: they take what
// was loaded and return what to show.
package cli
