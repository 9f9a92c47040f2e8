// Package api asks a cluster's API server the few questions that starting a
// cluster and balancing its load need. Everything else is kubectl's work.
package api

import (
	"bytes"
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
func New(c cluster.Cluster) (*Client, error) { return NewFor(c, "bootstrap") }

// NewFor uses the certificate of one of the cluster's programs.
func NewFor(c cluster.Cluster, program string) (*Client, error) {
	certificate, err := tls.LoadX509KeyPair(c.Path("pki", program+".crt"), c.Path("pki", program+".key"))
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
	return For(c.Server(), &http.Client{Transport: transport, Timeout: 5 * time.Second}), nil
}

// For asks the API server at a URL. The timeout of the client is not for watches.
func For(server string, client *http.Client) *Client { return &Client{server: server, http: client} }

// Get reads a path into result, which may be nil.
func (c *Client) Get(ctx context.Context, path string, result any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return err
	}
	body, err := send(c.http, request)
	if err != nil {
		return err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(content, result)
}

// Merge changes the object at path: what the patch states, and nothing else.
func (c *Client) Merge(ctx context.Context, path string, patch any) error {
	content, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, c.server+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	body, err := send(c.http, request)
	if err != nil {
		return err
	}
	return body.Close()
}

// Watch hands every event of the watch at path to handle. It returns when the
// API server ends the watch, or when handle fails.
func (c *Client) Watch(ctx context.Context, path string, handle func(event json.RawMessage) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return err
	}
	// A watch lasts longer than any answer may take.
	body, err := send(&http.Client{Transport: c.http.Transport}, request)
	if err != nil {
		return err
	}
	defer body.Close()
	events := json.NewDecoder(body)
	for {
		var event json.RawMessage
		if err := events.Decode(&event); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := handle(event); err != nil {
			return err
		}
	}
}

// send returns the body of a good answer.
func send(client *http.Client, request *http.Request) (io.ReadCloser, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s: %s", request.URL.Path, response.Status)
	}
	return response.Body, nil
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
