//go:build selftest && linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/process"
)

func (e *environment) run(command string, arguments ...string) string {
	e.t.Helper()
	output, err := try(command, arguments...)
	if err != nil {
		e.t.Fatalf("%s %s: %v\n%s", command, strings.Join(arguments, " "), err, output)
	}
	return output
}

func try(command string, arguments ...string) (string, error) {
	output, err := exec.Command(command, arguments...).CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

func (e *environment) localkube(arguments ...string) { e.t.Helper(); e.run(e.program, arguments...) }

func (e *environment) kubectl(arguments ...string) string {
	e.t.Helper()
	output, err := e.tryKubectl(arguments...)
	if err != nil {
		e.t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return output
}

func (e *environment) tryKubectl(arguments ...string) (string, error) {
	program := filepath.Join(e.cluster.Programs["kubernetes"], "kubectl")
	return try(program, append([]string{"--kubeconfig", e.cluster.Kubeconfig()}, arguments...)...)
}

func (e *environment) timed(what string, work func()) {
	e.t.Helper()
	started := time.Now()
	work()
	e.t.Logf("%s took %s", what, time.Since(started).Round(10*time.Millisecond))
}

// eventually waits for a condition.
func (e *environment) eventually(what string, check func() error) {
	e.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// archive builds a program of the project and puts it into an image archive.
func (e *environment) archive(name, folder, source, tag string) string {
	e.t.Helper()
	binary, archive := filepath.Join(e.folder, name), filepath.Join(e.folder, name+".tar")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, source)
	build.Dir = folder
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		e.t.Fatalf("%v\n%s", err, output)
	}
	e.run("go", "-C", filepath.Join("..", "image"), "run", ".", "build", "--binary", binary, "--tag", tag, "--output", archive)
	return archive
}

// startRegistry serves one image at the machine's address, and denies whatever
// is named private.
func (e *environment) startRegistry(repository string) func() {
	e.t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(e.cluster.HostAddress().String(), "5000"))
	if err != nil {
		e.t.Fatal(err)
	}
	inner := registry.New()
	server := &http.Server{Handler: http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/v2/private/") {
			http.Error(response, `{"errors":[{"code":"DENIED","message":"access denied"}]}`, http.StatusForbidden)
			return
		}
		inner.ServeHTTP(response, request)
	})}
	go func() { _ = server.Serve(listener) }()

	image, err := tarball.ImageFromPath(filepath.Join(e.folder, "demo.tar"), nil)
	if err != nil {
		e.t.Fatal(err)
	}
	tag, err := name.NewTag(fmt.Sprintf("%s/%s:1", listener.Addr(), repository), name.Insecure)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		e.t.Fatal(err)
	}
	return func() { _ = server.Close() }
}

func (e *environment) podCgroups() []string {
	e.t.Helper()
	return append(globs(e.t, "/sys/fs/cgroup/*/slipway-"+e2eName), "/sys/fs/cgroup/slipway-"+e2eName)
}

// leftovers lists what remains on the machine of a cluster that is down. It
// looks only for what is that cluster's own: others may run beside the test.
func (e *environment) leftovers(c cluster.Cluster) []string {
	e.t.Helper()
	found := containing("interface", e.run("ip", "-o", "link"), c.HostInterface()+":", c.HostInterface()+"@")
	octets := strings.Join(strings.Split(c.Network().Addr().String(), ".")[:2], ".") + "."
	found = append(found, containing("route", e.run("ip", "-4", "route", "show", "table", "all"), octets)...)
	found = append(found, containing("rule", e.run("nft", "list", "ruleset"), octets, c.Table())...)
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		e.t.Fatal(err)
	}
	found = append(found, containing("mount", string(mountinfo), c.Folder()+"/")...)
	// Another cluster's mount namespace must not keep a copy.
	for _, file := range globs(e.t, "/proc/[0-9]*/mountinfo") {
		if content, err := os.ReadFile(file); err == nil {
			found = append(found, containing(file, string(content), c.NetworkNamespace())...)
		}
	}
	processes, err := process.Marked(c.Marker())
	if err != nil {
		e.t.Fatal(err)
	}
	for _, identity := range processes {
		found = append(found, fmt.Sprintf("process: %d %s", identity.PID, identity.Program()))
	}
	for _, pattern := range []string{c.Folder(), "/sys/fs/cgroup" + c.Cgroup(), "/sys/fs/cgroup/*" + c.Cgroup()} {
		found = append(found, globs(e.t, pattern)...)
	}
	return found
}

func globs(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// containing lists the lines that hold one of the texts.
func containing(kind, output string, texts ...string) []string {
	var found []string
	for line := range strings.Lines(output) {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
			found = append(found, kind+": "+strings.TrimSpace(line))
		}
	}
	return found
}

func (e *environment) noLeftovers(c cluster.Cluster) {
	e.t.Helper()
	if found := e.leftovers(c); len(found) > 0 {
		e.t.Errorf("cluster %s left behind:\n%s", c.Name, strings.Join(found, "\n"))
	}
}
