package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of /proc/PID/stat on Linux, for every architecture that Go runs on.
const ticksPerSecond = 100

// process is a program that runs on one core.
type process struct {
	name    string
	command *exec.Cmd
	stderr  *bytes.Buffer
	ended   chan struct{}
}

// start runs a program on one core, a Go program with one thread for Go code. It discards the standard output.
func (b *bench) start(ctx context.Context, cpu int, p proxy, c settings) (*process, error) {
	if err := p.write(c); err != nil {
		return nil, err
	}
	command := b.command(ctx, cpu, p.binary, p.args(c)...)
	// Caddy and Traefik keep files in the home folder.
	command.Env = append(os.Environ(), "GOMAXPROCS=1", "HOME="+c.Dir, "XDG_DATA_HOME="+c.Dir, "XDG_CONFIG_HOME="+c.Dir)
	command.Dir = c.Dir
	started := &process{name: p.name, command: command, stderr: new(bytes.Buffer), ended: make(chan struct{})}
	command.Stderr = started.stderr
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = command.Wait() // it ends by our signal, which is an error here
		close(started.ended)
	}()
	return started, nil
}

// command is a command on a core. A canceled context asks it to end. Both wrappers
// replace themselves by what they start, so the process is the program itself.
func (b *bench) command(ctx context.Context, cpu int, name string, args ...string) *exec.Cmd {
	wrapped := append([]string{"-n", strconv.Itoa(b.nice), "taskset", "-c", strconv.Itoa(cpu), name}, args...)
	command := exec.CommandContext(ctx, "nice", wrapped...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	return command
}

// stop ends the program and waits until it has ended.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	<-p.ended
}

// pids are the program and its children.
func (p *process) pids() ([]int, error) {
	pid := p.command.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", p.name, err, p.stderr)
	}
	pids := []int{pid}
	for field := range strings.FieldsSeq(string(children)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, child)
	}
	return pids, nil
}

// cpu is the processor time that the program and its children have used.
func (p *process) cpu() (time.Duration, error) {
	pids, err := p.pids()
	if err != nil {
		return 0, err
	}
	var ticks int64
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		used, err := ticksOf(string(stat))
		if err != nil {
			return 0, err
		}
		ticks += used
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// ticksOf reads the user and system time of /proc/PID/stat. The name of the program, in
// parentheses, may hold anything.
func ticksOf(stat string) (int64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields", len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return user + system, err
}

// busy is how long a core was busy since the machine started. Time that the hypervisor took away (steal) counts as busy.
func busy(cpu int) (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return busyOf(string(stat), cpu)
}

// busyOf reads /proc/stat: user, nice, system, idle, iowait, irq, softirq and steal of each core.
func busyOf(stat string, cpu int) (time.Duration, error) {
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] != "cpu"+strconv.Itoa(cpu) {
			continue
		}
		var ticks int64
		for _, i := range [...]int{1, 2, 3, 6, 7, 8} {
			value, err := strconv.ParseInt(fields[i], 10, 64)
			if err != nil {
				return 0, err
			}
			ticks += value
		}
		return time.Duration(ticks) * time.Second / ticksPerSecond, nil
	}
	return 0, fmt.Errorf("/proc/stat has no cpu%d", cpu)
}

// memory is what the program and its children have resident, in bytes, with what they share counted once.
func (p *process) memory() (int64, error) {
	pids, err := p.pids()
	if err != nil {
		return 0, err
	}
	var total int64
	for _, pid := range pids {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
		if err != nil {
			return 0, err
		}
		size, err := pssOf(string(text))
		if err != nil {
			return 0, err
		}
		total += size
	}
	return total, nil
}

// pssOf reads the proportional set size out of /proc/PID/smaps_rollup.
func pssOf(text string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no Pss in %q", text)
}

// freePort is a port that nobody listens at.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
