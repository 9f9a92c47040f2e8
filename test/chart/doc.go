// Package chart proves the Helm chart with the real Helm: what it renders (build tag helm),
// and what installing, upgrading, rolling back and uninstalling do to a cluster in which
// applications run (build tag chart).
package chart
