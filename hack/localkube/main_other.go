//go:build !linux

// Command localkube runs a real single-node Kubernetes on this machine. That
// needs Linux; elsewhere it only says what works instead.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "localkube: a local cluster needs Linux, and this is %s. "+
		"Any other cluster (kind, minikube, a remote one) works instead: point KUBECONFIG at it and use `make up CLUSTER=existing`. "+
		"For the API server tests, point KUBEBUILDER_ASSETS at the output of setup-envtest.\n", runtime.GOOS)
	os.Exit(1)
}
