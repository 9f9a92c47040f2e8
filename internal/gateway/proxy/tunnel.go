package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// tunnels are the connections that speak another protocol, which net/http knows nothing
// of any more.
type tunnels struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	empty chan struct{} // closed when the last one ends; nil while nobody waits
}

func (t *tunnels) add(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns = map[net.Conn]struct{}{}
	}
	t.conns[conn] = struct{}{}
}

func (t *tunnels) remove(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, conn)
	if len(t.conns) == 0 && t.empty != nil {
		close(t.empty)
		t.empty = nil
	}
}

// wait waits for the tunnels to end, and ends them when the context does.
func (t *tunnels) wait(ctx context.Context) {
	t.mu.Lock()
	if len(t.conns) == 0 {
		t.mu.Unlock()
		return
	}
	if t.empty == nil {
		t.empty = make(chan struct{})
	}
	empty := t.empty
	t.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
		t.cut()
		<-empty
	}
}

func (t *tunnels) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for conn := range t.conns {
		_ = conn.Close()
	}
}

// tunnel connects client and backend after the backend agreed to change the protocol.
func (e *exchange) tunnel(response *upstream.Response) {
	header := e.w.Header()
	setFields(header, response.Fields)
	header["Connection"] = []string{"Upgrade"}
	header["Upgrade"] = []string{response.Upgrade}
	e.status = response.Status
	client, buffered, err := http.NewResponseController(e.w).Hijack()
	if err != nil {
		clear(header)
		e.refuse(http.StatusBadGateway, "hijack")
		return
	}
	defer client.Close()
	e.handler.tunnels.add(client)
	e.tunneled = client
	_ = client.SetDeadline(time.Time{})
	head := http.Response{
		StatusCode: response.Status, ProtoMajor: 1, ProtoMinor: 1, Header: header,
	}
	if err := head.Write(buffered); err != nil || buffered.Flush() != nil {
		e.failure = "client_write"
		return
	}
	backend := response.Tunnel()
	early := io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered()))
	var wait sync.WaitGroup
	wait.Go(func() { pipe(backend, io.MultiReader(early, client), backend, client) })
	e.sent = pipe(client, backend, client, backend)
	// Nobody answers the client any more: it has some time to see that and to go, too.
	_ = client.SetReadDeadline(e.handler.options.Clock.Now().Add(e.handler.options.ClientTimeout))
	wait.Wait()
}

// pipe copies one direction. Its end is passed on; an error ends both directions.
func pipe(to io.Writer, from io.Reader, toConn, fromConn net.Conn) int64 {
	n, err := io.Copy(to, from)
	if err == nil {
		if half, ok := toConn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			return n
		}
	}
	_ = toConn.Close()
	_ = fromConn.Close()
	return n
}
