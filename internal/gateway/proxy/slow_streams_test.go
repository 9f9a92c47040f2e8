package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// slowCost is what a client that takes nothing may cost, in bytes, the ends of the connection in this process included.
const slowCost = 256 << 10

// heap is the memory in use after a collection, with the stacks.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse + stats.StackInuse)
}

// rests waits until a counter has not grown for a while, once it has begun.
func rests(t *testing.T, counter *atomic.Int64) {
	t.Helper()
	last, since := counter.Load(), time.Now()
	eventually(t, "the backend can send no more", func() bool {
		if now := counter.Load(); now != last || now == 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) > 200*time.Millisecond
	})
}

// sendForever sends without an end, and counts what somebody takes.
func sendForever(conn io.Writer, sent *atomic.Int64) {
	for piece := make([]byte, 16<<10); ; {
		n, err := conn.Write(piece)
		sent.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// Clients that do not take what comes on a connection cost little, and keep nobody waiting: on a port of TCP, and of TLS that
// passes through or is ended.
func TestConnectionsThatNobodyReadsCostLittle(t *testing.T) {
	for _, name := range []string{"tcp", "through.test", "ended.test"} {
		t.Run(name, func(t *testing.T) {
			const clients = 100
			var sent atomic.Int64
			dial := slowStreams(t, name, &sent)
			before := heap()
			for range clients {
				dial()
			}
			rests(t, &sent)
			if cost := heap() - before; cost > clients*slowCost {
				t.Errorf("%d clients cost %d KiB", clients, cost>>10)
			}
			began := time.Now()
			if _, err := dial().Read(make([]byte, 1)); err != nil || time.Since(began) > time.Second {
				t.Errorf("another client waits for %v: %v", time.Since(began), err)
			}
		})
	}
}

// slowStreams starts a gateway in front of a backend that sends without an end, and returns how to connect.
func slowStreams(t *testing.T, name string, sent *atomic.Int64) (dial func() net.Conn) {
	t.Helper()
	plain := listen(t, func(conn net.Conn) { sendForever(conn, sent) })
	if name == "tcp" {
		_, place := tcpGateway(t, Options{}, map[string][]string{"app": {plain}}, to("app")...)
		return func() net.Conn {
			conn := dialTCP(t, place.Address)
			_ = conn.SetReadBuffer(4 << 10)
			return conn
		}
	}
	ca := authority.New(t, "streams")
	config := &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{"through.test"}})}}
	secure := listen(t, func(conn net.Conn) { sendForever(tls.Server(conn, config), sent) })
	g := startStreams(t, ca, map[string][]string{"a": {secure}, "plain": {plain}})
	return func() net.Conn {
		conn, err := g.dial(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10)
		return conn
	}
}

// Clients that do not take their datagrams cost little: what they do not take is lost.
func TestDatagramsThatNobodyReadsCostLittle(t *testing.T) {
	const clients, each = 50, 200
	var sent atomic.Int64
	flood, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flood.Close() })
	go func() {
		asked, answer := make([]byte, maxDatagram), make([]byte, 32<<10)
		for {
			_, from, err := flood.ReadFrom(asked)
			if err != nil {
				return
			}
			for range each {
				n, _ := flood.WriteTo(answer, from)
				sent.Add(int64(n))
			}
		}
	}()
	g := startDatagrams(t, Options{}, map[string][]string{"app": {flood.LocalAddr().String()}}, to("app")...)
	before := heap()
	for range clients {
		conn := g.client(t)
		_ = conn.SetReadBuffer(4 << 10)
		if _, err := conn.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
	}
	rests(t, &sent)
	if cost := heap() - before; cost > clients*slowCost {
		t.Errorf("%d clients cost %d KiB", clients, cost>>10)
	}
	if got := ask(t, g.client(t), "me too"); len(got) != 32<<10 {
		t.Errorf("another client got %d bytes", len(got))
	}
}
