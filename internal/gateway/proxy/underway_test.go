package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// bodies is a client that keeps requests in flight by never sending the rest of their
// bodies.
type bodies struct {
	*gateway

	open []net.Conn
}

// hold begins a request from an address. It returns when that many requests are counted, or
// when the answer comes, which it reports.
func (b *bodies) hold(from string, counted int, fields string) string {
	b.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", b.address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+fields+"Content-Length: 9\r\n\r\nx")
	answers := make(chan string, 1)
	go func() {
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			answers <- err.Error()
			return
		}
		response.Body.Close()
		answers <- strconv.Itoa(response.StatusCode) + " " + response.Header.Get("Retry-After")
	}()
	answer := ""
	eventually(b.t.(*testing.T), "the request is counted or answered", func() bool {
		select {
		case answer = <-answers:
			return true
		default:
			return b.underWay() == counted
		}
	})
	if answer == "" {
		b.open = append(b.open, conn)
	}
	return answer
}

func (b *bodies) underWay() int {
	u := &b.handler.underWay
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests.Taken()
}

// holding returns a gateway with a bound on requests, and a backend that reads bodies.
func holding(t *testing.T, requests int) *bodies {
	t.Helper()
	compiled := compile(t, toApp, nil, serve(t, reading))
	b := &bodies{gateway: startTable(t, Options{}, compiled)}
	b.handler.Set(Config{Table: compiled, Requests: requests, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}})
	return b
}

func TestOneClientLeavesRequestsToTheOthers(t *testing.T) {
	b := holding(t, 8)
	for i := range 6 {
		want(t, "the first client", b.hold("127.0.0.1", i+1, ""), "")
	}
	want(t, "the first client's share is taken", b.hold("127.0.0.1", -1, ""), "429 1")
	want(t, "the second client", b.hold("127.0.0.2", 7, ""), "")
	want(t, "the second client", b.hold("127.0.0.2", 8, ""), "")
	want(t, "the replica is full", b.hold("127.0.0.3", -1, ""), "503 1")
	for _, conn := range b.open {
		conn.Close()
	}
	eventually(t, "who leaves is counted no more", func() bool { return b.underWay() == 0 })
	response, _ := b.get("/")
	want(t, "then", response.StatusCode, 200)
	eventually(t, "what has ended is counted no more", func() bool { return b.underWay() == 0 })
}

func TestAProxyThatIsTrustedSharesForItsClients(t *testing.T) {
	b := holding(t, 8)
	for i := range 6 {
		want(t, "a client", b.hold("127.0.0.9", i+1, "X-Forwarded-For: 192.0.2.1\r\n"), "")
	}
	want(t, "its share is taken", b.hold("127.0.0.9", -1, "X-Forwarded-For: 192.0.2.1\r\n"), "429 1")
	want(t, "it says it is another", b.hold("127.0.0.9", -1, "X-Forwarded-For: 192.0.2.7, 192.0.2.1\r\n"), "429 1")
	want(t, "another client", b.hold("127.0.0.9", 7, "X-Forwarded-For: 192.0.2.2\r\n"), "")
	want(t, "the proxy itself", b.hold("127.0.0.9", 8, ""), "")
}

// Trusted proxies are often given as whole networks, which also contain clients.
func TestAClientAmongTheTrustedProxiesHasAShare(t *testing.T) {
	b := holding(t, 8)
	for i := range 6 {
		want(t, "a client", b.hold("127.0.0.9", i+1, "X-Forwarded-For: 127.0.0.9\r\n"), "")
	}
	want(t, "its share is taken", b.hold("127.0.0.9", -1, "X-Forwarded-For: 127.0.0.9\r\n"), "429 1")
}

// The streams of one connection count separately. A request that was counted under another
// bound is released when it ends.
func TestStreamsCountOneByOne(t *testing.T) {
	b := holding(t, 8)
	f := b.frames()
	for i := range uint32(6) {
		f.open(2*i+1, false, with()...)
	}
	eventually(t, "six are under way", func() bool { return b.underWay() == 6 })
	f.open(13, true, good...)
	want(t, "one more", f.outcome(13), "429")
	b.handler.Set(Config{Table: b.handler.current.Load().Table})
	f.open(15, true, good...)
	want(t, "without a bound", f.outcome(15), "200")
	for i := range uint32(6) {
		_ = f.WriteData(2*i+1, true, []byte("x"))
		want(t, "its answer", f.outcome(2*i+1), "200")
	}
	eventually(t, "all are counted no more", func() bool { return b.underWay() == 0 })
}

