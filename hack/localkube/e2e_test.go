//go:build selftest && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/process"
	"github.com/slipway-dev/slipway/hack/localkube/supervise"
)

// The end-to-end test starts real clusters of these names. `make test-localkube` runs it.
const (
	e2eName  = "selftest"
	e2eOther = "selftest-other"
)

func TestEndToEnd(t *testing.T) {
	e := newEnvironment(t)

	e.timed("first up", func() { e.localkube("up", "--name", e2eName) })
	e.timed("second up", func() { e.localkube("up", "--name", e2eName) })
	e.reload()
	e.localkube("load", "--name", e2eName,
		e.archive("demo", filepath.Join("..", ".."), "./hack/demo", "slipway-demo:selftest"),
		e.archive("writer", ".", "./testdata/writer", "slipway-writer:selftest"))

	t.Run("pods, services and logs", func(t *testing.T) { e.with(t).testPods() })
	t.Run("load balancers", func(t *testing.T) { e.with(t).testLoadBalancers() })
	t.Run("DNS", func(t *testing.T) { e.with(t).testDNS() })
	t.Run("volume", func(t *testing.T) { e.with(t).testVolume() })
	t.Run("registry", func(t *testing.T) { e.with(t).testRegistry() })
	t.Run("authorization", func(t *testing.T) { e.with(t).testAuthorization() })
	t.Run("another cluster beside it", func(t *testing.T) { e.with(t).testOtherCluster() })
	t.Run("repair", func(t *testing.T) { e.with(t).testRepair() })

	// The other cluster is younger, so it began with copies of this one's mounts. They must go, too.
	e.localkube("up", "--name", e2eOther)
	e.timed("down", func() { e.localkube("down", "--name", e2eName) })
	e.noLeftovers(e.cluster)
	e.localkube("down", "--name", e2eOther)
	e.timed("second down", func() { e.localkube("down", "--name", e2eName) })

	e.localkube("up", "--name", e2eName)
	e.reload()
	if output, err := try(e.program, "down", "--leftover", "--name", e2eName); err == nil {
		t.Errorf("down --leftover ended a cluster that runs:\n%s", output)
	}
	e.killEverything()
	e.timed("down after everything was killed", func() { e.localkube("down", "--leftover", "--name", e2eName) })
	e.noLeftovers(e.cluster)
}

// testPods runs restricted pods and reaches them from the machine.
func (e *environment) testPods() {
	e.kubectl("apply", "-f", "testdata/demo.yaml")
	e.kubectl("-n", "selftest", "rollout", "status", "deployment/demo", "--timeout=120s")
	pod := e.kubectl("-n", "selftest", "get", "pods", "-l", "app=demo", "-o", "jsonpath={.items[0].status.podIP}")
	e.eventually("the pod answers", func() error { return answers("http://" + pod + ":8080/") })
	e.eventually("the Service answers", func() error { return answers(e.serviceURL()) })
	logs := e.kubectl("-n", "selftest", "logs", "deployment/demo")
	if !strings.Contains(logs, "listens on") {
		e.t.Errorf("logs = %q, want the line that says where it listens", logs)
	}
}

func (e *environment) serviceURL() string {
	return "http://" + e.kubectl("-n", "selftest", "get", "service", "demo", "-o", "jsonpath={.spec.clusterIP}") + "/"
}

// testLoadBalancers reaches Services at external addresses, and frees an address in
// the ways that there are. One Service is left for the tests that follow.
func (e *environment) testLoadBalancers() {
	e.kubectl("apply", "-f", "testdata/balanced.yaml")
	first, second := e.external("balanced"), e.external("balanced-too")
	if first == second {
		e.t.Errorf("both Services have the address %s", first)
	}
	for _, address := range []string{first, first + ":8443", second} {
		e.eventually("the Service answers at "+address, func() error { return answers("http://" + address + "/") })
	}

	// A Service of another type has no address, and neither has one that is gone.
	e.kubectl("-n", "selftest", "patch", "service", "balanced-too", "--type=merge", "-p", `{"spec":{"type":"ClusterIP"}}`)
	e.eventually("the address is gone", func() error {
		if address := e.ingress("balanced-too"); address != "" {
			return fmt.Errorf("the status still says %s", address)
		}
		return nil
	})
	take := fmt.Sprintf(`{"spec":{"type":"LoadBalancer","loadBalancerIP":%q}}`, second)
	e.kubectl("-n", "selftest", "patch", "service", "demo", "--type=merge", "-p", take)
	if got := e.external("demo"); got != second {
		e.t.Errorf("demo has the address %s, want %s, which it asks for and nobody has", got, second)
	}
	e.kubectl("-n", "selftest", "patch", "service", "balanced-too", "--type=merge", "-p", take)
	e.kubectl("-n", "selftest", "patch", "service", "demo", "--type=merge", "-p", `{"spec":{"type":"ClusterIP","loadBalancerIP":null}}`)
	if got := e.external("balanced-too"); got != second {
		e.t.Errorf("balanced-too has the address %s, want %s, which is free again", got, second)
	}
	e.kubectl("-n", "selftest", "delete", "service", "balanced-too")
	if address := e.ingress("balanced-by-others"); address != "" {
		e.t.Errorf("a Service of another class has the address %s", address)
	}
}

