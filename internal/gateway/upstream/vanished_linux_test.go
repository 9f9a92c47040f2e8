package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// vanishing is a backend over HTTP/1.1 and HTTP/2 whose kernel can stop answering. /wait is answered when it is released.
type vanishing struct {
	*httptest.Server

	asked   chan struct{}
	release func()

	mu       sync.Mutex
	accepted []net.Conn
}

func startVanishing(t *testing.T) *vanishing {
	released := make(chan struct{})
	v := &vanishing{asked: make(chan struct{}, 1), release: sync.OnceFunc(func() { close(released) })}
	v.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			v.asked <- struct{}{}
			<-released
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	}))
	v.Config.Protocols = new(http.Protocols)
	v.Config.Protocols.SetHTTP1(true)
	v.Config.Protocols.SetUnencryptedHTTP2(true)
	v.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.accepted = append(v.accepted, conn)
		return ctx
	}
	v.Start()
	t.Cleanup(v.Close)
	t.Cleanup(v.release)
	return v
}

func (v *vanishing) address() string { return v.Listener.Addr().String() }

// vanish makes the kernel drop what arrives on all connections, as it is when a pod was deleted with force: nothing is acknowledged,
// and no connection ends.
func (v *vanishing) vanish(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	for _, conn := range v.accepted {
		withSocket(t, conn, func(fd int) error {
			return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
		})
	}
}

func withSocket(t *testing.T, conn net.Conn, do func(fd int) error) {
	t.Helper()
	control, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failure error
	if err := control.Control(func(fd uintptr) { failure = do(int(fd)) }); err != nil || failure != nil {
		t.Fatal(err, failure)
	}
}

// isUnanswered reports whether something was sent that is not acknowledged.
func isUnanswered(t *testing.T, conn net.Conn) bool {
	t.Helper()
	var unacknowledged uint32
	withSocket(t, conn, func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		unacknowledged = info.Unacked
		return err
	})
	return unacknowledged > 0
}

// A pod that was deleted with force ends no connection. What waits for it must not wait until a timeout.
func TestWhatWaitsForAPodThatHasVanishedEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		method   string
		protocol Protocol
		kept     bool // the connection was used before
		late     bool // the request is sent after the pod has vanished
		want     Kind // 0: another endpoint answers
	}{
		"sent to it on a kept connection":  {"GET", HTTP1, true, true, 0},
		"at it on a kept connection":       {"GET", HTTP1, true, false, 0},
		"at it on a new connection":        {"GET", HTTP1, false, false, Reset},
		"a change, sent to it":             {"POST", HTTP1, true, true, Reset},
		"a change, at it":                  {"POST", HTTP1, true, false, Reset},
		"sent to it over HTTP/2":           {"GET", HTTP2, true, true, Reset},
		"at it over HTTP/2":                {"GET", HTTP2, true, false, Reset},
		"a change, sent to it over HTTP/2": {"POST", HTTP2, true, true, Reset},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, other := startVanishing(t), startVanishing(t)
			var dialed net.Conn // the first one
			s := serving(t, Options{Dial: func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := dialTCP(ctx, address)
				if dialed == nil {
					dialed = conn
				}
				return conn, err
			}}, pod.address())
			req := &Request{Method: tc.method, Target: "/wait", Host: "example.com", Protocol: tc.protocol}
			if tc.kept {
				fetch(t, s, &Request{Method: "GET", Target: "/", Host: "example.com", Protocol: tc.protocol})
			}
			if tc.late {
				pod.vanish(t)
			}
			other.release()
			type result struct {
				response *Response
				err      error
			}
			ended := make(chan result, 1)
			go func() {
				response, err := s.Do(t.Context(), req)
				ended <- result{response, err}
			}()
			if tc.late {
				eventually(t, "the request is sent", func() bool { return isUnanswered(t, dialed) })
			} else {
				<-pod.asked
				pod.vanish(t)
			}
			s.Set([]string{other.address()})
			var got result
			select {
			case got = <-ended:
			case <-time.After(20 * time.Second):
				t.Fatal("it waits")
			}
			if tc.want != 0 {
				wantKind(t, got.err, tc.want)
				return
			}
			if got.err != nil {
				t.Fatal(got.err)
			}
			if body, err := readAll(got.response); body != "ok" || err != nil || got.response.Endpoint != other.address() {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
}

// An endpoint that is gone may take its time: it may be about to end, or only have left the Service.
func TestWhatAPodThatIsThereStillDoesGoesOn(t *testing.T) {
	const large = 64 << 20 // more than waits on the way
	for name, protocol := range map[string]Protocol{"HTTP/1.1": HTTP1, "HTTP/2": HTTP2} {
		for what, size := range map[string]int{"a wait": 0, "an upload that is not read": large} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				pod := startVanishing(t)
				s := serving(t, Options{}, pod.address())
				req := &Request{Method: "POST", Target: "/wait", Host: "example.com", Protocol: protocol}
				if size > 0 {
					req.Body, req.ContentLength, req.StopBody = io.NopCloser(strings.NewReader(strings.Repeat("x", size))), int64(size), func() {}
				}
				ended := make(chan error, 1)
				go func() {
					response, err := s.Do(t.Context(), req)
					if err == nil {
						_, err = readAll(response)
					}
					ended <- err
				}()
				<-pod.asked
				s.Set(nil)
				select {
				case err := <-ended:
					t.Fatalf("it has ended: %v", err)
				case <-time.After(6 * time.Second): // longer than who answers nothing is given
				}
				pod.release()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}
