// Package livetest is what tests on a real cluster have in common: a namespace for each test, ways to write and to wait, a
// record of what a watch has shown, and a registry whose images cannot be had.
//
//	main.go      running the tests of a package on the cluster
//	fixture.go   Fixture: one test with a namespace of its own
//	record.go    what a watch has shown, and when
//	traffic.go   a steady stream of requests that must all be answered
//	backup.go    Backups, runs and restores, and an S3 server
//	registry.go  a registry whose images cannot be had
package livetest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// Patience is how long a test waits for what should come. Most of it is room for a busy
// machine; pods that crash have to wait for the kubelet, too.
const Patience = 2 * time.Minute

// Fixture is one test with a namespace of its own, which allows only pods of the restricted
// Pod Security level: whatever a test creates is within it.
type Fixture struct {
	*testing.T
	Cluster *livecluster.Cluster
	// Namespace is deleted when the test ends.
	Namespace string
	// Patience is how long a wait lasts at the most. New sets it to the constant of this name.
	Patience time.Duration

	// registry is the name of the registry that the test has started, if any.
	registry string
}

// New makes the namespace. What a failed test leaves is logged before it goes.
func New(t *testing.T, cluster *livecluster.Cluster) *Fixture {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := cluster.Create(t.Context(), namespace); err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	f := &Fixture{T: t, Cluster: cluster, Namespace: namespace.Name, Patience: Patience}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if t.Failed() {
			f.dump(ctx)
		}
		if err := client.IgnoreNotFound(cluster.Delete(ctx, namespace)); err != nil {
			t.Errorf("delete the namespace: %v", err)
		}
	})
	return f
}

// In returns the fixture for a subtest that shares the namespace.
func (f Fixture) In(t *testing.T) *Fixture {
	f.T = t
	return &f
}

// dump logs what one would look at first.
func (f *Fixture) dump(ctx context.Context) {
	for _, args := range []string{"get slipway -o yaml", "get all,pvc,controllerrevisions", "get events --sort-by=.lastTimestamp"} {
		output, err := f.RunKubectl(ctx, strings.Fields(args)...)
		f.Logf("kubectl %s: %v\n%s", args, err, output)
	}
}

// Create creates objects in the test's namespace.
func (f *Fixture) Create(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		object.SetNamespace(f.Namespace)
		if err := f.Cluster.Create(f.Context(), object); err != nil {
			f.Fatalf("create %T %q: %v", object, object.GetName(), err)
		}
	}
}

// Delete deletes an object, as the options say. One without a namespace is looked for in the
// test's.
func (f *Fixture) Delete(object client.Object, options ...client.DeleteOption) {
	f.Helper()
	if object.GetNamespace() == "" {
		object.SetNamespace(f.Namespace)
	}
	if err := f.Cluster.Delete(f.Context(), object, options...); err != nil {
		f.Fatalf("delete %T %q: %v", object, object.GetName(), err)
	}
}

// Get reads the object of that name.
func (f *Fixture) Get(name string, into client.Object) error {
	return f.Cluster.Get(f.Context(), types.NamespacedName{Namespace: f.Namespace, Name: name}, into)
}

// MustGet reads the object of that name, which must exist.
func MustGet[T client.Object](f *Fixture, name string, into T) T {
	f.Helper()
	if err := f.Get(name, into); err != nil {
		f.Fatalf("get %T %q: %v", into, name, err)
	}
	return into
}

// Update changes the latest version of the object of that name.
func Update[T client.Object](f *Fixture, name string, object T, change func(T)) T {
	f.Helper()
	f.Eventually(func() error {
		if err := f.Get(name, object); err != nil {
			return err
		}
		change(object)
		return f.Cluster.Update(f.Context(), object)
	})
	return object
}

// Eventually waits until check returns nil, and fails the test with check's last answer
// when it does not.
func (f *Fixture) Eventually(check func() error) {
	f.Helper()
	if err := livecluster.Eventually(f.Context(), f.Patience, check); err != nil {
		f.Fatal(err)
	}
}

// Gone waits until the object of that name does not exist.
func (f *Fixture) Gone(name string, object client.Object) {
	f.Helper()
	f.Eventually(func() error {
		err := f.Get(name, object)
		if err == nil {
			return fmt.Errorf("%T %q exists", object, name)
		}
		return client.IgnoreNotFound(err)
	})
}

// Measured logs a number that the project publishes; hack/testsum shows these lines.
func (f *Fixture) Measured(format string, args ...any) {
	f.Helper()
	f.Logf("measured: "+format, args...)
}

// Kubectl runs kubectl in the test's namespace, and returns what it prints.
func (f *Fixture) Kubectl(args ...string) string {
	f.Helper()
	output, err := f.RunKubectl(f.Context(), args...)
	if err != nil {
		f.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// RunKubectl does so where kubectl may fail.
func (f *Fixture) RunKubectl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	command := exec.CommandContext(ctx, f.Cluster.Kubectl, append([]string{"-n", f.Namespace}, args...)...)
	output, err := command.CombinedOutput()
	return string(output), err
}
