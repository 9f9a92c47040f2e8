package proxy

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// mayUpgrade reports whether the client asks for exactly one other protocol that may be
// forwarded. An upgrade to HTTP/2 or TLS is an offer to the next hop, which is the gateway.
// If a backend accepted it, the connection would carry requests that the gateway does not
// check.
func (e *call) mayUpgrade(protocol string) bool {
	if e.r.ProtoMajor != 1 || e.r.ProtoMinor != 1 || concernsHop(protocol) || strings.IndexByte(protocol, ',') >= 0 {
		return false
	}
	return slices.ContainsFunc(e.r.Header["Connection"], func(value string) bool { return exchange.HasToken(value, "upgrade") })
}

// concernsHop reports whether HTTP itself can be spoken over the protocol.
func concernsHop(protocol string) bool {
	name, _, _ := strings.Cut(strings.ToLower(protocol), "/")
	return name == "http" || name == "tls" || strings.HasPrefix(name, "h2") || strings.HasPrefix(name, "h3")
}

// tunnel connects client and backend after the backend has agreed to switch the protocol.
func (e *call) tunnel(response *upstream.Response) {
	e.BeginAnswer()
	header := e.w.Header()
	exchange.SetFields(header, response.Fields)
	header["Connection"] = []string{"Upgrade"}
	header["Upgrade"] = []string{response.Upgrade}
	for _, tell := range slices.Backward(e.Steps.Tell) { // other heads have cookies in the other order
		tell(&e.Exchange, header)
	}
	e.Answer.Status = response.Status
	client, buffered, err := http.NewResponseController(e.w).Hijack()
	if err != nil {
		clear(header)
		e.Refuse(http.StatusBadGateway, "hijack")
		return
	}
	defer client.Close()
	if conn := clientConnOf(e.r); conn != nil {
		conn.half.http1 = false // all of it is forwarded from now on, also the end of the client's side
	}
	e.handler.tunnels.add(client)
	e.Answer.Tunnel = client
	_ = client.SetDeadline(time.Time{})
	head := http.Response{
		StatusCode: response.Status, ProtoMajor: 1, ProtoMinor: 1, Header: header,
	}
	if err := head.Write(buffered); err != nil || buffered.Flush() != nil {
		e.Answer.Failure = "client_write"
		return
	}
	backend := response.Tunnel()
	early := io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered()))
	var wait sync.WaitGroup
	wait.Go(func() {
		defer e.Panics.Catch("forward an upgraded connection")
		pipe(backend, io.MultiReader(early, client), backend, client)
	})
	defer wait.Wait() // also after a panic, which has closed both
	e.Answer.Sent = pipe(client, backend, client, backend)
	// Nothing more is sent to the client. It has some time to notice that and to close too.
	_ = client.SetReadDeadline(e.Clock.Now().Add(e.ClientTimeout))
	wait.Wait()
}

// pipe copies one direction. The end of the input closes that direction. An error or a panic
// closes both.
func pipe(to io.Writer, from io.Reader, toConn, fromConn net.Conn) int64 {
	ended := false
	defer func() {
		if !ended {
			_ = toConn.Close()
			_ = fromConn.Close()
		}
	}()
	n, err := io.Copy(to, from)
	if half, ok := toConn.(interface{ CloseWrite() error }); ok && err == nil {
		ended = half.CloseWrite() == nil
	}
	return n
}
