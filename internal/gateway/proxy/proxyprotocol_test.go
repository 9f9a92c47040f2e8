package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
)

const fromClient = "PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n"

// whoAsks answers with where the request came from.
func whoAsks(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, r.Header.Get("X-Forwarded-For"))
}

func TestTheHeaderOfTheLoadBalancerTellsTheClient(t *testing.T) {
	g := startServer(t, Options{}, ServerOptions{LoadBalancer: &LoadBalancer{}}, compile(t, toApp, nil, serve(t, whoAsks)))
	for name, tc := range map[string]struct{ sent, want string }{
		"a client":                      {fromClient + "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 192.0.2.1"},
		"one that claims to be a proxy": {fromClient + "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n", "200 192.0.2.1"},
		"a look of the load balancer":   {"PROXY UNKNOWN\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 127.0.0.1"},
		"one that sends a header, too":  {fromClient + "PROXY TCP4 203.0.113.9 192.0.2.2 1000 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		"one that sends none":           {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", g.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, tc.sent)
			if got := told(conn); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// told is the status and the content of a response.
func told(conn net.Conn) string {
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "closed"
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// Where no header is asked for, one is no request.
func TestAHeaderThatNobodyAskedForIsNotBelieved(t *testing.T) {
	g := start(t, Options{}, toApp, serve(t, whoAsks))
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, fromClient+"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if got := told(conn); !strings.HasPrefix(got, "400") {
		t.Errorf("got %q", got)
	}
}

func TestTheHeaderComesBeforeTLS(t *testing.T) {
	certificates := &Certificates{}
	if err := certificates.Set([]Certificate{certificate(t, 1, "example.com")}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	startServer(t, Options{}, ServerOptions{LoadBalancer: &LoadBalancer{}, HTTPS: listener, Certificates: certificates}, compile(t, toApp, nil, serve(t, whoAsks)))
	for _, protocol := range []string{"http/1.1", "h2"} {
		transport := &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}},
		}
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err == nil {
				_, err = io.WriteString(conn, fromClient)
			}
			return conn, err
		}
		response, err := (&http.Client{Transport: transport}).Get("https://example.com")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		transport.CloseIdleConnections()
		if string(body) != "192.0.2.1" {
			t.Errorf("%s: the client is %q", response.Proto, body)
		}
	}
}

// Clients are told apart by their headers: all of them come through the same load balancer.
func TestConnectionsCountForTheClientInTheHeader(t *testing.T) {
	g := startServer(t, Options{}, ServerOptions{LoadBalancer: &LoadBalancer{}}, nil)
	exempt := netip.MustParsePrefix("192.0.2.9/32")
	g.handler.Set(Config{
		Table: compile(t, toApp, nil, serve(t, whoAsks)), TrustedProxies: []netip.Prefix{exempt},
		Connections: connlimit.Limits{Total: 100, PerClient: 2, Exempt: []netip.Prefix{exempt}},
	})
	open := func(client string) string {
		conn, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = fmt.Fprintf(conn, "PROXY TCP4 %s 192.0.2.2 1000 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", client)
		return told(conn)
	}
	for i, tc := range []struct{ client, want string }{
		{"192.0.2.1", "200"},
		{"192.0.2.1", "200"},
		{"192.0.2.1", "closed"},
		{"192.0.2.2", "200"},
		{"127.0.0.1", "200"},
		{"192.0.2.9", "200"},
		{"192.0.2.9", "200"},
		{"192.0.2.9", "200"},
		{"192.0.2.2", "200"},
		{"192.0.2.2", "closed"},
	} {
		if got := open(tc.client); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%d, %s: got %q, want %s", i, tc.client, got, tc.want)
		}
	}
}
