// Package server takes the Helm chart through all its states with the real Helm, against a
// real API server: from the last release to this one, back, uninstalled and installed again.
// There are no pods.
package server
