//go:build e2e

// Package e2e proves what Slipway does, on real pods in a real cluster. It uses the cluster that KUBECONFIG names, with the
// operator installed; hack/test-e2e.sh prepares both.
//
// Tests that disturb the operator itself, or measure without company, are not parallel: they run before all others.
package e2e

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/slipway-dev/slipway/internal/operator"
)

// cluster is what the tests are told about the cluster. TestMain fills it.
var cluster struct {
	// Client reads and writes as the administrator, without a cache.
	client.WithWatch

	// config is the administrator's access.
	config *rest.Config
	// kubectl is the program to use.
	kubectl string
	// demoImage can be asked for every kind of failure; see hack/demo.
	demoImage string
	// local says that the cluster is one of hack/localkube, whose node pulls from
	// registries on this machine.
	local bool
}

func TestMain(m *testing.M) {
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func connect() error {
	ctrl.SetLogger(zap.New())
	for variable, into := range map[string]*string{"KUBECTL": &cluster.kubectl, "DEMO_IMAGE": &cluster.demoImage} {
		if *into = os.Getenv(variable); *into == "" {
			return fmt.Errorf("%s is not set; run them with make test-e2e", variable)
		}
	}
	cluster.local = os.Getenv("CLUSTER") != "existing"
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("read KUBECONFIG: %w", err)
	}
	config.QPS = -1
	cluster.config = config
	cluster.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: operator.Scheme()})
	return err
}
