package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// slowly answers a request when its client has not left for a moment, with what came of it.
func slowly(t *testing.T) (address string, began, left chan struct{}) {
	began, left = make(chan struct{}, 1), make(chan struct{}, 1)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		began <- struct{}{}
		wait := 50 * time.Millisecond
		if r.URL.Path == "/late" { // a stream, too
			<-time.After(wait)
		}
		if r.URL.Path != "/" {
			wait = 10 * time.Second
		}
		if r.URL.Path == "/stream" || r.URL.Path == "/late" {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-r.Context().Done():
			left <- struct{}{}
		case <-time.After(wait):
			_, _ = io.WriteString(w, r.Method+" "+string(body))
		}
	}), began, left
}

// requests of HTTP/1.1, with what is answered.
var halfClosed = map[string]struct{ request, want string }{
	"without a body":       {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET "},
	"with a length":        {"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody", "POST body"},
	"chunked":              {"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", "POST body"},
	"larger than is kept":  {"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 50000\r\n\r\n" + strings.Repeat("x", 50000), "POST " + strings.Repeat("x", 50000)},
	"two after each other": {"GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET "},
}

// ends are the ways in which a client ends its side. A request in HTTP/1.1 is complete without it.
var ends = map[string]func(t *testing.T, plain *net.TCPConn, secure *tls.Conn){
	"the connection": func(t *testing.T, plain *net.TCPConn, _ *tls.Conn) {
		if err := plain.CloseWrite(); err != nil {
			t.Error(err)
		}
	},
	"TLS": func(t *testing.T, _ *net.TCPConn, secure *tls.Conn) {
		if err := secure.CloseWrite(); err != nil {
			t.Error(err)
		}
	},
	"TLS and the connection": func(t *testing.T, plain *net.TCPConn, secure *tls.Conn) {
		if err := secure.CloseWrite(); err != nil {
			t.Error(err)
		}
		_ = plain.CloseWrite()
	},
}

// connect opens a connection to a gateway, with TLS if version is set.
func connect(t *testing.T, address string, version uint16) (plain *net.TCPConn, conn net.Conn, secure *tls.Conn) {
	plain = dialTCP(t, address)
	if version == 0 {
		return plain, plain, nil
	}
	secure = tls.Client(plain, &tls.Config{ServerName: "a.test", InsecureSkipVerify: true, MaxVersion: version})
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	return plain, secure, secure
}

func TestAClientThatEndsItsSideGetsItsAnswer(t *testing.T) {
	backend, began, _ := slowly(t)
	g, _, _, address := startIdentified(t, nil)
	g.handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	for port, version := range map[string]uint16{"HTTP": 0, "TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		for name, tc := range halfClosed {
			for of, end := range ends {
				if version == 0 && strings.HasPrefix(of, "TLS") {
					continue
				}
				t.Run(port+", "+name+", ends "+of, func(t *testing.T) {
					to := g.address
					if version != 0 {
						to = address
					}
					plain, conn, secure := connect(t, to, version)
					if _, err := io.WriteString(conn, tc.request); err != nil {
						t.Fatal(err)
					}
					end(t, plain, secure)
					in := bufio.NewReader(conn)
					for range strings.Count(tc.request, "HTTP/1.1") {
						select {
						case <-began:
						case <-time.After(5 * time.Second):
							t.Fatal("the backend is not asked")
						}
						response, err := http.ReadResponse(in, nil) //nolint:bodyclose // it is the connection
						if err != nil {
							t.Fatal(err)
						}
						if body, err := io.ReadAll(response.Body); string(body) != tc.want || err != nil {
							t.Errorf("got %d %.20q, %v", response.StatusCode, body, err)
						}
					}
					if _, err := in.ReadByte(); err == nil {
						t.Error("more comes")
					}
				})
			}
		}
	}
}

// Whoever has certainly left costs the backend nothing more, also after it has ended its side.
func TestAClientThatLeavesEndsItsRequest(t *testing.T) {
	backend, began, left := slowly(t)
	g, _, _, address := startIdentified(t, nil)
	g.handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	for port, version := range map[string]uint16{"HTTP": 0, "TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		for name, half := range map[string]bool{"at once": false, "after its side": true} {
			t.Run(port+", "+name, func(t *testing.T) {
				to := g.address
				if version != 0 {
					to = address
				}
				plain, conn, _ := connect(t, to, version)
				if _, err := io.WriteString(conn, "POST /leave HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody"); err != nil {
					t.Fatal(err)
				}
				<-began
				if half {
					_ = plain.CloseWrite()
				}
				_ = plain.SetLinger(0) // closing resets the connection
				plain.Close()
				<-left
			})
		}
	}
}

