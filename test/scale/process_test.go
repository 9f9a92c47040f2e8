//go:build scale

package scale

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// process is a running operator process.
type process struct {
	command *exec.Cmd
	address string
	ended   chan error
	stopped bool
}

// startOperator starts the operator and waits until its caches are filled.
func startOperator(t *testing.T, s *server) *process {
	t.Helper()
	p := launchOperator(t, s)
	p.await(t, "caches", func(now state) bool { return now.Synced > 0 })
	return p
}

// launchOperator starts the operator.
func launchOperator(t *testing.T, s *server) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatalf("find the binary: %v", err)
	}
	p := &process{command: exec.Command(binary), ended: make(chan error, 1)}
	p.command.Env = append(os.Environ(), operatorEnv+"="+s.kubeconfig)
	p.command.Stderr = os.Stderr
	// The operator must not outlive a benchmark that is killed.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatalf("start the operator: %v", err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatalf("start the operator: %v", err)
	}
	t.Cleanup(func() { p.stop(t) })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the operator ended before it said where its instruments are")
	}
	p.address = lines.Text()
	go func() { p.ended <- p.command.Wait() }()
	return p
}

// stop stops the operator and waits for its end. It may be called twice.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.stopped {
		return
	}
	p.stopped = true
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("stop the operator: %v", err)
	}
	if err := <-p.ended; err != nil {
		t.Errorf("the operator ended with: %v", err)
	}
}

func ask[T any](t *testing.T, p *process, path string) T {
	t.Helper()
	var value T
	response, err := http.Get(p.address + path)
	if err != nil {
		t.Fatalf("ask the operator: %v", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&value); err != nil {
		t.Fatalf("read the operator's answer: %v", err)
	}
	return value
}

func (p *process) state(t *testing.T) state {
	t.Helper()
	return ask[state](t, p, "/state")
}

func (p *process) memory(t *testing.T) memory {
	t.Helper()
	return ask[memory](t, p, "/memory")
}

// peak is the highest resident memory of the process so far, in bytes.
func (p *process) peak() uint64 {
	return resident(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid), "VmHWM:")
}

// requests are all requests of the process so far.
func (s state) requests() requests.Counts {
	counts := requests.Counts{}
	for _, c := range s.Requests {
		counts[c.Kind] = c.N
	}
	return counts
}

// await asks for the state until check is content.
func (p *process) await(t *testing.T, what string, check func(state) bool) state {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		now := p.state(t)
		if check(now) {
			return now
		}
		select {
		case <-deadline:
			t.Fatalf("waiting for %s: %+v", what, now)
		case <-tick.C:
		}
	}
}

// rest waits until nothing is queued, and no request and no reconcile has been made for a
// while.
func (p *process) rest(t *testing.T) state {
	t.Helper()
	const while = time.Second
	last, since := p.state(t), time.Now()
	return p.await(t, "quiet", func(now state) bool {
		if now.Reconciles != last.Reconciles || now.Waiting > 0 || now.requests().String() != last.requests().String() {
			last, since = now, time.Now()
		}
		return time.Since(since) >= while
	})
}

// profile saves a profile of the operator in the folder that BENCH_PROFILE names. It
// returns at once for heap, and after the time for profile?seconds=n.
func (p *process) profile(t *testing.T, name, kind string) {
	folder := os.Getenv("BENCH_PROFILE")
	if folder == "" {
		return
	}
	response, err := http.Get(p.address + "/debug/pprof/" + kind)
	if err != nil {
		t.Errorf("profile: %v", err)
		return
	}
	defer response.Body.Close()
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		t.Errorf("profile: %v", err)
		return
	}
	defer file.Close()
	if _, err := io.Copy(file, response.Body); err != nil {
		t.Errorf("profile: %v", err)
	}
}

// resident reads a line of a process's status that is given in kB.
func resident(path, line string) uint64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), line)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// allProcessorTime is what this process and those that it has started have used: API
// server, etcd and operator. Unlike a time by the clock it hardly depends on what else
// the machine does.
func allProcessorTime() time.Duration {
	sum := processorTime()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return sum
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended.
		}
		// After the name, which may hold anything: state, parent, and, twelfth and
		// thirteenth, user and system time in hundredths of a second.
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, field := range fields[11:13] {
			ticks, err := strconv.Atoi(field)
			if err == nil {
				sum += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return sum
}
