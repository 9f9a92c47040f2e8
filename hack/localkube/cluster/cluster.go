// Package cluster knows what belongs to one local cluster: its name, its
// addresses and the places of its files.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
)

// Slots is how many clusters fit on one machine: each has a network of its own,
// 10.200.0.0/16 and the ones that follow.
const Slots = 50

// DefaultRoot is where clusters keep their state.
const DefaultRoot = "/var/lib/slipway/localkube"

// Cluster is one local cluster. Everything else follows from these values.
type Cluster struct {
	Name string `json:"name"`
	// Root is the folder that holds every cluster's folder.
	Root string `json:"root"`
	// Slot numbers the cluster among those of the machine.
	Slot int `json:"slot"`
	// Fsync makes the database write through to the disk.
	Fsync bool `json:"fsync"`
	// Programs maps each component to the folder of its programs.
	Programs map[string]string `json:"programs,omitempty"`
	// Boot is the boot of the machine in which the cluster was last started.
	Boot string `json:"boot,omitempty"`
}

var validName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckName says what is wrong with a cluster's name.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf(
			"cluster name %q must be 1 to 40 lower case letters, digits and dashes, start with a letter and not end with a dash", name,
		)
	}
	return nil
}

// Folder holds everything the cluster keeps.
func (c Cluster) Folder() string { return filepath.Join(c.Root, c.Name) }

// Path is a path below the cluster's folder.
func (c Cluster) Path(elements ...string) string {
	return filepath.Join(append([]string{c.Folder()}, elements...)...)
}

// Kubeconfig is the administrator's.
func (c Cluster) Kubeconfig() string { return c.Path("kubeconfig") }

// NetworkNamespace is the file that keeps the cluster's network namespace alive.
func (c Cluster) NetworkNamespace() string { return c.Path("namespaces", "net") }

// MountNamespace is the file that keeps the cluster's mount namespace alive.
func (c Cluster) MountNamespace() string { return c.Path("namespaces", "private", "mnt") }

// Cgroup is the control group of the cluster's pods, seen from the root of each
// hierarchy.
func (c Cluster) Cgroup() string { return "/slipway-" + c.Name }

// HostInterface is the machine's end of the cable into the cluster.
func (c Cluster) HostInterface() string { return fmt.Sprintf("slipway%d", c.Slot) }

// Table is the machine's nftables table that lets pods reach the outside.
func (c Cluster) Table() string { return fmt.Sprintf("slipway%d", c.Slot) }

// Network holds every address of the cluster.
func (c Cluster) Network() netip.Prefix { return c.prefix(0, 16) }

// LoadBalancerNetwork is where Services of type LoadBalancer get their external
// addresses from.
func (c Cluster) LoadBalancerNetwork() netip.Prefix { return c.prefix(16, 20) }

// PodNetwork is where pods get their addresses from.
func (c Cluster) PodNetwork() netip.Prefix { return c.prefix(64, 18) }

// ServiceNetwork is where Services get their cluster IPs from.
func (c Cluster) ServiceNetwork() netip.Prefix { return c.prefix(128, 17) }

// HostAddress is the machine as pods and the node see it.
func (c Cluster) HostAddress() netip.Addr { return c.address(0, 1) }

// NodeAddress is the node and the API server.
func (c Cluster) NodeAddress() netip.Addr { return c.address(0, 2) }

// APIServiceAddress is the cluster IP of the Service kubernetes.
func (c Cluster) APIServiceAddress() netip.Addr { return c.address(128, 1) }

// DNSAddress is the cluster IP of the cluster's DNS.
func (c Cluster) DNSAddress() netip.Addr { return c.address(128, 10) }

// Program is the copy of this program that the cluster's own processes run.
func (c Cluster) Program() string { return c.Path("bin", "localkube") }

// Server is the URL of the API server.
func (c Cluster) Server() string { return fmt.Sprintf("https://%s:6443", c.NodeAddress()) }

func (c Cluster) prefix(third byte, bits int) netip.Prefix {
	return netip.PrefixFrom(c.address(third, 0), bits)
}

func (c Cluster) address(third, fourth byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(200 + c.Slot), third, fourth})
}

// PreferredSlot is the slot a name gets when it is free: the same name gets the
// same addresses every time.
func PreferredSlot(name string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return int(sum.Sum32() % Slots)
}

// ChooseSlot returns the first slot, beginning with the preferred one, whose
// network overlaps with none of those in use.
func ChooseSlot(name string, used []netip.Prefix) (int, error) {
	for offset := range Slots {
		candidate := Cluster{Slot: (PreferredSlot(name) + offset) % Slots}
		if !overlaps(candidate.Network(), used) {
			return candidate.Slot, nil
		}
	}
	return 0, fmt.Errorf("no free network for cluster %s: 10.200.0.0/16 to 10.%d.0.0/16 are all in use on this machine", name, 200+Slots-1)
}

func overlaps(network netip.Prefix, used []netip.Prefix) bool {
	for _, other := range used {
		if network.Overlaps(other) {
			return true
		}
	}
	return false
}

// ErrNone means that there is no cluster of that name.
var ErrNone = errors.New("no such cluster")

// Load reads a cluster's record.
func Load(root, name string) (Cluster, error) {
	loaded := Cluster{Name: name, Root: root}
	content, err := os.ReadFile(loaded.Path("cluster.json"))
	if os.IsNotExist(err) {
		return Cluster{}, ErrNone
	}
	if err != nil {
		return Cluster{}, err
	}
	if err := json.Unmarshal(content, &loaded); err != nil {
		return Cluster{}, fmt.Errorf("%s: %w", loaded.Path("cluster.json"), err)
	}
	// The folder may have been moved. And a file must never make localkube change
	// something outside of the cluster's folder.
	loaded.Name, loaded.Root = name, root
	return loaded, nil
}

// Networks lists the networks of every cluster below root, whether it runs or not.
func Networks(root string) []netip.Prefix {
	records, err := filepath.Glob(filepath.Join(root, "*", "cluster.json"))
	if err != nil {
		return nil
	}
	var networks []netip.Prefix
	for _, record := range records {
		if c, err := Load(root, filepath.Base(filepath.Dir(record))); err == nil {
			networks = append(networks, c.Network())
		}
	}
	return networks
}

// Marker is an environment variable that every process of the cluster outside
// of pods has: its programs and the shims that containerd starts.
func (c Cluster) Marker() string { return "SLIPWAY_LOCALKUBE=" + c.Folder() }

// Save writes the cluster's record.
func (c Cluster) Save() error {
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(c.Path("cluster.json"), content, 0o644)
}

// WriteFile writes a file whole or not at all, and makes its folder.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
