// Package api asks a cluster's API server the few questions that starting a
// cluster needs. Everything else is kubectl's work.
package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
)

// Client talks to one cluster's API server.
type Client struct {
	server string
	http   *http.Client
}

// New uses the certificate that the cluster was set up with, which works before
// any role is bound.
func New(c cluster.Cluster) (*Client, error) {
	certificate, err := tls.LoadX509KeyPair(c.Path("pki", "bootstrap.crt"), c.Path("pki", "bootstrap.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(c.Path("pki", "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("the cluster's CA certificate cannot be read")
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	return &Client{server: c.Server(), http: &http.Client{Transport: transport, Timeout: 5 * time.Second}}, nil
}

// Get reads a path into result, which may be nil.
func (c *Client) Get(ctx context.Context, path string, result any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(body, result)
}

// Ready returns an error unless the API server serves.
func (c *Client) Ready(ctx context.Context) error { return c.Get(ctx, "/readyz", nil) }

// NodeReady returns the reason why the node is not ready, or nil.
func (c *Client) NodeReady(ctx context.Context, name string) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
		Spec struct {
			Taints []struct{ Key, Effect string }
		}
	}
	if err := c.Get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != "Ready" {
			continue
		}
		if condition.Status != "True" {
			return fmt.Errorf("node %s is not ready: %s", name, condition.Message)
		}
		// A ready node keeps its taint for a moment, and pods wait for that too.
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %s is tainted: %s", name, node.Spec.Taints[0].Key)
		}
		return nil
	}
	return fmt.Errorf("node %s has not reported yet", name)
}

// NodeRenewedSince returns an error unless the kubelet has reported since then. The
// API server can still show a node as ready when its kubelet ended long ago.
func (c *Client) NodeRenewedSince(ctx context.Context, name string, since time.Time) error {
	var lease struct {
		Spec struct{ RenewTime time.Time }
	}
	if err := c.Get(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+name, &lease); err != nil {
		return err
	}
	if lease.Spec.RenewTime.Before(since) {
		return fmt.Errorf("node %s has not reported since its kubelet started", name)
	}
	return nil
}

// DefaultStorageClass returns an error unless there is one.
func (c *Client) DefaultStorageClass(ctx context.Context) error {
	var classes struct {
		Items []struct {
			Metadata struct{ Annotations map[string]string }
		}
	}
	if err := c.Get(ctx, "/apis/storage.k8s.io/v1/storageclasses", &classes); err != nil {
		return err
	}
	for _, class := range classes.Items {
		if class.Metadata.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return nil
		}
	}
	return errors.New("there is no default StorageClass")
}
