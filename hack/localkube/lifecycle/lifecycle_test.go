package lifecycle

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHierarchies(t *testing.T) {
	mountinfo := `30 27 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
32 30 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
33 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
34 27 0:30 / /cgroup rw,relatime - ext4 /dev/vda rw

`
	want := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"}
	if diff := cmp.Diff(want, hierarchies([]byte(mountinfo))); diff != "" {
		t.Errorf("hierarchies (-want +got):\n%s", diff)
	}
}

func TestRemoveTree(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "slipway-test")
	if err := os.MkdirAll(filepath.Join(folder, "kubepods", "burstable", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", folder, err)
	}
	if err := removeTree(folder); err != nil {
		t.Errorf("removing it once more: %v", err)
	}
}

func TestCheckHost(t *testing.T) {
	err := CheckHost()
	if os.Geteuid() == 0 {
		if err != nil {
			t.Errorf("CheckHost as root = %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "root") || !strings.Contains(err.Error(), "CLUSTER=existing") {
		t.Errorf("CheckHost = %v, want what is missing and what works instead", err)
	}
}

func TestAwait(t *testing.T) {
	calls := 0
	err := await(t.Context(), func(context.Context) error {
		calls++
		if calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("await = %v after %d calls, want nil after 3", err, calls)
	}

	ctx, cancel := context.WithCancel(t.Context())
	reason := errors.New("the reason")
	err = await(ctx, func(context.Context) error {
		cancel()
		return reason
	})
	if !errors.Is(err, reason) {
		t.Errorf("await with an ended context = %v, want the last reason", err)
	}
}

func TestUnknownCluster(t *testing.T) {
	root := t.TempDir()
	if err := Status(t.Context(), root, "nobody", io.Discard); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("Status = %v", err)
	}
	if _, err := Kubeconfig(root, "nobody"); err == nil || !strings.Contains(err.Error(), "start it with up") {
		t.Errorf("Kubeconfig = %v", err)
	}
}
