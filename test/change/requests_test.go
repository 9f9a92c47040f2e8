//go:build e2e || change

package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

const (
	// requestTimeout is when a request counts as failed: that it is slow is not the
	// question here.
	requestTimeout = 30 * time.Second
	// perConnection is after how many requests a client begins new connections, so that
	// they spread over the pods there are.
	perConnection = 300
	// sharing is how many workers share an HTTP/2 connection.
	sharing = 4
)

// protocols are how requests are made, and by how many workers.
var protocols = []struct {
	name    string
	workers int
	client  func(*run) requester
}{
	{"HTTP/1.1", 6, func(r *run) requester { return r.web("http", false, http1) }},
	{"HTTP/1.1 with TLS", 3, func(r *run) requester { return r.web("https", false, http1) }},
	{"HTTP/1.1, a connection for each request", 1, func(r *run) requester { return r.web("http", true, http1) }},
	{"HTTP/2 with TLS", 8, func(r *run) requester { return r.web("https", false, http2) }},
	{"HTTP/2 without TLS", 4, func(r *run) requester { return r.web("http", false, h2c) }},
	{"gRPC", 4, func(r *run) requester { return r.rpc(insecure.NewCredentials(), "80") }},
	{"gRPC with TLS", 4, func(r *run) requester { return r.rpc(credentials.NewTLS(r.tls.Clone()), "443") }},
}

// isRequest tells requests from streams.
func isRequest(protocol string) bool { return !strings.HasPrefix(protocol, "stream") }

// requester makes requests. detail says which, for the report.
type requester interface {
	request(ctx context.Context, n int) (detail string, err error)
	close()
}

func http1(p *http.Protocols) { p.SetHTTP1(true) }
func http2(p *http.Protocols) { p.SetHTTP2(true) }
func h2c(p *http.Protocols)   { p.SetUnencryptedHTTP2(true) }

// load makes requests until the context ends, and returns when the last one has ended.
func (r *run) load(ctx context.Context) {
	workers := 0
	for _, p := range protocols {
		workers += p.workers
	}
	interval := time.Duration(workers) * time.Second / time.Duration(r.rate)
	var wait sync.WaitGroup
	defer wait.Wait()
	for _, p := range protocols {
		var shared requester
		for i := range p.workers {
			if shared == nil || i%sharing == 0 || strings.HasPrefix(p.name, "HTTP/1.1") {
				shared = p.client(r)
				defer shared.close()
			}
			client := shared
			wait.Go(func() { r.work(ctx, p.name, client, interval) })
		}
	}
	wait.Wait()
}

// work makes a request each interval. One under way when the context ends counts too.
func (r *run) work(ctx context.Context, protocol string, client requester, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		start := time.Now()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		detail, err := client.request(bounded, n)
		cancel()
		r.record.ended(protocol, start, detail, err)
	}
}

// transport reaches the gateway's Service, whatever name is asked for.
func (r *run) transport(protocols func(*http.Protocols)) *http.Transport {
	t := &http.Transport{
		DialContext:         r.dial,
		TLSClientConfig:     r.tls.Clone(),
		Protocols:           new(http.Protocols),
		MaxIdleConnsPerHost: sharing,
	}
	protocols(t.Protocols)
	return t
}

// dial connects to the same port of the gateway's Service.
func (r *run) dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(r.address, port))
}

// web makes requests with net/http.
type web struct {
	run       *run
	scheme    string
	transport *http.Transport
	client    *http.Client
}

func (r *run) web(scheme string, single bool, protocols func(*http.Protocols)) requester {
	t := r.transport(protocols)
	t.DisableKeepAlives = single
	return &web{r, scheme, t, &http.Client{Transport: t}}
}

func (w *web) close() { w.transport.CloseIdleConnections() }

// request chooses by number: kept and changed routes, with and without a body.
func (w *web) request(ctx context.Context, n int) (string, error) {
	if n%perConnection == perConnection-1 {
		w.transport.CloseIdleConnections()
	}
	switch n % 8 {
	case 0:
		return w.post(ctx, "/web/", 1<<10)
	case 1:
		return w.post(ctx, "/h2/", 1<<10)
	case 2:
		return w.get(ctx, "/h2/get")
	case 3:
		return w.get(ctx, "/abrupt/get")
	case 4, 5:
		path, release := w.run.extras.use(n)
		defer release()
		return w.get(ctx, path)
	case 6:
		if n%64 == 6 {
			return w.post(ctx, "/web/", 200<<10)
		}
	}
	return w.get(ctx, "/web/get")
}

func (w *web) get(ctx context.Context, path string) (string, error) {
	return "GET " + path, w.exchange(ctx, http.MethodGet, path, nil, path)
}

func (w *web) post(ctx context.Context, path string, size int) (string, error) {
	body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	return fmt.Sprintf("POST %s, %d bytes", path, size), w.exchange(ctx, http.MethodPost, path, body, string(body))
}

// exchange makes a request and compares what comes back.
func (w *web) exchange(ctx context.Context, method, path string, body []byte, want string) error {
	request, err := http.NewRequestWithContext(ctx, method, w.scheme+"://"+host+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("after %d bytes: %w", len(got), err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %.100q", response.Status, got)
	case string(got) != want:
		return fmt.Errorf("%d bytes that are not the %d expected: %.100q", len(got), len(want), got)
	}
	return nil
}

// rpc makes requests with gRPC.
type rpc struct {
	conn *grpc.ClientConn
	err  error
}

func (r *run) rpc(transport credentials.TransportCredentials, port string) requester {
	conn, err := grpc.NewClient(net.JoinHostPort(r.address, port), grpc.WithTransportCredentials(transport), grpc.WithAuthority(host))
	return &rpc{conn, err}
}

func (c *rpc) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

func (c *rpc) request(ctx context.Context, n int) (string, error) {
	if c.err != nil {
		return "dial", c.err
	}
	want := fmt.Appendf(nil, "message %d", n)
	response, err := testpb.NewTestServiceClient(c.conn).UnaryCall(ctx, &testpb.SimpleRequest{Payload: &testpb.Payload{Body: want}})
	if err == nil && !bytes.Equal(response.GetPayload().GetBody(), want) {
		err = errors.New("another message came back")
	}
	return "UnaryCall", err
}
