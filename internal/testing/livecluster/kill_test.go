package livecluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestOnlyTheProcessThatIsMeantIsKilled(t *testing.T) {
	folder := t.TempDir()
	command := exec.Command("sleep", "60")
	command.Env = append(os.Environ(), "SLIPWAY_LOCALKUBE="+folder)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() { _ = command.Process.Kill() })
	// Start returns a moment before the kernel shows the environment of the new program.
	environ := filepath.Join("/proc", strconv.Itoa(command.Process.Pid), "environ")
	environment.Eventually(t, func() error {
		raw, err := os.ReadFile(environ)
		if err == nil && !strings.Contains(string(raw), folder) {
			err = fmt.Errorf("the environment is %q", raw)
		}
		return err
	})

	if err := send(syscall.SIGKILL, command.Process.Pid, "SLIPWAY_LOCALKUBE="+filepath.Join(folder, "other")); !errors.Is(err, errOther) {
		t.Errorf("a process of another cluster: %v, want %v", err, errOther)
	}
	if err := command.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatalf("it does not run any more: %v", err)
	}

	c := &Cluster{folder: folder}
	if err := os.Mkdir(filepath.Join(folder, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	record := `{"pid": ` + strconv.Itoa(command.Process.Pid) + `, "started": 1}`
	if err := os.WriteFile(filepath.Join(folder, "run", "etcd.json"), []byte(record), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.KillProgram("etcd"); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v, want SIGKILL", err)
	}
	if err := c.KillProgram("etcd"); !errors.Is(err, errOther) {
		t.Errorf("a process that has ended: %v, want %v", err, errOther)
	}
}
