package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// echo sends every message back. It closes the connection on the message "close".
func echo(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"chat"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow() //nolint:errcheck // it may be closed already
		conn.SetReadLimit(2 << 20)
		for {
			kind, message, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			if string(message) == "close" {
				_ = conn.Close(4001, "as you wish")
				return
			}
			if err := conn.Write(r.Context(), kind, message); err != nil {
				return
			}
		}
	}
}

func (g *gateway) websocket(ctx context.Context) *websocket.Conn {
	g.t.Helper()
	conn, _, err := websocket.Dial(ctx, "ws://"+g.address+"/chat", &websocket.DialOptions{Subprotocols: []string{"chat"}}) //nolint:bodyclose // the library says that it never needs to be
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(2 << 20)
	want(g.t, "subprotocol", conn.Subprotocol(), "chat")
	return conn
}

func say(ctx context.Context, t *testing.T, conn *websocket.Conn, message []byte) {
	t.Helper()
	if err := conn.Write(ctx, websocket.MessageBinary, message); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.Read(ctx); err != nil || !bytes.Equal(got, message) {
		t.Fatalf("got %d bytes of %d, %v", len(got), len(message), err)
	}
}

func TestWebSocketCarriesMessagesBothWays(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	g := start(t, Options{}, toApp, serve(t, echo(t)))
	conn := g.websocket(ctx)
	for _, size := range []int{0, 1, 125, 126, 65535, 65536, 1 << 20} {
		say(ctx, t, conn, bytes.Repeat([]byte("x"), size))
	}
	reading := conn.CloseRead(ctx) // reads pongs while no messages are expected
	if err := conn.Ping(ctx); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := conn.Close(websocket.StatusNormalClosure, "bye"); err != nil {
		t.Errorf("close: %v", err)
	}
	<-reading.Done()

	conn = g.websocket(ctx)
	_ = conn.Write(ctx, websocket.MessageText, []byte("close"))
	_, _, err := conn.Read(ctx)
	var closed websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != 4001 || closed.Reason != "as you wish" {
		t.Errorf("got %v", err)
	}
}

func TestABackendThatGoesAwayEndsItsWebSockets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	gone := make(chan struct{})
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"chat"}})
		if err != nil {
			t.Error(err)
			return
		}
		<-gone
		_ = conn.CloseNow() // without a close frame
	})
	g := start(t, Options{ClientTimeout: 50 * time.Millisecond}, toApp, backend)
	conn := g.websocket(ctx)
	close(gone)
	if _, _, err := conn.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
	eventually(t, "a client that stays is cut", func() bool {
		g.handler.tunnels.mu.Lock()
		defer g.handler.tunnels.mu.Unlock()
		return len(g.handler.tunnels.conns) == 0
	})
}

// ticking sends an event for every tick.
func ticking(ticks chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		_ = control.Flush()
		for i := 0; ; i++ {
			select {
			case <-ticks:
			case <-r.Context().Done():
				return
			}
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = control.Flush()
		}
	}
}

// WebSockets and event streams stay open when the table changes, even if their route and
// their endpoint are gone.
func TestStreamsSurviveOtherTables(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	chat, other := serve(t, echo(t)), serve(t, func(http.ResponseWriter, *http.Request) {})
	tables := []*table.Table{
		compile(t, toApp, nil, other),
		compile(t, `[{path: /other, backendService: {name: h2, port: 80}}]`, nil, other),
		compile(t, `[]`, nil),
		compile(t, toApp, nil, other, chat),
	}
	g := start(t, Options{}, toApp, chat)
	conn := g.websocket(ctx)
	ticks, bodies := make([]chan struct{}, 2), make([]io.Reader, 2)
	for i, service := range []string{"app", "h2"} {
		ticks[i] = make(chan struct{})
		g.handler.Set(Config{Table: compile(t, `[{backendService: {name: `+service+`, port: 80}}]`, nil, serve(t, ticking(ticks[i])))})
		response, err := http2Client(t).Get("http://" + g.address + "/events")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		bodies[i] = response.Body
	}
	event := make([]byte, 100)
	for i := range 20 {
		g.handler.Set(Config{Table: tables[i%len(tables)]})
		say(ctx, t, conn, []byte("still there?"))
		for j, body := range bodies {
			ticks[j] <- struct{}{}
			n, err := body.Read(event)
			if wanted := fmt.Sprintf("data: %d\n\n", i); string(event[:n]) != wanted {
				t.Fatalf("got %q, %v, want %q", event[:n], err, wanted)
			}
		}
	}
	if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
}

func TestManyWebSocketsAtATime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	g := start(t, Options{}, toApp, serve(t, echo(t)))
	var wait sync.WaitGroup
	for range 50 {
		conn := g.websocket(ctx)
		wait.Go(func() {
			for i := range 20 {
				message := bytes.Repeat([]byte{byte(i)}, 1000*i)
				if err := conn.Write(ctx, websocket.MessageBinary, message); err != nil {
					t.Error(err)
					return
				}
				if _, got, err := conn.Read(ctx); err != nil || !bytes.Equal(got, message) {
					t.Errorf("got %d bytes, %v", len(got), err)
					return
				}
			}
			_ = conn.Close(websocket.StatusNormalClosure, "")
		})
	}
	wait.Wait()
}
