package livecluster

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// apiServerPort is where the API server of a local cluster listens.
const apiServerPort = 6443

// CutOff drops all that goes between a pod of the local cluster and the API server, both
// ways, until mend. Everybody else reaches the pod: the kubelet, the operator and clients.
// mend may be called more than once.
func (c *Cluster) CutOff(pod *corev1.Pod) (mend func() error, err error) {
	table := "slipway-cut-" + string(pod.UID)
	rules := fmt.Sprintf(`table ip %[1]s {
	chain to { type filter hook input priority -10; ip saddr %[2]s tcp dport %[3]d drop; }
	chain from { type filter hook output priority -10; ip daddr %[2]s tcp sport %[3]d drop; }
}
`, table, pod.Status.PodIP, apiServerPort)
	if err := c.nft(rules); err != nil {
		return nil, err
	}
	// Declared first, so that it is no error when it is gone.
	return func() error { return c.nft(fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\n", table)) }, nil
}

// nft changes the rules in the network of the cluster, where the API server is.
func (c *Cluster) nft(rules string) error {
	// Without a context: it must be undone when that of the test has ended, too.
	command := exec.Command("nsenter", "--net="+filepath.Join(c.folder, "namespaces", "net"), "nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
