package gatewayattack

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// credulous is a proxy that gives clients of HTTP/1.1 what backends over HTTP/2 say, as golang.org/x/net/http2 reads it.
type credulous struct {
	transport *http2.Transport
	// polite ends what a backend has cut as if it were whole.
	polite bool
}

func (c *credulous) start(t *testing.T, lanes []*lane, quiet time.Duration) *target {
	t.Helper()
	addresses := map[string]string{}
	for _, l := range lanes {
		addresses[l.host] = l.address
	}
	c.transport = &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, _, host string, _ *tls.Config) (net.Conn, error) {
		host, _, _ = net.SplitHostPort(host)
		return (&net.Dialer{}).DialContext(ctx, "tcp", addresses[host])
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(); c.transport.CloseIdleConnections() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return &target{name: "a credulous proxy", plain: listener.Addr().String(), patience: patience{answer: max(time.Second, 4*quiet), quiet: quiet}}
}

func (c *credulous) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	var buffer []byte
	piece := make([]byte, 32<<10)
	for {
		m, used, state := strictly.next(buffer)
		if state == broken {
			return
		}
		if state == whole {
			if c.forward(conn, m) != nil {
				return
			}
			buffer = buffer[used:]
			continue
		}
		n, err := conn.Read(piece)
		if err != nil {
			return
		}
		buffer = append(buffer, piece[:n]...)
	}
}

func (c *credulous) forward(to io.Writer, m *message) error {
	request, err := http.NewRequest(m.method, "http://"+m.value("host")+m.target, nil)
	if err != nil {
		return err
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		_, err = io.WriteString(to, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return err
	}
	defer response.Body.Close()
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d X\r\n", response.StatusCode)
	for name, values := range response.Header {
		for _, value := range values {
			fmt.Fprintf(&head, "%s: %s\r\n", name, value)
		}
	}
	if response.Header.Get("Content-Length") == "" {
		body, failure := io.ReadAll(response.Body)
		fmt.Fprintf(&head, "Content-Length: %d\r\n\r\n%s", len(body), body)
		_, err = to.Write(head.Bytes())
		if !c.polite {
			err = errors.Join(err, failure)
		}
		return err
	}
	head.WriteString("\r\n")
	if _, err := to.Write(head.Bytes()); err != nil {
		return err
	}
	_, err = io.Copy(to, response.Body)
	return err
}

// Each oracle of answers can fail: what is wrong with a proxy that believes its backends is found by attacks of the family.
func TestACredulousProxyIsFound(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		family, oracle string
		proxy          credulous
	}{
		{"lengths of answers, HTTP/2 backend", oracleHead, credulous{}},
		{"lengths of answers, HTTP/2 backend", oracleAnswers, credulous{}},
		{"lengths of answers, HTTP/2 backend", oracleReused, credulous{}},
		{"bodies of answers, HTTP/2 backend", oracleWhole, credulous{polite: true}},
		{"answers without a body, HTTP/2 backend", oracleHead, credulous{}},
	} {
		t.Run(fault.family+"/"+fault.oracle, func(t *testing.T) {
			t.Parallel()
			lanes := hostileLanes2(t, loopback, nil)
			s := &suite{target: fault.proxy.start(t, lanes, 80*time.Millisecond), lanes: lanes}
			var attacks []*attack
			for _, a := range backendAnswers() {
				if a.family == fault.family && len(a.h1) > 0 && len(attacks) < 24 {
					attacks = append(attacks, a)
				}
			}
			s.run(attacks)
			if found := s.violations(); found[fault.oracle] == 0 {
				t.Errorf("%d attacks, and not one finds it by %q; found: %v", len(s.played), fault.oracle, found)
			}
		})
	}
}