// A stream may be silent, so nobody would notice for long that nobody takes it.
func TestAClientThatEndsItsSideDuringAStreamHasLeft(t *testing.T) {
	backend, began, left := slowly(t)
	g, _, _, address := startIdentified(t, nil)
	g.handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	for port, version := range map[string]uint16{"HTTP": 0, "TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(port, func(t *testing.T) {
			to := g.address
			if version != 0 {
				to = address
			}
			plain, conn, _ := connect(t, to, version)
			if _, err := io.WriteString(conn, "GET /stream HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-began
			if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil { //nolint:bodyclose // it is the connection
				t.Fatal(err)
			}
			_ = plain.CloseWrite()
			<-left
		})
	}
}

// notices waits until the backend of slowly is told that the client has left.
func notices(t *testing.T, left chan struct{}) {
	t.Helper()
	select {
	case <-left:
	case <-time.After(5 * time.Second):
		t.Error("nobody notices that the client has left")
		<-left
	}
}

// What has ended before the head of a stream tells nothing any more while it comes.
func TestAClientThatEndsItsSideBeforeAStreamHasLeft(t *testing.T) {
	backend, began, left := slowly(t)
	g, _, _, address := startIdentified(t, nil)
	g.handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	for port, version := range map[string]uint16{"HTTP": 0, "TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		for of, end := range ends {
			if version == 0 && strings.HasPrefix(of, "TLS") {
				continue
			}
			t.Run(port+", ends "+of, func(t *testing.T) {
				to := g.address
				if version != 0 {
					to = address
				}
				plain, conn, secure := connect(t, to, version)
				if _, err := io.WriteString(conn, "GET /late HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				<-began
				end(t, plain, secure)
				notices(t, left)
			})
		}
	}
}

// The last read of a frame's header may be one of a single byte, as the read of net/http while it serves a request of HTTP/1 is.
func TestAClientOfHTTP2ThatEndsItsSideHasLeft(t *testing.T) {
	backend, began, left := slowly(t)
	g := start(t, Options{}, toApp, backend)
	for _, more := range []string{"", "\x00", strings.Repeat("\x00", 8)} {
		conn := dialTCP(t, g.address)
		f := g.framesOn(conn)
		f.open(1, true, ":method", "GET", ":scheme", "http", ":authority", "a.test", ":path", "/leave")
		<-began
		_, _ = io.WriteString(conn, more)
		_ = conn.CloseWrite()
		notices(t, left)
	}
}

// source is a connection from which bytes come as fast as they are read.
type source struct {
	net.Conn

	left  []byte
	reads int
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	s.reads++
	return n, nil
}

// However short the records of TLS are, what comes costs by its size.
func TestShortRecordsCostByTheirSize(t *testing.T) {
	for _, size := range []int{0, 18, 1400, 16401} {
		record := append([]byte{23, 3, 3, byte(size >> 8), byte(size)}, strings.Repeat("x", size)...)
		all := strings.Repeat(string(record), 1<<20/len(record))
		from := &source{left: []byte(all)}
		conn := &clientConn{Conn: from, half: halfClose{secure: true}}
		p, got := make([]byte, 18<<10), make([]byte, 0, len(all))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for {
			n, err := conn.fetch(p)
			if err != nil {
				break
			}
			if n > len(record) {
				t.Fatalf("records of %d bytes: %d bytes at once", len(record), n)
			}
			got = append(got, p[:n]...)
		}
		runtime.ReadMemStats(&after)
		if string(got) != all {
			t.Errorf("records of %d bytes: other bytes have come", len(record))
		}
		if cost := after.TotalAlloc - before.TotalAlloc; cost > 2<<20 {
			t.Errorf("records of %d bytes: %d KiB were allocated for 1 MiB", len(record), cost>>10)
		}
		if most := uint64(2*from.reads + 100); after.Mallocs-before.Mallocs > most {
			t.Errorf("records of %d bytes: %d allocations, want at most %d", len(record), after.Mallocs-before.Mallocs, most)
		}
	}
}
