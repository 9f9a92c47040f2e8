package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// unread is a backend that accepts connections of HTTP/1, or requests of HTTP/2, and reads no body.
func unread(t *testing.T) map[string]string {
	hold := make(chan struct{})
	backends := map[string]string{
		"app": listen(t, func(net.Conn) { <-hold }),
		"h2":  serve(t, func(http.ResponseWriter, *http.Request) { <-hold }),
	}
	t.Cleanup(func() { close(hold) })
	return backends
}

// uploadUntilItBlocks sends a request until nobody takes more of it.
func uploadUntilItBlocks(t *testing.T, g *gateway) *net.TCPConn {
	t.Helper()
	conn := dialTCP(t, g.address)
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000000\r\n\r\n")
	for piece := make([]byte, 1<<20); ; {
		_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := conn.Write(piece); errors.Is(err, os.ErrDeadlineExceeded) {
			return conn
		} else if err != nil {
			return conn // it was answered meanwhile
		}
	}
}

// A backend that does not read the request is given up, whatever a route says of the time for a request.
func TestABackendThatDoesNotReadIsAnsweredFor(t *testing.T) {
	for service, address := range unread(t) {
		for _, timeouts := range []string{"request: 0s", "request: 1h", "backend: 0s", "backend: 1h"} {
			t.Run(service+", "+timeouts, func(t *testing.T) {
				t.Parallel()
				g := start(t, Options{Upstream: upstream.Options{SendTimeout: 200 * time.Millisecond}},
					fmt.Sprintf("- {backendService: {name: %s, port: 80}, timeouts: {%s}}", service, timeouts), address)
				conn := uploadUntilItBlocks(t, g)
				response, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // it is the connection
				if err != nil {
					t.Fatal(err)
				}
				want(t, "status", response.StatusCode, http.StatusGatewayTimeout)
			})
		}
	}
}

// A client of HTTP/1 that has gone keeps nothing up, though nobody reads from it.
func TestAnUploadThatNobodyReadsEndsWithItsClient(t *testing.T) {
	for service, address := range unread(t) {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			lines, log := io.Pipe()
			t.Cleanup(func() { _ = lines.Close() }) // so that the last lines are not waited for
			compiled := compile(t, fmt.Sprintf("- {backendService: {name: %s, port: 80}}", service), nil, address)
			compiled.Routes[0].Timeouts.Backend, compiled.Routes[0].Timeouts.Patient = 0, true
			g := startTable(t, Options{AccessLog: log, Upstream: upstream.Options{SendTimeout: 50 * time.Millisecond}}, compiled)
			conn := uploadUntilItBlocks(t, g)
			_ = conn.SetLinger(0)
			_ = conn.Close() // a reset
			line := make(chan string, 1)
			go func() {
				text, _ := bufio.NewReader(lines).ReadString('\n')
				line <- text
			}()
			select {
			case text := <-line:
				if !strings.Contains(text, "499") || !strings.Contains(text, "canceled") {
					t.Errorf("it ended with %s", text)
				}
			case <-time.After(5 * time.Second):
				t.Error("it does not end")
			}
		})
	}
}