// external waits for the external address of a Service.
func (e *environment) external(service string) string {
	e.t.Helper()
	var address string
	e.eventually("an external address of "+service, func() error {
		address = e.ingress(service)
		parsed, err := netip.ParseAddr(address)
		if err == nil && !e.cluster.LoadBalancerNetwork().Contains(parsed) {
			return fmt.Errorf("%s is not in %s", address, e.cluster.LoadBalancerNetwork())
		}
		return err
	})
	return address
}

func (e *environment) ingress(service string) string {
	e.t.Helper()
	return e.kubectl("-n", "selftest", "get", "service", service, "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}")
}

func (e *environment) testDNS() {
	want := e.kubectl("-n", "selftest", "get", "service", "demo", "-o", "jsonpath={.spec.clusterIP}")
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(e.cluster.DNSAddress().String(), "53"))
	}}
	e.eventually("the Service's name resolves", func() error {
		addresses, err := resolver.LookupHost(e.t.Context(), "demo.selftest.svc.cluster.local.")
		if err == nil && !slices.Equal(addresses, []string{want}) {
			return fmt.Errorf("got %v, want %s", addresses, want)
		}
		return err
	})
}

// testVolume has a pod that is not root write to a claim's volume. Then it deletes
// the claim, and expects that the files are gone.
func (e *environment) testVolume() {
	e.kubectl("apply", "-f", "testdata/volume.yaml")
	e.kubectl("-n", "selftest", "rollout", "status", "deployment/writer", "--timeout=120s")
	volume := e.kubectl("-n", "selftest", "get", "pvc", "data", "-o", "jsonpath={.spec.volumeName}")
	file := e.cluster.Path("volumes", volume, "greeting")
	e.eventually("the pod has written to the volume", func() error {
		content, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(content), "written by a pod") {
			return fmt.Errorf("%s = %q", file, content)
		}
		return err
	})
	e.kubectl("-n", "selftest", "delete", "-f", "testdata/volume.yaml")
	e.eventually("the volume's files are gone", func() error {
		_, err := os.Stat(filepath.Dir(file))
		if err == nil {
			return fmt.Errorf("%s is still there", filepath.Dir(file))
		}
		if !os.IsNotExist(err) {
			return err
		}
		return nil
	})
}

// testRegistry pulls from a registry on the machine that has one image, lacks
// another and denies a third.
func (e *environment) testRegistry() {
	stop := e.startRegistry("demo")
	defer stop()
	e.kubectl("apply", "-f", "testdata/pull.yaml")
	e.kubectl("-n", "selftest", "wait", "pod/present", "--for=condition=Ready", "--timeout=60s")
	for pod, want := range map[string]string{"absent": "not found", "denied": "403 Forbidden", "nowhere": "registry.example.com"} {
		e.eventually(pod+" is refused", func() error {
			message := e.kubectl("-n", "selftest", "get", "events", "--field-selector=reason=Failed,involvedObject.name="+pod, "-o", "jsonpath={.items[*].message}")
			if !strings.Contains(message, want) {
				return fmt.Errorf("events = %q, want %q in them", message, want)
			}
			return nil
		})
	}
	e.kubectl("-n", "selftest", "delete", "-f", "testdata/pull.yaml", "--grace-period=1")
}

// testAuthorization shows that RBAC decides: a new service account may do nothing.
func (e *environment) testAuthorization() {
	answer, err := e.tryKubectl("auth", "can-i", "list", "secrets", "--as=system:serviceaccount:selftest:default", "-n", "selftest")
	if err == nil || !strings.Contains(answer, "no") {
		e.t.Errorf("can-i = %q (%v), want no", answer, err)
	}
}

func (e *environment) testOtherCluster() {
	e.timed("up of another cluster", func() { e.localkube("up", "--name", e2eOther) })
	e.localkube("status", "--name", e2eName)
	e.localkube("status", "--name", e2eOther)
	other, err := cluster.Load(cluster.DefaultRoot, e2eOther)
	if err != nil {
		e.t.Fatal(err)
	}
	if len(e.leftovers(other)) == 0 {
		e.t.Fatal("a running cluster left no traces, so the search for them finds nothing")
	}
	e.timed("down of another cluster", func() { e.localkube("down", "--name", e2eOther) })
	e.noLeftovers(other)
	e.localkube("status", "--name", e2eName)
	e.eventually("the Service still answers", func() error { return answers(e.serviceURL()) })
}

