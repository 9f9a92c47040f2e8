package proxyprotocol_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/proxyprotocol"
)

// v2 is a header of version 2. family and transport are one byte, as the protocol has them.
func v2(command, family byte, rest ...byte) string {
	head := append([]byte("\r\n\r\n\x00\r\nQUIT\n"), 0x20|command, family, byte(len(rest)>>8), byte(len(rest)))
	return string(append(head, rest...))
}

var (
	// v4 says that 192.0.2.1:1000 has connected to 192.0.2.2:80, v6 that [2001:db8::1]:1000 has.
	v4 = []byte{192, 0, 2, 1, 192, 0, 2, 2, 0x03, 0xe8, 0, 80}
	v6 = append(append(append([]byte{0x20, 0x01, 0x0d, 0xb8}, make([]byte, 11)...), 1), append(make([]byte, 16), 0x03, 0xe8, 0, 80)...)
	// mapped is 192.0.2.1 as an address of IPv6.
	mapped = append(append(append(make([]byte, 10), 0xff, 0xff), 192, 0, 2, 1), append(make([]byte, 16), 0x03, 0xe8, 0, 80)...)
)

const rest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// itself stands for the address of the connection.
const itself = "itself"

var headers = map[string]struct {
	bytes  string
	client string // empty: the connection is closed
}{
	"version 1":                          {"PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n", "192.0.2.1:1000"},
	"version 1 for IPv6":                 {"PROXY TCP6 2001:db8::1 2001:db8::2 1000 80\r\n", "[2001:db8::1]:1000"},
	"version 1 of nobody":                {"PROXY UNKNOWN\r\n", itself},
	"version 1 of nobody with addresses": {"PROXY UNKNOWN 192.0.2.1 192.0.2.2 1000 80\r\n", itself},
	"version 2":                          {v2(1, 0x11, v4...), "192.0.2.1:1000"},
	"version 2 for IPv6":                 {v2(1, 0x21, v6...), "[2001:db8::1]:1000"},
	"version 2, mapped":                  {v2(1, 0x21, mapped...), "192.0.2.1:1000"},
	"version 2 with TLVs":                {v2(1, 0x11, append(bytes.Clone(v4), 0x04, 0, 3, 'a', 'b', 'c')...), "192.0.2.1:1000"},
	"version 2, many TLVs":               {v2(1, 0x11, append(bytes.Clone(v4), make([]byte, 3000)...)...), "192.0.2.1:1000"},
	"a look of the load balancer":        {v2(0, 0), itself},
	"a look that names addresses":        {v2(0, 0x11, v4...), itself},

	"none":                             {"", ""},
	"a request":                        {"GET / HTTP/1.1\r\nX: y\r\n\r\n", ""},
	"in lower case":                    {"proxy TCP4 192.0.2.1 192.0.2.2 1000 80\r\n", ""},
	"with a space before it":           {" PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n", ""},
	"without a carriage return":        {"PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\n", ""},
	"two spaces":                       {"PROXY  TCP4 192.0.2.1 192.0.2.2 1000 80\r\n", ""},
	"more fields":                      {"PROXY TCP4 192.0.2.1 192.0.2.2 1000 80 90\r\n", ""},
	"fewer fields":                     {"PROXY TCP4 192.0.2.1 192.0.2.2 1000\r\n", ""},
	"a name":                           {"PROXY TCP4 localhost 192.0.2.2 1000 80\r\n", ""},
	"IPv6 as IPv4":                     {"PROXY TCP4 2001:db8::1 192.0.2.2 1000 80\r\n", ""},
	"IPv4 as IPv6":                     {"PROXY TCP6 192.0.2.1 192.0.2.2 1000 80\r\n", ""},
	"octal":                            {"PROXY TCP4 0300.0.2.1 192.0.2.2 1000 80\r\n", ""},
	"a zone":                           {"PROXY TCP6 fe80::1%eth0 2001:db8::2 1000 80\r\n", ""},
	"a port that is none":              {"PROXY TCP4 192.0.2.1 192.0.2.2 65536 80\r\n", ""},
	"a port with a sign":               {"PROXY TCP4 192.0.2.1 192.0.2.2 +80 80\r\n", ""},
	"an unknown protocol":              {"PROXY SCTP 192.0.2.1 192.0.2.2 1000 80\r\n", ""},
	"a line without an end":            {"PROXY TCP4 " + strings.Repeat("1", 200), ""},
	"version 2 without its end":        {v2(1, 0x11, v4...)[:20], ""},
	"version 3":                        {strings.Replace(v2(1, 0x11, v4...), "\x21\x11", "\x31\x11", 1), ""},
	"an unknown command":               {v2(2, 0x11, v4...), ""},
	"an unknown family":                {v2(1, 0x41, v4...), ""},
	"no family":                        {v2(1, 0x00), ""},
	"UDP":                              {v2(1, 0x12, v4...), ""},
	"a socket of Unix":                 {v2(1, 0x31, make([]byte, 216)...), ""},
	"too short for its addresses":      {v2(1, 0x11, v4[:8]...), ""},
	"longer than anything that exists": {v2(1, 0x11, append(bytes.Clone(v4), make([]byte, 60000)...)...), ""},
}

