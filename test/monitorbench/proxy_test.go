//go:build monitorbench

package monitorbench

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// proxy is the way to a server. It can be cut.
type proxy struct {
	listener net.Listener
	target   string

	mutex sync.Mutex
	cut   bool
	open  map[net.Conn]bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(server, "://") {
		address, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		server = address.Host
	}
	p := &proxy{listener: listener, target: server, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); p.setCut(true) })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.forward(client)
		}
	}()
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) forward(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	p.mutex.Lock()
	cut := p.cut
	p.open[client], p.open[server] = true, true
	p.mutex.Unlock()
	defer func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.open, client)
		delete(p.open, server)
	}()
	if cut {
		return
	}
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	_, _ = io.Copy(client, server)
}

// setCut cuts all connections, and new ones, or lets them be.
func (p *proxy) setCut(cut bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cut = cut
	if cut {
		for connection := range p.open {
			_ = connection.Close()
		}
	}
}
