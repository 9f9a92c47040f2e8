// Package chart proves what the Helm chart renders, with the real Helm. What installing and
// upgrading it does to a cluster is proved by the package server.
package chart
