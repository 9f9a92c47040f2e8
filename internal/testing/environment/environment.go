// Package environment gives tests a real API server and etcd, the operator on top of
// them, and a way to wait for conditions. There are no nodes and no controllers of
// Kubernetes itself; package workload plays their part.
//
//	environment.go  the API server, the operator on top of it, and waiting for conditions
//	definitions.go  installing CustomResourceDefinitions
//	compact.go      making etcd forget its history
//	webhook.go      installing the webhooks, and an operator that serves them
package environment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/operator"
)

// patience is how long Eventually waits. What the tests wait for takes milliseconds;
// the rest is room for a busy machine.
const patience = 30 * time.Second

// Environment is a running API server.
type Environment struct {
	// Config is an administrator's access.
	Config *rest.Config
	// Client reads and writes as the administrator, without a cache.
	Client client.Client

	server      *envtest.Environment
	folders     folders
	definitions definitions
}

// Main runs a package's tests, a *testing.M or something around it, in an environment
// of their own; call it from TestMain.
func Main(m interface{ Run() int }, into **Environment) {
	env, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	*into = env
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// Start starts an environment, for tests that need one besides that of their package. Stop
// it in the end.
func Start() (*Environment, error) {
	if os.Getenv("SLIPWAY_TEST_LOG") != "" {
		ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	} else {
		ctrl.SetLogger(zap.New(zap.WriteTo(discard{})))
	}
	server, config, err := startServer()
	if err != nil {
		return nil, fmt.Errorf("start the API server (is KUBEBUILDER_ASSETS set? see docs/dev/testing.md): %w", err)
	}
	config.QPS = -1
	// Tests make definitions, too; the operator does not know them.
	scheme := operator.Scheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Environment{Config: config, Client: direct, server: server}, nil
}

// Stop ends the API server and etcd.
func (e *Environment) Stop() error {
	if err := e.server.Stop(); err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	return nil
}

// InstallModule installs CustomResourceDefinitions out of files of a Go module that the
// main module requires.
func (e *Environment) InstallModule(ctx context.Context, module string, files ...string) error {
	return e.InstallModuleOf(ctx, ".", module, files...)
}

// InstallModuleOf is InstallModule for a module that another one requires: the one in a folder of the repository.
func (e *Environment) InstallModuleOf(ctx context.Context, requirer, module string, files ...string) error {
	folder, err := e.folders.find(ctx, requirer, module)
	if err != nil {
		return err
	}
	return e.installCRDs(ctx, folder, files...)
}

// A version of the Gateway API that clusters still have. It has ReferenceGrants of v1beta1 only, and no BackendTLSPolicies.
const (
	oldGatewayAPI    = "sigs.k8s.io/gateway-api@v1.2.1"
	oldGatewayAPISum = "h1:fZZ/+RyRb+Y5tGkwxFKuYuSRQHu9dZtbjenblleOLHM="
)

// InstallOldGatewayAPI installs CustomResourceDefinitions of an old version of the Gateway API, which no module requires.
func (e *Environment) InstallOldGatewayAPI(ctx context.Context, plurals ...string) error {
	output, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", oldGatewayAPI).Output()
	if err != nil {
		return fmt.Errorf("download the module %s: %w: %s", oldGatewayAPI, err, output)
	}
	var found struct{ Dir, Sum string }
	if err := json.Unmarshal(output, &found); err != nil {
		return fmt.Errorf("download the module %s: %w", oldGatewayAPI, err)
	}
	if found.Sum != oldGatewayAPISum {
		return fmt.Errorf("the module %s has the checksum %s, want %s", oldGatewayAPI, found.Sum, oldGatewayAPISum)
	}
	var files []string
	for _, plural := range plurals {
		files = append(files, "config/crd/standard/gateway.networking.k8s.io_"+plural+".yaml")
	}
	return e.installCRDs(ctx, found.Dir, files...)
}

// startTries is how often it is tried to start an API server. envtest waits 5 s for the default namespace, which cannot be set,
// and a machine on which several API servers start at once may need longer.
const startTries = 4

// startServer starts etcd and an API server with our definitions. An error other than of time is not tried again.
func startServer() (*envtest.Environment, *rest.Config, error) {
	var late error
	for range startTries {
		server := &envtest.Environment{
			CRDDirectoryPaths:     []string{filepath.Join(root(), "config", "crd")},
			ErrorIfCRDPathMissing: true,
		}
		// Nothing collects the Services of the tests. The default ranges have 254 addresses and 2,768 ports.
		server.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16").
			Set("service-node-port-range", "10000-60000")
		config, err := server.Start()
		if err == nil {
			return server, config, nil
		}
		// It may have failed half-way, for example at a CRD that is refused.
		err = errors.Join(err, server.Stop())
		if !errors.Is(err, context.DeadlineExceeded) {
			return nil, nil, err
		}
		late = err
	}
	return nil, nil, late
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// root is the folder of the repository.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Namespace makes a namespace for one test.
func (e *Environment) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	return namespace.Name
}

// ownNamespace makes the namespace of an operator, unless it is there. Operators that work in some namespaces have one for
// these, so that one that starts again has the same one, and no other test does.
func (e *Environment) ownNamespace(t testing.TB, namespaces []string) string {
	t.Helper()
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operator.DefaultNamespace}}
	if len(namespaces) > 0 {
		own.Name = "operator-of-" + namespaces[0]
	}
	if err := e.Client.Create(t.Context(), own); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("make the operator's namespace: %v", err)
	}
	return own.Name
}

