package gatewayattack

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// Clients that ask for much and do not take it. What they leave waits in the memory of the gateway, or keeps others waiting.
const (
	// perStream is what a response that nobody takes may cost, at most: SECURITY.md promises it.
	perStream = 256 << 10
	// perConnection is what may wait of it anywhere: in the kernel on both sides of the gateway and at the backend, too.
	perConnection = 1 << 20
	// besides is what the gateway may need on top of it: garbage, stacks, buffers of connections.
	besides = 48 << 20
	// delay is how much longer somebody else may wait.
	delay = time.Second
	// large is the length of a response that nobody takes, and fair that of one of somebody else.
	large, fair = 8 << 20, 1 << 20
)

// slowTaker is a way not to take responses.
type slowTaker struct {
	name string
	// path is asked for, with these fields, over so many connections and so many times on each.
	path        string
	fields      []string
	connections int
	streams     int
	// protocol of the client: HTTP/1.1 has one request on each connection.
	http1 bool
	// trickle takes a byte of each stream now and then.
	trickle bool
	// leaves: the client resets its streams, and opens others, so many times.
	leaves int
	// first is asked for once beforehand, and taken.
	first bool
	// backends are the protocols of those that are asked. Nil: all.
	backends []string
}

// slowProtocols are those of the backends, as their hosts begin.
var slowProtocols = []string{"http1", "h2c", "tls"}

// fewSlowTakers take a few seconds, allSlowTakers are those of the issue and what else there is.
var (
	fewSlowTakers = []slowTaker{{name: "60 streams without a window", path: "/large", connections: 1, streams: 60}}
	allSlowTakers = []slowTaker{
		{name: "240 streams without a window", path: "/large", connections: 1, streams: 240},
		{name: "280 streams on two connections", path: "/large", connections: 2, streams: 140},
		{name: "960 streams on four connections", path: "/large", connections: 4, streams: 240},
		{name: "240 streams without an end", path: "/endless", connections: 1, streams: 240},
		{name: "240 streams that take a byte now and then", path: "/large", connections: 1, streams: 240, trickle: true},
		{name: "240 connections of HTTP/1.1", path: "/large", connections: 240, http1: true},
		{name: "streams that are opened and reset", path: "/large", connections: 1, streams: 200, leaves: 20},
		{name: "240 streams through compression", path: "/packed", fields: []string{"accept-encoding", "gzip"}, connections: 1, streams: 240},
		{name: "240 connections through compression", path: "/packed", fields: []string{"accept-encoding", "gzip"}, connections: 240, http1: true},
		{name: "240 streams of a cached response", path: "/kept", connections: 1, streams: 240, first: true},
		{name: "240 connections for a cached response", path: "/kept", connections: 240, http1: true, first: true},
		{name: "240 streams of responses on their way to the cache", path: "/kept/each", connections: 1, streams: 240},
		{name: "240 streams with copies to a mirror that answers as much", path: "/mirrored", connections: 1, streams: 240},
		{name: "240 tunnels", path: "/tunnel", fields: []string{"connection", "upgrade", "upgrade", "slow"}, connections: 240, http1: true, backends: []string{"http1"}},
	}
)

// slowBackend answers requests of one protocol with what is asked for.
type slowBackend struct {
	mu sync.Mutex
	// sent counts the bytes of the bodies, and last when that grew.
	sent int64
	last time.Time
}

func (b *slowBackend) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent += int64(n)
	b.last = time.Now()
}

// quiet reports whether nothing went out for a while, and how much had.
func (b *slowBackend) quiet(since time.Duration) (sent int64, quiet bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent, time.Since(b.last) > since
}

func (b *slowBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	length := fair
	switch {
	case r.Header.Get("Upgrade") != "":
		b.tunnel(w)
		return
	case strings.HasPrefix(r.URL.Path, "/kept"):
		w.Header().Set("Cache-Control", "max-age=600")
	case strings.HasPrefix(r.URL.Path, "/large"), strings.HasPrefix(r.URL.Path, "/packed"), strings.HasPrefix(r.URL.Path, "/mirrored"):
		length = large
	}
	w.Header().Set("Content-Type", "text/plain")
	if r.URL.Path == "/endless" {
		length = math.MaxInt
	} else {
		w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	piece := bytes.Repeat([]byte("what nobody takes "), 910)
	for length > 0 {
		n, err := w.Write(piece[:min(length, len(piece))])
		if r.URL.Path != "/fair" {
			b.count(n)
		}
		if length -= n; err != nil {
			return
		}
	}
}

// tunnel sends for as long as somebody takes it.
func (b *slowBackend) tunnel(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: slow\r\n\r\n")
	for piece := make([]byte, 16<<10); err == nil; {
		var n int
		n, err = conn.Write(piece)
		b.count(n)
	}
}

// slowRig is a gateway with backends of each protocol.
type slowRig struct {
	*running
	backends map[string]*slowBackend
}

// resident is the memory of the gateway in bytes, as the system counts it: now, and at most so far.
func (r *slowRig) resident(t testing.TB) (now, most int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process))
	if err != nil {
		t.Skipf("the memory of a process is not to be had here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		kib, _ := strconv.ParseInt(words[1], 10, 64)
		switch words[0] {
		case "VmRSS:":
			now = kib << 10
		case "VmHWM:":
			most = kib << 10
		}
	}
	return now, most
}

