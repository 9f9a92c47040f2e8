// Package supervise keeps the programs of one cluster running. It runs in a
// process of its own. The command up starts this process, and it keeps running
// when the command has ended.
package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/hack/localkube/api"
	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/network"
	"github.com/slipway-dev/slipway/hack/localkube/process"
)

const (
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 10 * time.Second
	// healthyAfter is how long a program must run before the backoff starts over.
	// It equals the longest wait: a program that has run for that long does no harm
	// when it is started again at once.
	healthyAfter = lastBackoff
	stopGrace    = 5 * time.Second
	logLimit     = 64 << 20
)

// Record is what the supervisor writes down about a running program.
type Record struct {
	process.Identity
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	LastExit string    `json:"lastExit,omitempty"`
}

// Supervisor is the name of the supervisor's own record.
const Supervisor = "supervisor"

// ReadRecord reads what was written down about a program.
func ReadRecord(c cluster.Cluster, name string) (Record, error) {
	var record Record
	content, err := os.ReadFile(recordPath(c, name))
	if err != nil {
		return record, err
	}
	return record, json.Unmarshal(content, &record)
}

func recordPath(c cluster.Cluster, name string) string { return c.Path("run", name+".json") }

func writeRecord(c cluster.Cluster, name string, record Record) error {
	content, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return cluster.WriteFile(recordPath(c, name), content, 0o644)
}

// Run supervises until the context ends, then stops every program.
func Run(ctx context.Context, c cluster.Cluster, log io.Writer) error {
	unlock, err := cluster.TryLock("supervisor " + c.Folder())
	if err != nil {
		return err
	}
	defer unlock()
	own, err := process.Identify(os.Getpid())
	if err != nil {
		return err
	}
	if err := writeRecord(c, Supervisor, Record{Identity: own, Since: time.Now()}); err != nil {
		return err
	}

	client, err := api.New(c)
	if err != nil {
		return err
	}
	apiReady := make(chan struct{})
	go func() {
		awaitAPI(ctx, client)
		close(apiReady)
	}()
	// etcd ends last: while the others end, they still write to the API server.
	etcdContext, stopEtcd := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEtcd()
	var others, etcd sync.WaitGroup
	for _, program := range Programs(c) {
		keeper := &keeper{cluster: c, program: program, log: log}
		if program.Name == "etcd" {
			etcd.Go(func() { keeper.run(etcdContext) })
			continue
		}
		others.Go(func() {
			if program.NeedsAPI {
				<-apiReady
			}
			keeper.run(ctx)
		})
	}
	others.Wait()
	stopEtcd()
	etcd.Wait()
	return nil
}

// awaitAPI returns when the API server serves for the first time, or when the
// context ends.
func awaitAPI(ctx context.Context, client *api.Client) {
	for client.Ready(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// keeper keeps one program running.
type keeper struct {
	cluster cluster.Cluster
	program Program
	log     io.Writer
}

func (k *keeper) run(ctx context.Context) {
	var record Record
	backoff := firstBackoff
	for ctx.Err() == nil {
		started := time.Now()
		err := k.once(ctx, &record)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > healthyAfter {
			backoff = firstBackoff
		}
		fmt.Fprintf(k.log, "%s %s ended (%v), starting it again in %s\n", time.Now().Format(time.RFC3339), k.program.Name, err, backoff)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
		record.Restarts++
		record.LastExit = fmt.Sprint(err)
		backoff = min(2*backoff, lastBackoff)
	}
}

// once starts the program and returns when it has ended.
func (k *keeper) once(ctx context.Context, record *Record) error {
	output, err := openLog(k.cluster.Path("logs", k.program.Name+".log"))
	if err != nil {
		return err
	}
	defer output.Close()

	line := network.Enter(k.cluster, k.program.Command...)
	command := exec.Command(line[0], line[1:]...)
	command.Stdout, command.Stderr = output, output
	command.Env = environment(k.cluster, k.program)
	// In a session of its own the program gets no signals from a terminal.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()

	record.Since = time.Now()
	// A program that has ended already has no identity, and needs no record.
	if record.Identity, err = process.Identify(command.Process.Pid); err == nil {
		if err := writeRecord(k.cluster, k.program.Name, *record); err != nil {
			fmt.Fprintf(k.log, "%s: %v\n", k.program.Name, err)
		}
	}
	return k.await(ctx, command, output, ended)
}

func (k *keeper) await(ctx context.Context, command *exec.Cmd, output *os.File, ended <-chan error) error {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = errors.New("exit status 0")
			}
			return err
		case <-ticker.C:
			limit(output)
		case <-ctx.Done():
			return stop(command, ended)
		}
	}
}

// stop needs no process.Identity: the kernel does not give the number of a child
// to another process before somebody has waited for the child.
func stop(command *exec.Cmd, ended <-chan error) error {
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(stopGrace):
	}
	_ = command.Process.Kill()
	return <-ended
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// limit empties a log that has grown too large. The log is open for appending, so
// the program goes on writing at the start of the empty file.
func limit(file *os.File) {
	if info, err := file.Stat(); err == nil && info.Size() > logLimit {
		_ = file.Truncate(0)
	}
}
