// Package cluster plays the life of the Helm chart with the real Helm on a cluster with
// pods, under load: from the last release to this one, back, away and back again, limited
// to some namespaces, and with its metrics behind the API server.
package cluster
