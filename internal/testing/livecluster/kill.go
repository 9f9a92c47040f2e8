package livecluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// errOther means that a process is not the one that was meant, or not any more.
var errOther = errors.New("another process")

// KillOperator ends the operator's process in a pod of the local cluster with SIGKILL, as
// a crash would. The kubelet starts the container again.
func (c *Cluster) KillOperator(pod *corev1.Pod) error {
	return signalPod(pod, "POD_NAME="+pod.Name, syscall.SIGKILL)
}

// PauseGateway stops the gateway's process in a pod of the local cluster, as a node that
// hangs would, until ResumeGateway. The kubelet notices after some seconds.
func (c *Cluster) PauseGateway(pod *corev1.Pod) error {
	return signalPod(pod, "POD_NAMESPACE="+pod.Namespace, syscall.SIGSTOP)
}

// ResumeGateway undoes PauseGateway.
func (c *Cluster) ResumeGateway(pod *corev1.Pod) error {
	return signalPod(pod, "POD_NAMESPACE="+pod.Namespace, syscall.SIGCONT)
}

// signalPod sends a signal to the process in a pod's control group that has the setting
// in its environment.
func signalPod(pod *corev1.Pod, setting string, signal syscall.Signal) error {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		// The pause container of the pod is in the pod's control group too, without the
		// variable; and the variable alone may have the same value in another cluster.
		cgroups, _ := os.ReadFile(filepath.Join(folder, "cgroup"))
		if !strings.Contains(string(cgroups), "pod"+string(pod.UID)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return err
		}
		if err := send(signal, pid, setting); !errors.Is(err, errOther) {
			return err
		}
	}
	return fmt.Errorf("pod %q has no process with %s", pod.Name, setting)
}

// KillProgram ends a program of the local cluster, etcd for example, with SIGKILL. The
// cluster's supervisor starts it again.
func (c *Cluster) KillProgram(name string) error {
	// This is what hack/localkube writes down about its programs.
	var record struct {
		PID int `json:"pid"`
	}
	content, err := os.ReadFile(filepath.Join(c.folder, "run", name+".json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, &record); err != nil {
		return err
	}
	if err := send(syscall.SIGKILL, record.PID, "SLIPWAY_LOCALKUBE="+c.folder); err != nil {
		return fmt.Errorf("%s does not run: %w", name, err)
	}
	return nil
}

// send sends a signal to the process of this number if the setting is in its environment.
// The handle is taken before the look, so that the kernel cannot give the number to
// another process in between.
func send(signal syscall.Signal, pid int, setting string) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }()
	environment, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if !slices.Contains(strings.Split(string(environment), "\x00"), setting) {
		return errOther
	}
	return process.Signal(signal)
}
