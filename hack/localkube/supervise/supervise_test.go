package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/process"
)

func testCluster() cluster.Cluster {
	return cluster.Cluster{Name: "slipway", Root: "/state", Slot: 7, Programs: map[string]string{
		"etcd": "/cache/etcd", "kubernetes": "/cache/kubernetes", "containerd": "/cache/containerd",
		"coredns": "/cache/coredns", "provisioner": "/cache/provisioner",
	}}
}

func TestPrograms(t *testing.T) {
	var names []string
	c := testCluster()
	for _, program := range Programs(c) {
		names = append(names, program.Name)
		if file := program.Command[0]; !strings.HasPrefix(file, "/cache/") && file != c.Program() {
			t.Errorf("%s runs %s, which is neither in the cache nor the cluster's own", program.Name, file)
		}
	}
	if diff := cmp.Diff(Names, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestFsync(t *testing.T) {
	const flag = "--unsafe-no-fsync"
	c := testCluster()
	if !slices.Contains(etcdFlags(c), flag) {
		t.Errorf("%s is missing without fsync", flag)
	}
	c.Fsync = true
	if slices.Contains(etcdFlags(c), flag) {
		t.Errorf("%s is there with fsync", flag)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com")
	t.Setenv("SLIPWAY_SECRET", "secret")
	c := testCluster()
	plain, proxied := environment(c, Program{}), environment(c, Program{Proxy: true})
	const proxy = "HTTPS_PROXY=http://proxy.example.com"
	if slices.Contains(plain, proxy) {
		t.Error("the proxy was passed to a program that talks inside of the cluster only")
	}
	if !slices.Contains(proxied, proxy) {
		t.Error("the proxy was not passed on")
	}
	for _, settings := range [][]string{plain, proxied} {
		if slices.Contains(settings, "SLIPWAY_SECRET=secret") {
			t.Error("the user's environment was passed on")
		}
		if !slices.Contains(settings, c.Marker()) {
			t.Error("the cluster's mark is missing")
		}
	}
}

func TestRecord(t *testing.T) {
	c := cluster.Cluster{Name: "slipway", Root: t.TempDir()}
	if _, err := ReadRecord(c, "etcd"); !os.IsNotExist(err) {
		t.Errorf("ReadRecord without one = %v", err)
	}
	want := Record{Identity: process.Identity{PID: 7, Started: 4711, Boot: "boot"}, Since: time.Now().UTC(), Restarts: 2, LastExit: "signal: killed"}
	if err := writeRecord(c, "etcd", want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(c, "etcd")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestLimit(t *testing.T) {
	file, err := openLog(filepath.Join(t.TempDir(), "logs", "etcd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size, want := range map[int64]int64{10: 10, logLimit + 1: 0} {
		if err := file.Truncate(size); err != nil {
			t.Fatal(err)
		}
		limit(file)
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != want {
			t.Errorf("a log of %d bytes has %d afterwards, want %d", size, info.Size(), want)
		}
	}
}
