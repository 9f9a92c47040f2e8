// Package render writes the configuration of a cluster's programs.
package render

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/pki"
)

const (
	// PauseImage is the image of every pod's first container.
	PauseImage = "docker.io/slipway/pause:local"
	// Provisioner is the name that the StorageClass knows the provisioner by.
	Provisioner = "localkube.slipway.dev/directory"
	// FirstRegistryPort to LastRegistryPort are the ports of the machine at
	// which a registry may speak plain HTTP.
	FirstRegistryPort = 5000
	// LastRegistryPort is the last of them.
	LastRegistryPort = 5009
)

//go:embed templates
var templates embed.FS

// Values fills the templates.
type Values struct {
	Cluster     cluster.Cluster
	CNIPlugins  string
	Nameservers []string
}

// Path is a path below the cluster's folder.
func (v Values) Path(elements ...string) string { return v.Cluster.Path(elements...) }

// Socket is where containerd listens.
func (v Values) Socket() string { return Socket(v.Cluster) }

// PauseImage names the image of every pod's first container.
func (v Values) PauseImage() string { return PauseImage }

// AdminGroup is the administrators' group.
func (v Values) AdminGroup() string { return pki.AdminGroup }

// Provisioner is the storage provisioner's name.
func (v Values) Provisioner() string { return Provisioner }

// Socket is where a cluster's containerd listens.
func Socket(c cluster.Cluster) string { return c.Path("containerd", "containerd.sock") }

// Files writes every configuration file of the cluster. The certificates must
// be there.
func Files(values Values) error {
	c := values.Cluster
	targets := map[string]string{
		"containerd.toml": c.Path("config", "containerd.toml"),
		"cni.conflist":    c.Path("config", "cni", "10-slipway.conflist"),
		"kubelet.yaml":    c.Path("config", "kubelet.yaml"),
		"kube-proxy.yaml": c.Path("config", "kube-proxy.yaml"),
		"Corefile":        c.Path("config", "Corefile"),
		"manifests.yaml":  c.Path("config", "manifests.yaml"),
	}
	for name, target := range targets {
		content, err := execute(name, values)
		if err != nil {
			return err
		}
		if err := cluster.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	if err := cluster.WriteFile(c.Path("config", "resolv.conf"), resolvConf(values.Nameservers), 0o644); err != nil {
		return err
	}
	if err := registries(c); err != nil {
		return err
	}
	return kubeconfigs(c)
}

// registries lets the node pull from registries that run on the machine. Inside
// of the cluster's network localhost is the node, so images of localhost are
// pulled from the machine's address.
func registries(c cluster.Cluster) error {
	for port := FirstRegistryPort; port <= LastRegistryPort; port++ {
		address := net.JoinHostPort(c.HostAddress().String(), strconv.Itoa(port))
		content, err := execute("registry.toml", map[string]string{"Server": "http://" + address})
		if err != nil {
			return err
		}
		for _, host := range []string{c.HostAddress().String(), "localhost", "127.0.0.1"} {
			target := c.Path("config", "registries", fmt.Sprintf("%s_%d_", host, port), "hosts.toml")
			if err := cluster.WriteFile(target, content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// kubeconfigs writes one file per client certificate.
func kubeconfigs(c cluster.Cluster) error {
	ca, err := os.ReadFile(c.Path("pki", "ca.crt"))
	if err != nil {
		return err
	}
	for user := range pki.Clients(c) {
		certificate, err := os.ReadFile(c.Path("pki", user+".crt"))
		if err != nil {
			return err
		}
		key, err := os.ReadFile(c.Path("pki", user+".key"))
		if err != nil {
			return err
		}
		content, err := execute("kubeconfig", map[string]any{
			"Cluster":     c,
			"User":        user,
			"CA":          base64.StdEncoding.EncodeToString(ca),
			"Certificate": base64.StdEncoding.EncodeToString(certificate),
			"Key":         base64.StdEncoding.EncodeToString(key),
		})
		if err != nil {
			return err
		}
		target := c.Path("config", user+".kubeconfig")
		if user == "admin" {
			target = c.Kubeconfig()
		}
		if err := cluster.WriteFile(target, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func execute(name string, values any) ([]byte, error) {
	parsed, err := template.New(name).Option("missingkey=error").ParseFS(templates, filepath.Join("templates", name))
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	if err := parsed.Execute(&buffer, values); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// MachineNameservers reads the name servers that a cluster can reach. It cannot
// reach a stub resolver at a loopback address of the machine. The second file lists
// the servers that such a stub asks.
func MachineNameservers() []string {
	for _, path := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if found := parseNameservers(content); len(found) > 0 {
			return found
		}
	}
	return nil
}

func parseNameservers(content []byte) []string {
	var found []string
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		address, err := netip.ParseAddr(fields[1])
		if err != nil || address.IsLoopback() || !address.Is4() {
			continue
		}
		found = append(found, address.String())
	}
	return found
}

func resolvConf(nameservers []string) []byte {
	var content strings.Builder
	for _, nameserver := range nameservers {
		content.WriteString("nameserver " + nameserver + "\n")
	}
	return []byte(content.String())
}
