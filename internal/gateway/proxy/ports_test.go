package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// freePlace returns a place where nothing listens. It is below the ports that the system gives to connections, which would take
// it at any time.
func freePlace(t *testing.T) Place {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return Place{Address: address}
		}
	}
	t.Fatal("no port is free")
	return Place{}
}

// listens changes where the gateway listens.
func (g *gateway) listens(t *testing.T, places ...Place) {
	t.Helper()
	for place, err := range g.server.Listen(t.Context(), places) {
		t.Fatalf("%v: %v", place, err)
	}
}

// keptConn is an open connection of a client.
type keptConn struct {
	net.Conn

	in *bufio.Reader
}

func dial(t *testing.T, address string) *keptConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return &keptConn{conn, bufio.NewReader(conn)}
}

func (k *keptConn) ask(path string) {
	_, _ = io.WriteString(k, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
}

func (k *keptConn) answer(t *testing.T) (answer, string) {
	t.Helper()
	response, err := http.ReadResponse(k.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return newAnswer(response), string(body)
}

// heldBackend is a backend that answers /held when it is told.
type heldBackend struct {
	address    string
	held, hold chan struct{}
}

func newHeldBackend(t *testing.T) heldBackend {
	b := heldBackend{held: make(chan struct{}, 10), hold: make(chan struct{})}
	b.address = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			b.held <- struct{}{}
			<-b.hold
		}
		_, _ = io.WriteString(w, "ok")
	})
	return b
}

func TestPortsOpenAndClose(t *testing.T) {
	backend := newHeldBackend(t)
	g := start(t, Options{}, toApp, backend.address)
	one, two := freePlace(t), freePlace(t)
	g.listens(t, one)
	stays, leaves := dial(t, one.Address), dial(t, one.Address)
	stays.ask("/")
	stays.answer(t)
	g.listens(t, one, two)
	busy, idle := dial(t, two.Address), dial(t, two.Address)
	idle.ask("/")
	idle.answer(t)
	busy.ask("/held")
	<-backend.held

	g.listens(t, one)
	if _, err := net.Dial("tcp", two.Address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection to the closed port: %v", err)
	}
	if _, err := idle.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection to the closed port: %v, want its end", err)
	}
	close(backend.hold)
	response, body := busy.answer(t)
	want(t, "the request under way", body, "ok")
	want(t, "closes", response.Close, true)
	if _, err := busy.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection after its last answer: %v, want its end", err)
	}
	for range 2 { // the port that stays does not notice
		stays.ask("/")
		response, _ := stays.answer(t)
		want(t, "the other port closes", response.Close, false)
	}
	eventually(t, "nothing of the closed port is left", func() bool { return len(g.server.everyPort()) == 2 })
	leaves.Close()
}

func TestAClosedPortTellsHTTP2ClientsWithGOAWAY(t *testing.T) {
	backend := newHeldBackend(t)
	g := start(t, Options{}, toApp, backend.address)
	place := freePlace(t)
	g.listens(t, place)
	conn, err := net.Dial("tcp", place.Address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := (&http2.Transport{AllowHTTP: true}).NewClientConn(conn)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		request, _ := http.NewRequest(http.MethodGet, "http://a/held", nil)
		response, err := client.RoundTrip(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); string(body) != "ok" || err != nil {
			t.Errorf("the request under way got %q, %v", body, err)
		}
	})
	<-backend.held
	g.listens(t)
	eventually(t, "the client knows that the connection ends", func() bool { return !client.CanTakeNewRequest() })
	close(backend.hold)
	wait.Wait()
	eventually(t, "the connection has ended", func() bool { return client.State().Closed })
}

func TestAClosedPortCutsWhatDoesNotEnd(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, in)
	})
	g := startServer(t, Options{}, ServerOptions{DrainTimeout: 50 * time.Millisecond}, compile(t, toApp, nil, backend))
	place := freePlace(t)
	g.listens(t, place)
	tunnel := dial(t, place.Address)
	_, _ = io.WriteString(tunnel, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	response, err := http.ReadResponse(tunnel.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	want(t, "upgraded", response.StatusCode, http.StatusSwitchingProtocols)
	g.listens(t)
	if _, err := tunnel.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the tunnel: %v, want its end", err)
	}
	eventually(t, "nothing of the closed port is left", func() bool { return len(g.server.everyPort()) == 1 })
}

func TestAPortThatIsTakenIsTriedAgainAndTheOthersServe(t *testing.T) {
	backend := newHeldBackend(t)
	g := start(t, Options{}, toApp, backend.address)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken, free := Place{Address: other.Addr().String()}, freePlace(t)
	failed := g.server.Listen(t.Context(), []Place{taken, free})
	if len(failed) != 1 || !errors.Is(failed[taken], syscall.EADDRINUSE) {
		t.Errorf("got %v", failed)
	}
	c := dial(t, free.Address)
	c.ask("/")
	_, body := c.answer(t)
	want(t, "the free one", body, "ok")
	other.Close()
	g.listens(t, taken, free)
	c = dial(t, taken.Address)
	c.ask("/")
	_, body = c.answer(t)
	want(t, "the one that was taken", body, "ok")
}

func TestAPortMayGoOverToTLS(t *testing.T) {
	backend := newHeldBackend(t)
	var certificates Certificates
	if err := certificates.Set([]Certificate{certificate(t, 1, "a")}); err != nil {
		t.Fatal(err)
	}
	g := startServer(t, Options{}, ServerOptions{Certificates: &certificates}, compile(t, toApp, nil, backend.address))
	place := freePlace(t)
	g.listens(t, place)
	c := dial(t, place.Address)
	c.ask("/held")
	<-backend.held
	place.Kind = PortTLS
	g.listens(t, place)
	want(t, "the certificate", serialOf(t, place.Address, "a"), int64(1))
	close(backend.hold)
	_, body := c.answer(t)
	want(t, "the request without TLS that was under way", body, "ok")
}

func TestPortsOpenedInStandbySendClientsAway(t *testing.T) {
	backend := newHeldBackend(t)
	g := start(t, Options{}, toApp, backend.address)
	g.server.Standby(true)
	place := freePlace(t)
	g.listens(t, place)
	c := dial(t, place.Address)
	c.ask("/")
	response, _ := c.answer(t)
	want(t, "closes on standby", response.Close, true)
}

// A port that stays loses no request while others come and go.
func TestNoRequestIsLostOnAPortThatStays(t *testing.T) {
	backend := newHeldBackend(t)
	g := start(t, Options{}, toApp, backend.address)
	stays, moves := freePlace(t), freePlace(t)
	g.listens(t, stays)
	done := make(chan struct{})
	var wait sync.WaitGroup
	var served atomic.Int64
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	defer transport.CloseIdleConnections()
	for _, client := range []*http.Client{{Transport: transport}, {Transport: transport}, http2Client(t)} {
		wait.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				response, err := client.Post("http://"+stays.Address, "text/plain", strings.NewReader("body")) // is not sent again
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if string(body) != "ok" || err != nil {
					t.Errorf("got %s %q, %v", strconv.Itoa(response.StatusCode), body, err)
				}
				served.Add(1)
			}
		})
	}
	for i := range 100 {
		if i%2 == 0 {
			g.listens(t, moves, stays)
		} else {
			g.listens(t, stays)
		}
		before := served.Load()
		eventually(t, "requests are served", func() bool { return served.Load() > before || t.Failed() })
	}
	close(done)
	wait.Wait()
}

// serialOf returns the serial number of the certificate that a name gets. 0: none.
func serialOf(t *testing.T, address, name string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return 0
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}
