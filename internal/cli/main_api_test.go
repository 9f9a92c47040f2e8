//go:build apitest

package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
	"github.com/slipway-dev/slipway/pkg/client/clientset/versioned"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is a test's namespace, with the commands that run in it.
type fixture struct {
	*testing.T
	*command.Clients
	kubeconfig string
	cluster    *workload.Cluster
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	slipway, err := versioned.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: env.Namespace(t)}
	config.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return &fixture{
		T: t, kubeconfig: path, cluster: &workload.Cluster{Client: env.Client},
		Clients: &command.Clients{Slipway: slipway, Kube: kube, Namespace: config.Contexts["test"].Namespace},
	}
}

// run runs a command to its end.
func (f *fixture) run(args ...string) (code int, stdout, stderr string) {
	f.Helper()
	out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
	code = f.start(f.Context(), out, errOut, args...)
	return code, out.String(), errOut.String()
}

func (f *fixture) start(ctx context.Context, out, errOut io.Writer, args ...string) int {
	if args[0] != "__complete" { // its last argument is the text that was typed so far
		args = append(args, "--kubeconfig", f.kubeconfig)
	}
	return Run(ctx, command.Options{
		Version: "test",
		Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errOut},
		Clock:   clock.RealClock{},
	}, args)
}

// expect runs a command and compares its exit code and parts of what it prints.
func (f *fixture) expect(code int, parts []string, args ...string) string {
	f.Helper()
	got, stdout, stderr := f.run(args...)
	all := stdout + stderr
	if got != code {
		f.Errorf("%v: exit code %d, want %d\n%s", args, got, code, all)
	}
	for _, part := range parts {
		if !strings.Contains(all, part) {
			f.Errorf("%v: want %q in\n%s", args, part, all)
		}
	}
	return stdout
}

// follower reads the output of a running command line by line.
type follower struct {
	*fixture
	lines  *bufio.Scanner
	errOut bytes.Buffer
	code   chan int
	stop   context.CancelFunc
}

func (f *fixture) follow(args ...string) *follower {
	reader, writer := io.Pipe()
	ctx, stop := context.WithTimeout(f.Context(), time.Minute)
	running := &follower{fixture: f, lines: bufio.NewScanner(reader), code: make(chan int, 1), stop: stop}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		code := f.start(ctx, writer, &running.errOut, args...)
		writer.Close()
		running.code <- code
	}()
	f.Cleanup(func() {
		stop()
		reader.Close() // The test may not have read all of it.
		<-ended
	})
	return running
}

// until reads lines up to one with the given text.
func (r *follower) until(text string) {
	r.Helper()
	var read []string
	for r.lines.Scan() {
		if read = append(read, r.lines.Text()); strings.Contains(r.lines.Text(), text) {
			return
		}
	}
	r.Fatalf("ended before %q:\n%s\n%s", text, strings.Join(read, "\n"), r.errOut.String())
}

// ends reads the rest of the output, and compares the exit code and stderr.
func (r *follower) ends(code int, stderr string) {
	r.Helper()
	for r.lines.Scan() {
	}
	if got := <-r.code; got != code || !strings.Contains(r.errOut.String(), stderr) {
		r.Errorf("exit code %d, want %d; stderr %q, want %q", got, code, r.errOut.String(), stderr)
	}
}

func (f *fixture) create(change ...func(*slipwayv1alpha1.WebApp)) *slipwayv1alpha1.WebApp {
	f.Helper()
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "registry.example.com/shop:1", Port: 8080},
	}
	for _, c := range change {
		c(app)
	}
	app, err := f.WebApps().Create(f.Context(), app, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return app
}

// edit changes the spec, as another client would.
func (f *fixture) edit(change func(*slipwayv1alpha1.WebAppSpec)) {
	f.Helper()
	environment.Eventually(f, func() error {
		app, err := f.GetWebApp(f.Context(), "shop")
		if err != nil {
			return err
		}
		change(&app.Spec)
		_, err = f.WebApps().Update(f.Context(), app, metav1.UpdateOptions{})
		return err
	})
}

// report writes a status as the operator would.
func (f *fixture) report(change func(*slipwayv1alpha1.WebApp)) {
	f.Helper()
	environment.Eventually(f, func() error {
		app, err := f.GetWebApp(f.Context(), "shop")
		if err != nil {
			return err
		}
		app.Status.ObservedGeneration = app.Generation
		change(app)
		_, err = f.WebApps().UpdateStatus(f.Context(), app, metav1.UpdateOptions{})
		return err
	})
}

// rollOut completes the rollout of an image, with a running operator.
func (f *fixture) rollOut(image string) {
	f.Helper()
	f.deployed(image)
	if err := f.cluster.RollOut(f.Context(), f.Namespace, "shop"); err != nil {
		f.Fatal(err)
	}
	environment.Eventually(f, func() error {
		app, err := f.GetWebApp(f.Context(), "shop")
		if err == nil && (app.Status.LastGoodRevision == "" || app.Status.LastGoodRevision != app.Status.Revision || app.Status.Image != image) {
			err = fmt.Errorf("status: %+v", app.Status)
		}
		return err
	})
}

// deployed waits until the Deployment has the image.
func (f *fixture) deployed(image string) *appsv1.Deployment {
	f.Helper()
	var deployment *appsv1.Deployment
	environment.Eventually(f, func() (err error) {
		deployment, err = f.Kube.AppsV1().Deployments(f.Namespace).Get(f.Context(), "shop", metav1.GetOptions{})
		if err == nil && deployment.Spec.Template.Spec.Containers[0].Image != image {
			err = fmt.Errorf("the Deployment runs %s", deployment.Spec.Template.Spec.Containers[0].Image)
		}
		return err
	})
	return deployment
}

func crashedStatus() corev1.PodStatus {
	status := clitest.Crashing(false)
	status.Phase = corev1.PodRunning
	status.ContainerStatuses[0].RestartCount = 1
	return status
}
