//go:build scale

package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/slipway-dev/slipway/internal/operator"
)

// server is a control plane of etcd and an API server, empty at first.
type server struct {
	config     *rest.Config
	kubeconfig string
	client     client.WithWatch
}

// fsync reports whether etcd waits for the disk (BENCH_FSYNC=1). Without it a run
// measures programs, not the disk of the machine.
func fsync() bool { return os.Getenv("BENCH_FSYNC") != "" }

func startServer(t *testing.T) *server {
	t.Helper()
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd")},
		ErrorIfCRDPathMissing: true,
	}
	api := env.ControlPlane.GetAPIServer().Configure()
	// Room for more Services than the 254 of the default.
	api.Set("service-cluster-ip-range", "10.96.0.0/12")
	if fsync() {
		env.ControlPlane.Etcd = &envtest.Etcd{}
		env.ControlPlane.Etcd.Configure().Disable("unsafe-no-fsync")
	}
	config, err := env.Start()
	if err != nil {
		t.Fatalf("start the API server (is KUBEBUILDER_ASSETS set? see docs/dev/testing.md): %v", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	config.QPS = -1
	direct, err := client.NewWithWatch(config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operator.DefaultNamespace}}
	if err := direct.Create(t.Context(), own); err != nil {
		t.Fatalf("make the operator's namespace: %v", err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, env.KubeConfig, 0o600); err != nil {
		t.Fatalf("write the kubeconfig: %v", err)
	}
	return &server{config: config, kubeconfig: path, client: direct}
}

// namespaces makes n namespaces.
func (s *server) namespaces(t *testing.T, prefix string, n int) []string {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names[i]}}
		if err := s.client.Create(t.Context(), namespace); err != nil {
			t.Fatalf("make a namespace: %v", err)
		}
	}
	return names
}