// grantHosts gives whom an operator runs as the right to record hosts in its namespace, as config/rbac does.
func (e *Environment) grantHosts(t testing.TB, own string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(), "config", "rbac", "hosts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ofRole, ofBinding, _ := strings.Cut(string(raw), "\n---\n")
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	if err := errors.Join(yaml.UnmarshalStrict([]byte(ofRole), role), yaml.UnmarshalStrict([]byte(ofBinding), binding)); err != nil {
		t.Fatal(err)
	}
	role.Namespace, binding.Namespace = own, own
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}
	for _, object := range []client.Object{role, binding} {
		if err := e.Client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("grant the right to record hosts: %v", err)
		}
	}
}

// Operator is a running operator.
type Operator struct {
	stop context.CancelFunc
	done chan error
}

// StartOperator runs the operator until Stop or the end of the test. change, when not
// nil, may alter the access that the operator gets, for example to count requests.
// namespaces are the ones it works in, none: all.
func (e *Environment) StartOperator(t testing.TB, change func(*rest.Config), namespaces ...string) *Operator {
	t.Helper()
	return e.StartOperatorWith(t, func(config *rest.Config, options *Options) {
		options.Namespaces = namespaces
		if change != nil {
			change(config)
		}
	})
}

// Options are those of an operator in a test: what anybody may set, and where a test takes the place of something.
type Options struct {
	operator.Options
	operator.Seams
}

// sameKeys are the same in every namespace, so that what is made in two can be compared.
type sameKeys struct{}

func (sameKeys) For(context.Context, string) (contentkey.Key, error) {
	return contentkey.Derive([]byte("of the tests"), ""), nil
}

// StartOperatorWith runs the operator as StartOperator does, with whatever options. It has
// keys of its own, until change takes them from the options, and makes none. It may make HTTPRoutes for every Gateway. With namespaces it
// has the rights of an operator for all of them, until change takes ClusterRights from the options.
func (e *Environment) StartOperatorWith(t testing.TB, change func(*rest.Config, *Options)) *Operator {
	t.Helper()
	config := rest.CopyConfig(e.Config)
	options := Options{
		Options: operator.Options{MetricsAddress: "0", ProbeAddress: "0", HTTPRouteGateways: []string{"*"}},
		Seams:   operator.Seams{AllowSecondController: true, ContentKeys: sameKeys{}, ClusterRights: true},
	}
	change(config, &options)
	if options.Namespace == "" {
		options.Namespace = e.ownNamespace(t, options.Namespaces)
	}
	e.grantHosts(t, options.Namespace)
	if options.ClusterRights && len(options.Namespaces) > 0 && len(options.Controllers) == 0 {
		// Classes are shared by all tests, so only one that is about them has them.
		options.Controllers = slices.DeleteFunc(operator.ControllerNames(), func(name string) bool {
			return strings.HasPrefix(name, "gateway")
		})
	}
	mgr, err := operator.NewManager(config, options.Options, options.Seams)
	if err != nil {
		t.Fatalf("make the operator: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	running := &Operator{stop: cancel, done: make(chan error, 1)}
	go func() { running.done <- mgr.Start(ctx) }()
	t.Cleanup(func() { running.Stop(t) })
	if !mgr.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the operator's caches were not filled")
	}
	return running
}

// Stop stops the operator and waits until it has ended. It may be called twice.
func (o *Operator) Stop(t testing.TB) {
	t.Helper()
	o.stop()
	select {
	case err, first := <-o.done:
		if first && err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
		if first {
			close(o.done)
		}
	case <-time.After(patience):
		t.Error("the operator did not stop")
	}
}

// Ended waits until the operator has ended by itself and returns why.
func (o *Operator) Ended(t testing.TB) error {
	t.Helper()
	select {
	case err := <-o.done:
		close(o.done)
		return err
	case <-time.After(patience):
		t.Fatal("the operator goes on")
		return nil
	}
}

// Eventually waits until check returns nil and fails the test with check's last
// answer when it does not.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %v still: %v", patience, err)
		case <-tick.C:
		}
	}
}

// Quiet waits until changed has returned the same for the given time: how a test
// knows that nothing happens any more.
func Quiet[T comparable](t testing.TB, during time.Duration, observe func() T) T {
	t.Helper()
	deadline := time.After(patience)
	last, since := observe(), time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-deadline:
			t.Fatalf("after %v still changing: %v", patience, last)
		case <-tick.C:
		}
		if now := observe(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) >= during {
			return last
		}
	}
}