// testRepair kills one part after the other and expects up to repair it without
// a restart of the pods.
func (e *environment) testRepair() {
	pods := func() string {
		return e.kubectl("-n", "selftest", "get", "pods", "-l", "app=demo", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount}\n{end}")
	}
	want, address := pods(), e.external("balanced")
	for _, name := range slices.Concat(supervise.Names, []string{supervise.Supervisor}) {
		record, err := supervise.ReadRecord(e.cluster, name)
		if err != nil {
			e.t.Fatal(err)
		}
		e.kill(record.Identity)
		e.timed("up after kill -9 of "+name, func() { e.localkube("up", "--name", e2eName) })
		e.localkube("status", "--name", e2eName)
		e.eventually("the Service answers", func() error { return answers(e.serviceURL()) })
	}
	if diff := cmp.Diff(want, pods()); diff != "" {
		e.t.Errorf("pods were restarted (-want +got):\n%s", diff)
	}

	e.run("ip", "link", "delete", "dev", e.cluster.HostInterface())
	e.timed("up after the cable was removed", func() { e.localkube("up", "--name", e2eName) })
	e.eventually("the Service answers", func() error { return answers(e.serviceURL()) })

	e.killEverything()
	e.timed("up after everything was killed", func() { e.localkube("up", "--name", e2eName) })
	e.eventually("the Service answers", func() error { return answers(e.serviceURL()) })

	e.forgetLikeReboot()
	e.timed("up after what a reboot leaves", func() { e.localkube("up", "--name", e2eName) })
	e.eventually("the Service answers", func() error { return answers(e.serviceURL()) })
	if got := e.external("balanced"); got != address {
		e.t.Errorf("the external address changed from %s to %s", address, got)
	}
	e.eventually("the Service answers at its external address", func() error { return answers("http://" + address + "/") })
}

// forgetLikeReboot leaves only what is on the disk, and a record of another boot.
func (e *environment) forgetLikeReboot() {
	e.killEverything()
	e.run("umount", e.cluster.NetworkNamespace(), e.cluster.MountNamespace(),
		filepath.Dir(e.cluster.MountNamespace()), filepath.Dir(e.cluster.NetworkNamespace()))
	// The cable goes with the namespace, a moment later.
	e.eventually("the cable is gone", func() error {
		if output, err := try("ip", "link", "show", "dev", e.cluster.HostInterface()); err == nil {
			return errors.New(output)
		}
		return nil
	})
	e.run("nft", "delete", "table", "ip", e.cluster.Table())
	rebooted := e.cluster
	rebooted.Boot = "another"
	if err := rebooted.Save(); err != nil {
		e.t.Fatal(err)
	}
}

// explain shows how the cluster is when a test has failed.
func (e *environment) explain() {
	if !e.t.Failed() {
		return
	}
	for _, what := range [][]string{
		{"get", "pods,endpointslices,pvc", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
	} {
		output, err := e.tryKubectl(what...)
		e.t.Logf("kubectl %s (%v):\n%s", strings.Join(what, " "), err, output)
	}
}

// killEverything ends every process of the cluster at once, pods included.
func (e *environment) killEverything() {
	record, err := supervise.ReadRecord(e.cluster, supervise.Supervisor)
	if err != nil {
		e.t.Fatal(err)
	}
	e.kill(record.Identity)
	node, err := process.InNetwork(e.cluster.NetworkNamespace())
	if err != nil {
		e.t.Fatal(err)
	}
	pods, err := process.InCgroups(e.podCgroups())
	if err != nil {
		e.t.Fatal(err)
	}
	if len(node) < len(supervise.Names) {
		e.t.Fatalf("found only %d processes of the node", len(node))
	}
	for _, identity := range slices.Concat(node, pods) {
		e.kill(identity)
	}
}

func (e *environment) kill(identity process.Identity) {
	e.t.Helper()
	if err := identity.Signal(syscall.SIGKILL); err != nil {
		e.t.Fatal(err)
	}
	if !identity.WaitGone(10 * time.Second) {
		e.t.Fatalf("process %d does not end", identity.PID)
	}
}

func answers(url string) error {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(body), "Hello from ") {
		return fmt.Errorf("%s: %s %q", url, response.Status, body)
	}
	return nil
}

// environment is what the test works with.
type environment struct {
	t       *testing.T
	program string
	folder  string
	cluster cluster.Cluster
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	e := &environment{t: t, folder: t.TempDir()}
	e.program = filepath.Join(e.folder, "localkube")
	e.run("go", "build", "-o", e.program, ".")
	for _, name := range []string{e2eName, e2eOther} {
		// This removes what a killed run left. A cluster that runs is in use, so down refuses it.
		e.run(e.program, "down", "--leftover", "--name", name)
		t.Cleanup(func() {
			if output, err := exec.Command(e.program, "down", "--name", name).CombinedOutput(); err != nil {
				t.Errorf("down: %v\n%s", err, output)
			}
		})
	}
	return e
}

// with is the same environment for a subtest.
func (e *environment) with(t *testing.T) *environment {
	sub := *e
	sub.t = t
	t.Cleanup(sub.explain)
	return &sub
}

func (e *environment) reload() {
	e.t.Helper()
	var err error
	if e.cluster, err = cluster.Load(cluster.DefaultRoot, e2eName); err != nil {
		e.t.Fatal(err)
	}
}
