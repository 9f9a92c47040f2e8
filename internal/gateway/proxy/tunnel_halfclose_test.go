package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// upgraded is a backend that switches the protocol. Then it sends what it got once the client's side has ended, and ends its own; on
// /first it ends its own side first, and returns on a channel what came then.
func upgraded(t *testing.T) (address string, came <-chan string) {
	later := make(chan string, 1)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(raw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n")
		if r.URL.Path == "/first" {
			_, _ = io.WriteString(raw, "bye")
			_ = raw.(*net.TCPConn).CloseWrite()
		}
		got, err := io.ReadAll(buffered)
		if r.URL.Path == "/first" {
			later <- fmt.Sprintf("%s, %v", got, err)
			return
		}
		_, _ = fmt.Fprintf(raw, "got %s, %v", got, err)
	}), later
}

// Each side of an upgraded connection ends for itself, with TLS and without.
func TestEachSideOfAnUpgradedConnectionEndsForItself(t *testing.T) {
	g, _, _, address := startIdentified(t, nil)
	backend, came := upgraded(t)
	g.handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	for port, version := range map[string]uint16{"HTTP": 0, "TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		to := g.address
		if version != 0 {
			to = address
		}
		upgrade := func(t *testing.T, path, early string) (*net.TCPConn, net.Conn, *tls.Conn, *bufio.Reader) {
			plain, conn, secure := connect(t, to, version)
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n"+early); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			if response, err := http.ReadResponse(in, nil); err != nil || response.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // it is the connection
				t.Fatal(response, err)
			}
			return plain, conn, secure, in
		}
		for of, end := range ends {
			if version == 0 && of != "the connection" || version != 0 && of == "the connection" {
				continue
			}
			for name, early := range map[string]string{"": "", ", sent with the head": "early "} {
				t.Run(port+", the client ends "+of+name, func(t *testing.T) {
					plain, conn, secure, in := upgrade(t, "/", early)
					_, _ = io.WriteString(conn, "all of it")
					end(t, plain, secure)
					if got, err := io.ReadAll(in); string(got) != "got "+early+"all of it, <nil>" || err != nil {
						t.Errorf("got %q, %v", got, err)
					}
				})
			}
		}
		t.Run(port+", the backend ends", func(t *testing.T) {
			plain, conn, secure, in := upgrade(t, "/first", "")
			if got, err := io.ReadAll(in); string(got) != "bye" || err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
			_, _ = io.WriteString(conn, "later")
			if secure != nil {
				_ = secure.CloseWrite()
			}
			_ = plain.CloseWrite()
			if got := <-came; got != "later, <nil>" { // before the test ends, and the gateway with it
				t.Errorf("the backend got %s", got)
			}
		})
	}
}