// A client that does not open its window takes no answers and no refusals. Its requests
// count until it opens the window or its time is over.
func TestAnswersThatAreNotTakenCount(t *testing.T) {
	compiled := compile(t, toApp, nil, serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	b := &bodies{gateway: startTable(t, Options{ClientTimeout: 20 * soon}, compiled)}
	b.handler.Set(Config{Table: compiled, Requests: 8})
	f := b.frames(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for i := range uint32(6) {
		f.open(2*i+1, true, good...)
	}
	eventually(t, "six are under way", func() bool { return b.underWay() == 6 })
	f.open(13, true, good...)
	want(t, "one more", f.outcome(13), "429")
	want(t, "under way", b.underWay(), 6)
	eventually(t, "their time is over", func() bool { return b.underWay() == 0 })
}

// A client that sends a byte now and then stays within the bound of each read. It must
// still lose its connection to the backend.
func TestABodyThatTricklesEnds(t *testing.T) {
	for name, length := range map[string]string{"small": "900", "large": "100000", "chunked": ""} {
		for protocol, trickle := range map[string]func(*gateway, string, <-chan time.Time) string{"HTTP/1.1": trickle1, "HTTP/2": trickle2} {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				g := start(t, Options{ClientTimeout: 4 * soon}, toApp, serve(t, reading))
				tick := time.NewTicker(soon / 2)
				defer tick.Stop()
				want(t, "answer", trickle(g, length, tick.C), "408")
				released(t, g)
			})
		}
	}
}

// After the backend has answered, it may read on slowly, as in a long conversation.
func TestABodyMayTrickleBesideItsAnswer(t *testing.T) {
	const pieces = 40
	begin := map[string]func(*gateway) (send func()){
		"HTTP/1.1": func(g *gateway) func() {
			conn, err := net.Dial("tcp", g.address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
			return func() { _, _ = io.WriteString(conn, "1\r\nx\r\n") }
		},
		"HTTP/2": func(g *gateway) func() {
			f := g.frames()
			f.open(1, false, with()...)
			return func() { _ = f.WriteData(1, false, []byte("x")) }
		},
	}
	for protocol, begin := range begin {
		t.Run(protocol, func(t *testing.T) {
			got := make(chan int64, 1)
			g := start(t, Options{ClientTimeout: 15 * soon}, toApp, serve(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				n, _ := io.CopyN(io.Discard, r.Body, pieces)
				got <- n
			}))
			send := begin(g)
			tick := time.NewTicker(soon)
			defer tick.Stop()
			for range 20 * pieces {
				select {
				case n := <-got:
					want(t, "bytes that came", n, int64(pieces))
					return
				case <-tick.C:
					send()
				}
			}
			t.Error("the body did not come")
		})
	}
}

// trickle1 sends one byte for each tick until an answer comes. It returns the answer.
func trickle1(g *gateway, length string, tick <-chan time.Time) string {
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	framing, piece := "Content-Length: "+length, "x"
	if length == "" {
		framing, piece = "Transfer-Encoding: chunked", "1\r\nx\r\n"
	}
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+framing+"\r\n\r\n")
	head := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(conn).ReadString('\n')
		head <- strings.TrimPrefix(line, "HTTP/1.1 ")[:min(3, len(line))]
	}()
	for range 200 {
		select {
		case status := <-head:
			return status
		case <-tick:
			_, _ = io.WriteString(conn, piece)
		}
	}
	return "none"
}

func trickle2(g *gateway, length string, tick <-chan time.Time) string {
	f := g.frames()
	var fields []string
	if length != "" {
		fields = []string{"content-length", length}
	}
	f.open(1, false, with(fields...)...)
	outcome := make(chan string, 1)
	go func() { outcome <- f.outcome(1) }()
	for range 200 {
		select {
		case status := <-outcome:
			return status
		case <-tick:
			_ = f.WriteData(1, false, []byte("x"))
		}
	}
	return "none"
}
