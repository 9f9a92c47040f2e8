// Command example prints a line whenever a WebApp appears, changes its state or
// goes away. It shows how a program follows the Slipway API with the generated
// clients: an informer keeps a local copy, a work queue holds the names of what
// changed, and a worker reads the present state from a lister.
//
//	go run ./pkg/client/example --kubeconfig ~/.kube/config --namespace default
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-dev/slipway/pkg/client/clientset/versioned"
)

func main() {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flag.StringVar(&rules.ExplicitPath, "kubeconfig", "", "path to a kubeconfig; default: $KUBECONFIG, then ~/.kube/config")
	namespace := flag.String("namespace", "", "namespace to watch; default: all")
	flag.Parse()

	//nolint:forbidigo // a program begins its context here
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, rules, *namespace); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rules *clientcmd.ClientConfigLoadingRules, namespace string) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("load the kubeconfig: %w", err)
	}
	clientset, err := versioned.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return newFollower(clientset, namespace, os.Stdout).run(ctx)
}