// fairly times the request of somebody else.
func (r *slowRig) fairly(t testing.TB, host string) time.Duration {
	t.Helper()
	began := time.Now()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: time.Minute}
	request, err := http.NewRequest(http.MethodGet, "http://"+r.plain+"/fair", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("somebody else: %v", err)
		return time.Since(began)
	}
	defer response.Body.Close()
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n != fair || response.StatusCode != http.StatusOK {
		t.Errorf("somebody else got %d and %d bytes: %v", response.StatusCode, n, err)
	}
	return time.Since(began)
}

// slowest is the longest of some times: who waits until others are given up waits only once.
func (r *slowRig) slowest(t testing.TB, host string) time.Duration {
	t.Helper()
	var longest time.Duration
	for range 3 {
		longest = max(longest, r.fairly(t, host))
	}
	return longest
}

// play has the clients come, waits until no more is sent to them, and judges. It returns a line for a table.
func (r *slowRig) play(t *testing.T, taker slowTaker, protocol string) string {
	t.Helper()
	host, backend := protocol+".test", r.backends[protocol]
	alone := r.slowest(t, host)
	before, _ := r.resident(t)
	sentBefore, _ := backend.quiet(0)
	stop := taker.come(t, r, host)
	waitUntil(t, "nothing more is sent", func() bool {
		sent, quiet := backend.quiet(300 * time.Millisecond)
		return quiet && (sent > sentBefore || taker.first)
	})
	with := r.slowest(t, host)
	now, most := r.resident(t)
	stop()
	requests := taker.connections * max(1, taker.streams)
	sent, _ := backend.quiet(0)
	if bound := int64(requests)*perStream + besides; most-before > bound {
		t.Errorf("%d responses that nobody takes cost %d MiB, at most %d MiB are allowed", requests, (most-before)>>20, bound>>20)
	}
	if bound := int64(requests) * perConnection; taker.waits() && sent-sentBefore > bound {
		t.Errorf("of %d responses that nobody takes %d MiB went out, at most %d MiB are allowed to wait", requests, (sent-sentBefore)>>20, bound>>20)
	}
	if with > alone+delay {
		t.Errorf("somebody else waits for %v, and %v alone", with, alone)
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %d |", taker.name, protocol, (sent-sentBefore)>>20, before>>20, now>>20, most>>20, alone.Milliseconds(), with.Milliseconds())
}

// waits reports whether all that goes out waits for the client. Copies are thrown away, and what is compressed becomes less.
func (s *slowTaker) waits() bool {
	return s.path == "/large" || s.path == "/endless" || s.path == "/tunnel"
}

// come has the clients ask, and returns what ends them.
func (s *slowTaker) come(t *testing.T, r *slowRig, host string) (stop func()) {
	t.Helper()
	if s.first {
		r.take(t, host, s.path)
	}
	var conns []net.Conn
	var reading sync.WaitGroup
	ended := make(chan struct{})
	for number := range s.connections {
		conn, err := net.Dial("tcp", r.plain)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		conns = append(conns, conn)
		if s.http1 {
			text := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n", s.target(number, 0), host)
			for i := 0; i+1 < len(s.fields); i += 2 {
				text += s.fields[i] + ": " + s.fields[i+1] + "\r\n"
			}
			_, _ = io.WriteString(conn, text+"\r\n")
			continue
		}
		c := &slowClient{taker: s, host: host, number: number, conn: conn, framer: http2.NewFramer(conn, conn), ended: ended}
		_, _ = io.WriteString(conn, http2.ClientPreface)
		_ = c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		reading.Go(c.read)
		c.ask()
		if s.trickle {
			reading.Go(c.trickle)
		}
	}
	return func() {
		close(ended)
		for _, conn := range conns {
			_ = conn.Close()
		}
		reading.Wait()
	}
}

// target is the path of a request: paths that end in /each are pages of their own.
func (s *slowTaker) target(connection, stream int) string {
	if strings.HasSuffix(s.path, "/each") {
		return fmt.Sprintf("%s/%d/%d", s.path, connection, stream)
	}
	return s.path
}

// take asks for a page and takes it.
func (r *slowRig) take(t testing.TB, host, path string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+r.plain+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
}

// slowClient is a connection over HTTP/2 of a client that does not take what it asks for.
type slowClient struct {
	taker  *slowTaker
	host   string
	number int
	conn   net.Conn
	ended  chan struct{}

	mu     sync.Mutex
	framer *http2.Framer
	next   uint32
	open   []uint32
}

// read answers what keeps the connection alive, and takes nothing else.
func (c *slowClient) read() {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		c.mu.Lock()
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = c.framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = c.framer.WritePing(true, f.Data)
			}
		}
		c.mu.Unlock()
	}
}

// ask opens the streams, and where the client leaves, resets them and opens others.
func (c *slowClient) ask() {
	for round := range 1 + c.taker.leaves {
		if round > 0 {
			<-time.After(50 * time.Millisecond) // for what is on its way
		}
		c.mu.Lock()
		for _, stream := range c.open {
			if round > 0 {
				_ = c.framer.WriteRSTStream(stream, http2.ErrCodeCancel)
			}
		}
		c.open = nil
		for i := range c.taker.streams {
			stream := 2*c.next + 1
			c.next++
			fields := []string{":method", "GET", ":scheme", "http", ":path", c.taker.target(c.number, i), ":authority", c.host}
			_ = writeHead(c.framer, stream, append(fields, c.taker.fields...), true)
			c.open = append(c.open, stream)
		}
		c.mu.Unlock()
	}
}

// trickle takes a byte of each stream ten times a second.
func (c *slowClient) trickle() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		for _, stream := range c.open {
			_ = c.framer.WriteWindowUpdate(stream, 1)
		}
		c.mu.Unlock()
	}
}
