package pki

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
)

// AdminGroup is the group of the administrator's certificate. It is bound to
// cluster-admin by an ordinary ClusterRoleBinding, so that RBAC applies to it.
const AdminGroup = "slipway:cluster-admins"

// Clients are the users of the cluster's own programs, by the name of their
// certificate's file.
func Clients(c cluster.Cluster) map[string]Subject {
	return map[string]Subject{
		"admin":                    {Name: "admin", Groups: []string{AdminGroup}},
		"bootstrap":                {Name: "bootstrap", Groups: []string{"system:masters"}},
		"apiserver-kubelet-client": {Name: "slipway:apiserver-kubelet-client"},
		"kubelet":                  {Name: "system:node:" + c.Name, Groups: []string{"system:nodes"}},
		"controller-manager":       {Name: "system:kube-controller-manager"},
		"scheduler":                {Name: "system:kube-scheduler"},
		"proxy":                    {Name: "system:kube-proxy"},
		"coredns":                  {Name: "slipway:coredns"},
		"provisioner":              {Name: "slipway:provisioner"},
		"load-balancer":            {Name: "slipway:load-balancer"},
	}
}

func servers(c cluster.Cluster) map[string]Subject {
	return map[string]Subject{
		"apiserver": {Name: "kube-apiserver", Hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			"localhost", "127.0.0.1", c.NodeAddress().String(), c.APIServiceAddress().String(),
		}},
		"kubelet-server": {Name: "system:node:" + c.Name, Hosts: []string{c.Name, c.NodeAddress().String()}},
	}
}

// Ensure writes the certificates that are not there yet. Those that are there
// stay, so that a repaired cluster keeps its identity.
func Ensure(c cluster.Cluster, now time.Time) error {
	folder := c.Path("pki")
	// Certificates are of no use without the authority that signed them.
	if _, err := os.Stat(filepath.Join(folder, "ca.crt")); os.IsNotExist(err) {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	authority, err := ensureAuthority(folder, "ca", now)
	if err != nil {
		return err
	}
	for _, subjects := range []map[string]Subject{Clients(c), servers(c)} {
		for name, subject := range subjects {
			issue := func() (Pair, error) { return authority.Issue(subject, now) }
			if _, err := ensurePair(folder, name, issue); err != nil {
				return err
			}
		}
	}
	frontProxy, err := ensureAuthority(folder, "front-proxy-ca", now)
	if err != nil {
		return err
	}
	issue := func() (Pair, error) { return frontProxy.Issue(Subject{Name: "front-proxy-client"}, now) }
	if _, err := ensurePair(folder, "front-proxy-client", issue); err != nil {
		return err
	}
	_, err = ensurePair(folder, "service-account", NewKeyPair)
	return err
}

func ensureAuthority(folder, name string, now time.Time) (Authority, error) {
	pair, err := ensurePair(folder, name, func() (Pair, error) {
		authority, err := NewAuthority("slipway-localkube-"+name, now)
		return authority.Pair, err
	})
	if err != nil {
		return Authority{}, err
	}
	return ParseAuthority(pair)
}

// ensurePair reads a pair, or makes one. The key is written first, so that a
// certificate is never there without its key after a crash.
func ensurePair(folder, name string, make func() (Pair, error)) (Pair, error) {
	certificateFile, keyFile := filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")
	certificate, certificateErr := os.ReadFile(certificateFile)
	key, keyErr := os.ReadFile(keyFile)
	if certificateErr == nil && keyErr == nil {
		return Pair{Certificate: certificate, Key: key}, nil
	}
	pair, err := make()
	if err != nil {
		return Pair{}, err
	}
	return pair, errors.Join(
		cluster.WriteFile(keyFile, pair.Key, 0o600),
		cluster.WriteFile(certificateFile, pair.Certificate, 0o644),
	)
}
