// Package livecluster gives tests a real cluster with the operator installed, which a
// script has prepared (hack/test-e2e.sh): access to it, the operator's pods and which of
// them leads, and the means to end processes without a warning.
//
//	livecluster.go  the cluster that a script has prepared
//	operator.go     the operator's pods, and which of them leads
//	metrics.go      reading the operator's metrics
//	http.go         HTTP requests to pods and Services
//	kill.go         ending or stopping processes without a warning
//	cut.go          cutting a pod off from the API server
package livecluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/slipway-dev/slipway/internal/operator"
)

// tick is the time between two looks of Eventually.
const tick = 100 * time.Millisecond

// Cluster is what the tests are told about the cluster.
type Cluster struct {
	// Client reads and writes as the administrator, without a cache.
	client.WithWatch

	// Config is the administrator's access.
	Config *rest.Config
	// Kubectl is the program to use.
	Kubectl string
	// DemoImage can be asked for every kind of failure; see hack/demo.
	DemoImage string
	// S3Image is that of an S3 server, for config/samples/s3.yaml.
	S3Image string
	// Local says that the cluster is one of hack/localkube: it runs on this machine, and
	// its node pulls from registries on this machine.
	Local bool

	// folder is where hack/localkube keeps the state of a local cluster.
	folder string
}

// Connect reads what the script has put into the environment.
func Connect() (*Cluster, error) {
	ctrl.SetLogger(zap.New())
	c := &Cluster{Local: os.Getenv("CLUSTER") != "existing"}
	c.S3Image = os.Getenv("S3_IMAGE")
	for variable, into := range map[string]*string{"KUBECTL": &c.Kubectl, "DEMO_IMAGE": &c.DemoImage} {
		if *into = os.Getenv(variable); *into == "" {
			return nil, fmt.Errorf("%s is not set; run the tests with hack/test-e2e.sh", variable)
		}
	}
	kubeconfig := os.Getenv("KUBECONFIG")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read KUBECONFIG: %w", err)
	}
	config.QPS = -1
	c.Config, c.folder = config, filepath.Dir(kubeconfig)
	c.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: operator.Scheme()})
	return c, err
}

// OtherNameOf names the same image differently, where its name is short for that of a
// well-known registry.
func OtherNameOf(image string) string {
	if strings.Contains(image, "/") {
		return image
	}
	return "docker.io/library/" + image
}

// Staying returns the pods that are not on their way out.
func Staying(pods []corev1.Pod) []corev1.Pod {
	var staying []corev1.Pod
	for i := range pods {
		if pods[i].DeletionTimestamp.IsZero() {
			staying = append(staying, pods[i])
		}
	}
	return staying
}

// Restarts counts how often the containers of the pods were restarted.
func Restarts(pods []corev1.Pod) (total int32) {
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			total += status.RestartCount
		}
	}
	return total
}

// Eventually waits until check returns nil. After the limit, or when the context ends, it
// returns check's last answer.
func Eventually(ctx context.Context, limit time.Duration, check func() error) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ended while still: %w", err)
		case <-deadline.C:
			return fmt.Errorf("after %v still: %w", limit, err)
		case <-ticker.C:
		}
	}
}
