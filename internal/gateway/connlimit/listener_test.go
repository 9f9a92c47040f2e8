package connlimit

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// accepting returns the address of a listener and a channel of its connections.
func accepting(t *testing.T, counter *Counter) (address string, conns chan net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = make(chan net.Conn, 100)
	var wait sync.WaitGroup
	limited := counter.Listen(listener)
	wait.Go(func() {
		for {
			conn, err := limited.Accept()
			if err != nil {
				return
			}
			conns <- conn
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wait.Wait()
		close(conns)
		for conn := range conns {
			conn.Close()
		}
	})
	return listener.Addr().String(), conns
}

// dial connects from an address of the loopback interface.
func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	conn, err := dialer.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// isClosed checks that the other side closes the connection.
func isClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a byte came")
	} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // as net returns it
		t.Error("the connection is left open")
	}
}

func TestConnectionsAboveALimitAreClosed(t *testing.T) {
	refused := make(chan Refusal, 10)
	counter := &Counter{Refused: func(why Refusal) { refused <- why }}
	counter.SetLimits(Limits{Total: 4, PerClient: 2, Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}})
	address, conns := accepting(t, counter)
	open := func(from string) net.Conn {
		conn := dial(t, from, address)
		return &pair{Conn: conn, server: <-conns}
	}
	open("127.0.0.1")
	second := open("127.0.0.1")
	isClosed(t, dial(t, "127.0.0.1", address))
	if why := <-refused; why != PerClient {
		t.Errorf("got %v", why)
	}
	open("127.0.0.2") // another client
	open("127.0.0.9")
	isClosed(t, dial(t, "127.0.0.9", address))
	if why := <-refused; why != Total {
		t.Errorf("got %v", why)
	}
	second.Close()
	second.Close() // counts once
	open("127.0.0.1")
	if n := counter.Open(); n != 4 {
		t.Errorf("%d are open", n)
	}
	counter.SetLimits(Limits{PerClient: 1, Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}})
	for range 3 {
		open("127.0.0.9") // one proxy connects for many clients
	}
	isClosed(t, dial(t, "127.0.0.1", address)) // the open connections count
}

// pair is both ends of a connection.
type pair struct {
	net.Conn

	server net.Conn
}

func (p *pair) Close() error {
	_ = p.server.Close()
	return p.Conn.Close()
}

func TestWithoutLimitsEverybodyIsLetIn(t *testing.T) {
	counter := &Counter{}
	address, conns := accepting(t, counter)
	for range 20 {
		dial(t, "127.0.0.1", address)
		server := <-conns
		if _, ok := server.(interface{ CloseWrite() error }); !ok {
			t.Fatal("one direction cannot be ended")
		}
		if _, ok := server.(io.ReaderFrom); !ok {
			t.Fatal("nothing can be copied within the system")
		}
		server.Close()
	}
	if n := counter.Open(); n != 0 {
		t.Errorf("%d are open", n)
	}
}

func TestWithoutALimitOfItsOwnAClientLeavesPlacesToTheOthers(t *testing.T) {
	refused := make(chan Refusal, 10)
	counter := &Counter{Refused: func(why Refusal) { refused <- why }}
	counter.SetLimits(Limits{Total: 8, Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}})
	address, conns := accepting(t, counter)
	for range 6 {
		dial(t, "127.0.0.1", address)
		<-conns
	}
	isClosed(t, dial(t, "127.0.0.1", address))
	if why := <-refused; why != PerClient {
		t.Errorf("got %v", why)
	}
	dial(t, "127.0.0.2", address)
	<-conns
	dial(t, "127.0.0.9", address)
	<-conns
	isClosed(t, dial(t, "127.0.0.2", address))
	if why := <-refused; why != Total {
		t.Errorf("got %v", why)
	}
}
