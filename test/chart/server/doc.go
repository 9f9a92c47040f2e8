// Package server plays the life of the Helm chart with the real Helm against a real API
// server: from the last release to this one, back, away and back again. There are no pods.
package server