// listen returns a listener, how many connections it has refused, and the connections that it accepts.
func listen(t testing.TB, options proxyprotocol.Options) (address string, refused *atomic.Int64, conns chan net.Conn) {
	t.Helper()
	below, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused, conns = new(atomic.Int64), make(chan net.Conn)
	options.Refused = func() { refused.Add(1) }
	options.Clock = clock.RealClock{}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	listener := proxyprotocol.Listen(below, options)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				close(conns)
				return
			}
			conns <- conn
		}
	}()
	return below.Addr().String(), refused, conns
}

func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn.(*net.TCPConn)
}

// A header tells the client, and is no part of what the client says. Without one nothing that a client says is read.
func TestAConnectionIsThatOfTheClientInItsHeader(t *testing.T) {
	for name, tc := range headers {
		t.Run(name, func(t *testing.T) {
			address, refused, conns := listen(t, proxyprotocol.Options{})
			client := dial(t, address)
			sent := tc.bytes
			if tc.client != "" {
				sent += rest
			}
			_, _ = io.WriteString(client, sent)
			_ = client.CloseWrite()
			if tc.client == "" {
				if n, _ := client.Read(make([]byte, 1)); n > 0 {
					t.Error("there is an answer")
				}
				if refused.Load() != 1 {
					t.Errorf("%d are counted as refused", refused.Load())
				}
				return
			}
			conn := <-conns
			defer conn.Close()
			want := tc.client
			if want == itself {
				want = client.LocalAddr().String()
			}
			if got := conn.RemoteAddr().String(); got != want {
				t.Errorf("the client is %s, want %s", got, want)
			}
			if got, err := io.ReadAll(conn); err != nil || string(got) != rest {
				t.Errorf("what follows is %q (%v)", got, err)
			}
		})
	}
}

// A client behind the load balancer cannot say that it is somebody else: what it sends comes after the header of the load balancer.
func TestAHeaderIsReadOnce(t *testing.T) {
	for name, first := range headers {
		if first.client == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			address, _, conns := listen(t, proxyprotocol.Options{})
			client := dial(t, address)
			forged := "PROXY TCP4 203.0.113.9 192.0.2.2 1000 80\r\n" + v2(1, 0x11, 203, 0, 113, 9, 192, 0, 2, 2, 0, 1, 0, 80)
			_, _ = io.WriteString(client, first.bytes+forged)
			_ = client.CloseWrite()
			conn := <-conns
			defer conn.Close()
			if got := conn.RemoteAddr().String(); strings.HasPrefix(got, "203.") {
				t.Errorf("the client is %s", got)
			}
			if got, err := io.ReadAll(conn); err != nil || string(got) != forged {
				t.Errorf("what follows is %q (%v)", got, err)
			}
		})
	}
}

// Version 2 may come in any number of pieces. Of version 1 the protocol lets a receiver ask for one piece.
func TestAHeaderMayComeInPieces(t *testing.T) {
	address, _, conns := listen(t, proxyprotocol.Options{})
	client := dial(t, address)
	_ = client.SetNoDelay(true)
	for _, b := range []byte(v2(1, 0x11, v4...) + rest) {
		_, _ = client.Write([]byte{b})
	}
	_ = client.CloseWrite()
	conn := <-conns
	defer conn.Close()
	if got, err := io.ReadAll(conn); err != nil || string(got) != rest || conn.RemoteAddr().String() != "192.0.2.1:1000" {
		t.Errorf("%s says %q (%v)", conn.RemoteAddr(), got, err)
	}
}

