//go:build monitorbench

package monitorbench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// goLimit is what Go may use in the container of config/monitor, which has 640 MiB.
const goLimit = "GOMEMLIMIT=576MiB"

// process is the monitor, or the watcher that it is compared with.
type process struct {
	t                             *testing.T
	role                          string
	folder, config, access        string
	metrics, debug, api, reported string
	environment                   []string
	log                           *os.File
	command                       *exec.Cmd
	// spent is the processor time of lives that have ended.
	spent time.Duration
}

// settings change a process.
type settings struct {
	// program is what to run. Default: this binary, as the monitor with figures of its heap.
	program string
	role    string
	// server is where the API server is, when it is not where the access says.
	server string
	// reported makes the monitor write a line for each change that is stored.
	reported bool
	// store is the folder of the history. Default: a new one.
	store string
	// more is added to the configuration.
	more string
}

// newProcess makes a process, and does not start it.
func newProcess(t *testing.T, access *rest.Config, s settings) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{
		t: t, role: s.role, folder: s.store, config: filepath.Join(dir, "config.yaml"), access: filepath.Join(dir, "kubeconfig"),
		reported: filepath.Join(dir, "told"), metrics: freeAddress(t), debug: freeAddress(t), api: freeAddress(t),
	}
	if p.role == "" {
		p.role = monitorRole
	}
	if p.folder == "" {
		p.folder = filepath.Join(dir, "store")
	}
	writeAccess(t, access, s.server, p.access)
	content := fmt.Sprintf("store: {folder: %q, maxBytes: 8Gi}\nlisten: {metrics: %q, metricsAuthentication: false, probes: %q, api: %q}\n%s", p.folder, p.metrics, freeAddress(t), p.api, s.more)
	if err := os.WriteFile(p.config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	p.environment = append(os.Environ(), goLimit, childEnv+"="+p.role, "BENCH_CHILD_DEBUG="+p.debug)
	if s.reported || p.role == plainRole {
		p.environment = append(p.environment, "BENCH_CHILD_TOLD="+p.reported)
	}
	if s.program != "" {
		p.environment = append(os.Environ(), goLimit)
		p.command = &exec.Cmd{Path: s.program}
	} else if own, err := os.Executable(); err != nil {
		t.Fatal(err)
	} else {
		p.command = &exec.Cmd{Path: own}
	}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() {
			said, _ := os.ReadFile(p.log.Name())
			t.Logf("the %s said:\n%s", p.role, said[max(0, len(said)-4000):])
		}
		_ = p.log.Close()
	})
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free.Close() }()
	return free.Addr().String()
}

func writeAccess(t *testing.T, access *rest.Config, server, path string) {
	t.Helper()
	if server == "" {
		server = access.Host
	}
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server, CertificateAuthorityData: access.CAData, InsecureSkipTLSVerify: access.Insecure}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: access.CertData, ClientKeyData: access.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
}

// start starts the process. It may be started again when it has ended.
func (p *process) start() {
	p.t.Helper()
	arguments := []string{"--config", p.config, "--kubeconfig", p.access}
	p.command = exec.Command(p.command.Path, arguments...)
	p.command.Env, p.command.Stderr = p.environment, p.log
	if err := p.command.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) running() bool {
	return p.command != nil && p.command.Process != nil && p.command.ProcessState == nil
}

// end ends the process with a signal, and waits for it.
func (p *process) end(signal syscall.Signal) {
	if !p.running() {
		return
	}
	_ = p.command.Process.Signal(signal)
	_ = p.command.Wait()
	p.spent += p.command.ProcessState.UserTime() + p.command.ProcessState.SystemTime()
}

// cpu is the processor time that the process has used, all its lives together.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err := errors.Join(err1, err2); err != nil {
		p.t.Fatal(err)
	}
	return p.spent + time.Duration(user+system)*(time.Second/100) // the system counts in hundredths
}

// memory is what is resident, now and at most, in bytes.
func (p *process) memory() (now, most int64) {
	p.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "VmRSS" && name != "VmHWM" {
			continue
		}
		kibibytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		if name == "VmRSS" {
			now = kibibytes << 10
		} else {
			most = kibibytes << 10
		}
	}
	return now, most
}

// forgetPeak makes the system begin anew to find what is resident at most.
func (p *process) forgetPeak() {
	p.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.command.Process.Pid), []byte("5"), 0); err != nil {
		p.t.Fatal(err)
	}
}

// get asks the process something.
func (p *process) get(address, path string) ([]byte, error) {
	response, err := (&http.Client{Timeout: 2 * time.Minute}).Get("http://" + address + path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}

// figures are the metrics of the monitor, by their names with their labels.
func (p *process) figures() (map[string]float64, error) {
	body, err := p.get(p.metrics, "/metrics")
	if err != nil {
		return nil, err
	}
	figures := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), " "); found && !strings.HasPrefix(name, "#") {
			figures[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	return figures, nil
}

// records are how many records are stored, without gaps and what was there at first.
func records(figures map[string]float64) int {
	sum := 0.0
	for _, kind := range []string{"Created", "Updated", "Deleted"} {
		sum += figures[`slipway_monitor_records_total{type="`+kind+`"}`]
	}
	return int(sum)
}

// follows waits until the monitor sees all changes of that many kinds, beside the definitions, which it records too.
func (p *process) follows(kinds int, patience time.Duration) {
	p.t.Helper()
	eventually(p.t, patience, fmt.Sprintf("%d kinds that are live", kinds), func() error {
		figures, err := p.figures()
		if err != nil {
			return err
		}
		live := figures[`slipway_monitor_kinds{state="Live"}`]
		if int(live) < kinds+1 {
			return fmt.Errorf("%v kinds are live, %v are listed, %v wait", live, figures[`slipway_monitor_kinds{state="Listing"}`], figures[`slipway_monitor_kinds{state="Pending"}`])
		}
		return nil
	})
}

// stored waits until that many changes are on the disk.
func (p *process) stored(changes int, patience time.Duration) {
	p.t.Helper()
	eventually(p.t, patience, fmt.Sprintf("%d changes in the store", changes), func() error {
		figures, err := p.figures()
		if err != nil {
			return err
		}
		if now := records(figures); now < changes {
			return fmt.Errorf("%d are stored, and %v wait", now, figures["slipway_monitor_waiting_events"])
		}
		return nil
	})
}

// inside is what the child says of itself, after its garbage was collected.
type inside struct {
	Heap, Stacks, Goroutines                                    int64
	Bytes, StateBytes, SnapshotBytes, Changes, Written, Commits int64
}

func (p *process) inside() inside {
	p.t.Helper()
	now := inside{}
	eventually(p.t, time.Minute, "what the process says of itself", func() error {
		body, err := p.get(p.debug, "/inside")
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &now)
	})
	return now
}

// profile lets the child write profiles of the next seconds into the folder that BENCH_PROFILE names.
func (p *process) profile(name string, during time.Duration) (wait func()) {
	folder := os.Getenv("BENCH_PROFILE")
	if folder == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body, err := p.get(p.debug, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(during.Seconds()))))
		if err == nil {
			_ = os.WriteFile(filepath.Join(folder, name+".cpu"), body, 0o600)
		}
		p.heap(name)
	}()
	return func() { <-done }
}

// heap lets the child write a profile of its heap into that folder.
func (p *process) heap(name string) {
	folder := os.Getenv("BENCH_PROFILE")
	if folder == "" {
		return
	}
	if body, err := p.get(p.debug, "/debug/pprof/heap?gc=1"); err == nil {
		_ = os.WriteFile(filepath.Join(folder, name+".heap"), body, 0o600)
	}
}
