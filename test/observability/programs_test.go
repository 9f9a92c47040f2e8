//go:build observability

package observability

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// tool returns the path of a program, which the target of make hands over.
func tool(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: run make test-observability", variable)
	}
	return path
}

// run starts a program, which ends with the test.
func run(t *testing.T, environment []string, program string, arguments ...string) {
	t.Helper()
	said := new(lockedbuffer.Buffer)
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = said, said
	// It must not outlive a test that is killed.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("%s ended before the test: %v", program, err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s ended with: %v", program, err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%s does not end", program)
			_ = command.Process.Kill()
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", program, said)
		}
	})
}

// freePort returns a port that nobody listens at. Programs that must be told one before they start have no other way.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func at(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// eventually waits until check returns nil.
func eventually(t *testing.T, patience time.Duration, check func() error) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(200 * time.Millisecond)
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

// get returns the body of an answer with the status 200.
func get(address string) (string, error) {
	response, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(body), err
}