func TestOnlySourcesMaySendHeaders(t *testing.T) {
	for source, allowed := range map[string]bool{"127.0.0.0/8": true, "192.0.2.0/24": false, "::/0": false} {
		address, refused, conns := listen(t, proxyprotocol.Options{Sources: []netip.Prefix{netip.MustParsePrefix(source)}})
		client := dial(t, address)
		_, _ = io.WriteString(client, "PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n")
		if allowed {
			(<-conns).Close()
			continue
		}
		if _, err := client.Read(make([]byte, 1)); err == nil || refused.Load() != 1 {
			t.Errorf("%s: %v, %d refused", source, err, refused.Load())
		}
	}
}

// A connection that says nothing, or says it slowly, keeps no other one waiting, and ends.
func TestASlowHeaderHoldsUpNoOtherConnection(t *testing.T) {
	address, refused, conns := listen(t, proxyprotocol.Options{Timeout: 300 * time.Millisecond})
	var slow []net.Conn
	for _, begin := range []string{"", "P", "PROXY", v2(1, 0x11, v4...)[:14]} {
		conn := dial(t, address)
		_, _ = io.WriteString(conn, begin)
		slow = append(slow, conn)
	}
	_, _ = io.WriteString(dial(t, address), "PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n")
	(<-conns).Close()
	for i, conn := range slow {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d got an answer", i)
		}
	}
	if refused.Load() != int64(len(slow)) {
		t.Errorf("%d are counted as refused", refused.Load())
	}
}

func TestAClosedListenerClosesWhatIsUnderWay(t *testing.T) {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := proxyprotocol.Listen(below, proxyprotocol.Options{Timeout: time.Minute, Clock: clock.RealClock{}})
	silent, ready := dial(t, below.Addr().String()), dial(t, below.Addr().String())
	_, _ = io.WriteString(ready, "PROXY TCP4 192.0.2.1 192.0.2.2 1000 80\r\n") // nobody accepts it
	_ = listener.Close()
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	for _, conn := range []net.Conn{silent, ready} {
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
}

// mined is a connection of a client that makes the gateway panic.
type mined struct{ sent }

func (*mined) Read([]byte) (int, error) { panic("a defect") }

func TestAPanicEndsOneConnectionAlone(t *testing.T) {
	below, doing := make(handed), make(chan string, 1)
	listener := proxyprotocol.Listen(below, proxyprotocol.Options{
		Timeout: time.Minute, Clock: clock.RealClock{}, Panics: func(what string, _ any, _ []byte) { doing <- what },
	})
	t.Cleanup(func() { _ = listener.Close() })
	broken := &mined{sent{closed: make(chan struct{})}}
	below <- broken
	if got := <-doing; got != "read a header of the PROXY protocol" {
		t.Errorf("told of %q", got)
	}
	<-broken.closed
	below <- &sent{Reader: bytes.NewReader([]byte(headers["version 1"].bytes + rest)), closed: make(chan struct{})}
	if _, err := listener.Accept(); err != nil {
		t.Errorf("the next connection: %v", err)
	}
}

// sent is a connection of a client that sends some bytes and then no more.
type sent struct {
	net.Conn // nil

	*bytes.Reader

	closed chan struct{}
}

func (s *sent) Read(p []byte) (int, error)      { return s.Reader.Read(p) }
func (s *sent) RemoteAddr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (s *sent) SetReadDeadline(time.Time) error { return nil }
func (s *sent) Close() error                    { close(s.closed); return nil }

// handed is a listener of connections that are handed to it.
type handed chan net.Conn

func (h handed) Accept() (net.Conn, error) {
	if conn, ok := <-h; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (h handed) Close() error   { close(h); return nil }
func (h handed) Addr() net.Addr { return &net.TCPAddr{} }

// Whatever a connection begins with: it is closed, or what follows the header arrives whole, and the client is an address.
func FuzzHeader(f *testing.F) {
	for _, header := range headers {
		f.Add([]byte(header.bytes + rest))
	}
	below, conns := make(handed), make(chan net.Conn)
	listener := proxyprotocol.Listen(below, proxyprotocol.Options{Timeout: time.Minute, Clock: clock.RealClock{}})
	f.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns <- conn
		}
	}()
	f.Fuzz(func(t *testing.T, content []byte) {
		client := &sent{Reader: bytes.NewReader(content), closed: make(chan struct{})}
		below <- client
		select {
		case conn := <-conns:
			if _, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err != nil {
				t.Errorf("the client is %q: %v", conn.RemoteAddr(), err)
			}
			got, err := io.ReadAll(conn)
			if err != nil || !bytes.HasSuffix(content, got) || len(got) == len(content) {
				t.Errorf("what follows is %q (%v)", got, err)
			}
		case <-client.closed:
		}
	})
}
