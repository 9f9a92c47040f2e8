// Package cluster takes the Helm chart through all its states with the real Helm, on a cluster
// with pods, under load: from the last release to this one, back, uninstalled and installed
// again, limited to some namespaces, and with its metrics behind the API server.
package cluster
