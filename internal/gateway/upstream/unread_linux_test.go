package upstream

import (
	"io"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// kernelBuffer is how much the kernel may keep of what arrives on the connection of a response.
func kernelBuffer(t *testing.T, response *Response) (size int) {
	t.Helper()
	control, err := response.stream.(*conn).alive.control, error(nil)
	if failure := control.Control(func(fd uintptr) { size, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); failure != nil || err != nil {
		t.Fatal(failure, err)
	}
	return size
}

// What the kernel keeps of responses over HTTP/1.1 is shared as windows over HTTP/2 are. Only what is long and comes at once needs
// a wide window. It is given back with the response, and the connection keeps none.
func TestTheKernelKeepsLittleOfResponsesOverHTTP1(t *testing.T) {
	const large = 1 << 20
	b := listen(t, func(p *peer, _ int) {
		for {
			switch head := p.head(); {
			case head == "":
				return
			case strings.HasPrefix(head, "GET /large"):
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", large))
			case strings.HasPrefix(head, "GET /events"):
				p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
			default:
				p.send(okResponse)
			}
		}
	})
	for name, test := range map[string]struct {
		path  string
		taken int // of the wide windows, by others
		size  int
		takes int
	}{
		"small":                    {"/", 0, 2 * loopbackBuffer, 0},
		"large":                    {"/large", 0, 2 * wideBuffer, 1},
		"large, as many have one":  {"/large", maxWide, 2 * loopbackBuffer, 0},
		"events":                   {"/events", 0, 2 * loopbackBuffer, 0},
		"large, and there is room": {"/large", maxWide - 1, 2 * wideBuffer, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, Options{}, b.address())
			for range test.taken {
				s.windows.take(netip.Addr{})
			}
			for range 2 { // over a new connection, and over one that was used
				req := get()
				req.Target = test.path
				response, err := s.Do(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if size, takes := kernelBuffer(t, response), s.windows.taken.Taken()-test.taken; size != test.size || takes != test.takes {
					t.Errorf("a buffer of %d KiB and %d places, want %d and %d", size>>10, takes, test.size>>10, test.takes)
				}
				if test.path != "/events" {
					if _, err := io.Copy(io.Discard, response); err != nil {
						t.Fatal(err)
					}
				}
				response.Close()
				if taken := s.windows.taken.Taken(); taken != test.taken {
					t.Errorf("%d places are left", taken)
				}
			}
		})
	}
}
