// Package component builds the programs of a cluster from Go modules into a
// cache folder. What a program is made of is pinned by the go.mod and go.sum of
// its own module below components/.
package component

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Versions of what is built. The go.mod files pin the same versions; a test
// compares the two.
const (
	KubernetesVersion = "v1.36.3"
	EtcdVersion       = "v3.6.8"
	ContainerdVersion = "v2.4.2"
	CoreDNSVersion    = "v1.15.0"
)

// Component is one module below components/ and the programs it gives.
type Component struct {
	Name    string
	Version string
	// Packages are the main packages of the component.
	Packages []Package
	// Links are further names of the first program, which decides by its own
	// name what it does.
	Links []string
	// LinkerFlags are added to "-s -w".
	LinkerFlags string
	Tags        string
}

// Package is one main package and the name of the program built from it.
type Package struct {
	Program string
	Path    string
}

// All lists every component in the order they are built: what takes longest
// comes last, so that a mistake in a small one shows early.
func All() []Component {
	return []Component{Etcd(), pause(), coreDNS(), provisioner(), containerd(), Kubernetes()}
}

// Etcd is the API server's database.
func Etcd() Component {
	return Component{
		Name:     "etcd",
		Version:  EtcdVersion,
		Packages: []Package{{Program: "etcd", Path: "go.etcd.io/etcd/server/v3"}},
	}
}

// Kubernetes is every Kubernetes program in one binary.
func Kubernetes() Component {
	const version = "k8s.io/component-base/version."
	parts := strings.Split(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	return Component{
		Name:     "kubernetes",
		Version:  KubernetesVersion,
		Packages: []Package{{Program: "kubernetes", Path: "."}},
		Links: []string{
			"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
		},
		LinkerFlags: fmt.Sprintf("-X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=%[3]s -X %[1]sgitMinor=%[4]s",
			version, KubernetesVersion, parts[0], parts[1]),
	}
}

func containerd() Component {
	const module = "github.com/containerd/containerd/v2/"
	return Component{
		Name:    "containerd",
		Version: ContainerdVersion,
		Packages: []Package{
			{Program: "containerd", Path: module + "cmd/containerd"},
			{Program: "containerd-shim-runc-v2", Path: module + "cmd/containerd-shim-runc-v2"},
			{Program: "ctr", Path: module + "cmd/ctr"},
		},
		LinkerFlags: "-X " + module + "version.Version=" + ContainerdVersion,
		Tags:        "no_btrfs no_devmapper no_zfs",
	}
}

func coreDNS() Component {
	return Component{
		Name:     "coredns",
		Version:  CoreDNSVersion,
		Packages: []Package{{Program: "coredns", Path: "."}},
	}
}

func provisioner() Component {
	return Component{Name: "provisioner", Packages: []Package{{Program: "provisioner", Path: "."}}}
}

func pause() Component {
	return Component{Name: "pause", Packages: []Package{{Program: "pause", Path: "."}}}
}

// Hash identifies a build: it changes with the sources, the Go version, the
// platform and the flags, and with nothing else.
func (c Component) Hash(sources string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s/%s %+v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, c)
	root := filepath.Join(sources, c.Name)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
		return nil
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
