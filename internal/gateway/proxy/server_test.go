package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// http2Client speaks HTTP/2 without TLS.
func http2Client(t testing.TB) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestGRPCGoesOverHTTP2WithItsTrailers(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			t.Errorf("got %s, TE %q", r.Proto, r.Header.Get("Te"))
		}
		w.Header().Set("Content-Type", "application/grpc")
		control := http.NewResponseController(w)
		_ = control.Flush()
		message := make([]byte, 5)
		for {
			n, err := io.ReadFull(r.Body, message)
			_, _ = w.Write(message[:n])
			_ = control.Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "done")
	})
	g := start(t, Options{}, toH2, backend)
	reader, writer := io.Pipe()
	request, err := http.NewRequest(http.MethodPost, "http://"+g.address+"/pkg.Service/Method", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/grpc+proto")
	request.Header.Set("Te", "trailers")
	response, err := http2Client(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for _, text := range []string{"first", "secnd", "third"} { // a stream in both directions
		_, _ = io.WriteString(writer, text)
		echo := make([]byte, 5)
		if _, err := io.ReadFull(response.Body, echo); err != nil || string(echo) != text {
			t.Fatalf("got %q, %v", echo, err)
		}
	}
	writer.Close()
	if rest, err := io.ReadAll(response.Body); len(rest) != 0 || err != nil {
		t.Fatalf("got %q, %v", rest, err)
	}
	want(t, "trailers", response.Trailer.Get("Grpc-Status")+response.Trailer.Get("Grpc-Message"), "0done")
}

func TestTrailersOverHTTP1(t *testing.T) {
	for name, head := range map[string]string{"announced": "Trailer: Digest\r\n", "not announced": ""} {
		g := start(t, Options{}, toApp, rawBackend(t, "HTTP/1.1 200 OK\r\n"+head+"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nDigest: x\r\n\r\n"))
		response, body := g.get("/")
		want(t, name, body+response.Trailer.Get("Digest"), "okx")
	}
	backend, requests := recording(t)
	g := start(t, Options{}, toApp, backend)
	response, _ := g.raw("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: Digest\r\n\r\n2\r\nok\r\n0\r\nDigest: x\r\n\r\n")
	r := <-requests
	want(t, "request", status(response)+r.body+r.Trailer.Get("Digest"), "200okx")
	want(t, "connection after chunks", response.Close, true)
}

// certificate makes a certificate for names.
func certificate(t *testing.T, serial int64, names ...string) Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: names, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return Certificate{Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
}

func TestTLSServesTheCertificateOfTheName(t *testing.T) {
	backend, requests := recording(t)
	handler := New(Options{})
	handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	var certificates Certificates
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(handler, ServerOptions{HTTPS: listener, Certificates: &certificates, ErrorLog: log.New(io.Discard, "", 0)})
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Run(context.Background()) })
	defer wait.Wait()
	defer server.Shutdown(t.Context()) //nolint:errcheck // nothing is under way
	serial := func(name string, protocols ...string) int64 {
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: protocols})
		if err != nil {
			return 0
		}
		defer conn.Close()
		if len(protocols) > 0 && conn.ConnectionState().NegotiatedProtocol != protocols[0] {
			t.Errorf("negotiated %q", conn.ConnectionState().NegotiatedProtocol)
		}
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	want(t, "no certificate", serial("a.example.com"), int64(0))
	if err := certificates.Set([]Certificate{certificate(t, 1, "a.example.com"), certificate(t, 2, "*.example.com", "a.example.com")}); err != nil {
		t.Fatal(err)
	}
	for name, number := range map[string]int64{"A.example.com": 1, "b.example.com": 2, "b.c.example.com": 0, "example.com": 0, "": 1} {
		want(t, "certificate of "+name, serial(name), number)
	}
	elsewhere := certificate(t, 3, "a.example.com")
	elsewhere.Hosts = []string{"other.example.org"}
	if err := certificates.Set([]Certificate{certificate(t, 1, "a.example.com"), elsewhere}); err != nil {
		t.Fatal(err)
	}
	want(t, "certificate of a host that it does not name", serial("other.example.org"), int64(3))
	serial("a.example.com", "h2")
	serial("a.example.com", "http/1.1")

	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{ServerName: "a.example.com", InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	for serial := range int64(2) { // a connection stays open when its certificate is replaced
		response, err := client.Get("https://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		want(t, "protocol", response.Proto, "HTTP/2.0")
		want(t, "proto", (<-requests).Header.Get("X-Forwarded-Proto"), "https")
		if err := certificates.Set([]Certificate{certificate(t, 10+serial, "a.example.com")}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "the new one", serial("a.example.com"), int64(11))
	if err := certificates.Set([]Certificate{{}}); err == nil {
		t.Error("an empty certificate was taken")
	}
	want(t, "still", serial("a.example.com"), int64(11))
}

func TestSlowAndOversizedHeadsAreBounded(t *testing.T) {
	g := startServer(t, Options{}, ServerOptions{HeaderTimeout: 300 * time.Millisecond}, compile(t, toApp, nil))
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the head may take for ever: %v", err)
	}
	response, _ := g.raw("GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("a", 80<<10) + "\r\n\r\n")
	want(t, "oversized", response.StatusCode, 431)
}

func TestSwappingTablesUnderLoadLosesNothing(t *testing.T) {
	var backends []string
	for range 3 {
		backends = append(backends, serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	}
	tables := []*table.Table{
		compile(t, toApp, nil, backends...),
		compile(t, toApp, nil, backends[0]),
		compile(t, `[{backendService: {name: h2, port: 80}}]`, nil, backends[1:]...),
		compile(t, `[{backends: [{name: app, port: 80, weight: 1}, {name: h2, port: 80, weight: 1}]}]`, nil, backends...),
	}
	g := startTable(t, Options{}, tables[0])
	done := make(chan struct{})
	var wait sync.WaitGroup
	var served atomic.Int64
	load := func(client *http.Client) {
		for {
			select {
			case <-done:
				return
			default:
			}
			response, err := client.Post("http://"+g.address, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Error(err)
				return
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != http.StatusOK || string(body) != "ok" || err != nil {
				t.Errorf("got %d %q, %v", response.StatusCode, body, err)
			}
			served.Add(1)
		}
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for range 2 {
		wait.Go(func() { load(&http.Client{Transport: transport}) })
		wait.Go(func() { load(http2Client(t)) })
	}
	for i := range 400 {
		g.handler.Set(Config{Table: tables[i%len(tables)]})
		before := served.Load()
		eventually(t, "requests are served", func() bool { return served.Load() > before || t.Failed() })
	}
	close(done)
	wait.Wait()
}

func TestDrainTellsClientsAndWaitsForRequests(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{})
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(held)
			<-hold
		}
		_, _ = io.WriteString(w, "ok")
	})
	g := start(t, Options{}, toApp, backend)
	response, _ := g.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	want(t, "before", response.Close, false)
	g.server.Drain()
	response, body := g.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	want(t, "while draining", response.Close, true)
	want(t, "still served", body, "ok")

	var wait sync.WaitGroup
	wait.Go(func() {
		if _, body := g.raw("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"); body != "ok" {
			t.Errorf("the request under way got %q", body)
		}
	})
	<-held
	wait.Go(func() {
		if err := g.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "nothing listens any more", func() bool {
		conn, err := net.Dial("tcp", g.address)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(hold)
	wait.Wait()
}

// Kept connections would bring more requests to a gateway in standby, although other
// replicas can serve them.
func TestStandbySendsKeptConnectionsAway(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	g := start(t, Options{}, toApp, backend)
	dial := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn, bufio.NewReader(conn)
	}
	ask := func(conn net.Conn, in *bufio.Reader) bool {
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.Close
	}
	idle, fromIdle := dial()
	want(t, "closes before", ask(idle, fromIdle), false)
	g.server.Standby(true)
	if _, err := fromIdle.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection without a request: %v, want its end", err)
	}
	for range 2 { // new connections are served
		conn, in := dial()
		want(t, "closes on standby", ask(conn, in), true)
	}
	g.server.Standby(false)
	conn, in := dial()
	want(t, "closes afterwards", ask(conn, in), false)
	want(t, "closes the second time", ask(conn, in), false)
}

func TestShutdownCutsTunnelsAtTheEnd(t *testing.T) {
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
	g := start(t, Options{}, toApp, backend)
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, "101") {
		t.Fatalf("got %q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_ = g.server.Shutdown(ctx)
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the tunnel goes on")
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // as net returns it
		t.Error("the tunnel is left open")
	}
}

func TestClientsThatStallAreCut(t *testing.T) {
	aborted := make(chan struct{}, 1)
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		for r.Context().Err() == nil { // an endless response
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		aborted <- struct{}{}
	})
	for _, head := range []string{"Content-Length: 100\r\n\r\nabc", "Content-Length: 100000\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"} {
		g := start(t, Options{ClientTimeout: 50 * time.Millisecond}, toApp, backend)
		conn, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+head)
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		answer, err := io.ReadAll(conn)
		conn.Close()
		// net/http may take the silence for a client that has left, and may react first.
		if errors.Is(err, os.ErrDeadlineExceeded) || (len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 408 ")) {
			t.Errorf("%s: got %q, %v", head, answer, err)
		}
	}
	g := start(t, Options{ClientTimeout: 50 * time.Millisecond}, toApp, backend)
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-aborted
}

func TestBodyAndEventsMayPauseOnTheBackendsSide(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		control := http.NewResponseController(w)
		for range 3 { // pauses longer than the client's may be
			<-time.After(40 * time.Millisecond)
			_, _ = w.Write(body)
			_ = control.Flush()
		}
		<-time.After(40 * time.Millisecond) // and a pause before the end
	})
	for _, length := range []int64{4, -1} {
		g := start(t, Options{ClientTimeout: 20 * time.Millisecond}, toApp, backend)
		request := g.request("POST", "/")
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader("body")), length
		response, body := g.send(request)
		want(t, "response", status(response)+body, "200bodybodybody")
	}
}

func TestWhatEndsWhileTheServerShutsDownIsLogged(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{}, 2)
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			held <- struct{}{}
			<-hold
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		held <- struct{}{}
		<-hold
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	output := &lockedbuffer.Buffer{}
	handler := New(Options{AccessLog: output})
	handler.Set(Config{Table: compile(t, toApp, nil, backend), LogPercent: 100})
	defer handler.registry.Keep(func(string) bool { return false })
	server := NewServer(handler, ServerOptions{HTTP: listener, ErrorLog: log.New(io.Discard, "", 0)})
	run, shutdown := make(chan error, 1), make(chan error, 1)
	go func() { run <- server.Run(t.Context()) }()
	for _, fields := range []string{"", "Connection: Upgrade\r\nUpgrade: x\r\n"} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n")
		<-held
		if fields != "" {
			_, _ = conn.Read(make([]byte, 1)) // returns when the gateway has switched the protocol
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}
	go func() { shutdown <- server.Shutdown(t.Context()) }()
	eventually(t, "nothing listens any more", func() bool {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	select {
	case err := <-run:
		t.Errorf("Run has ended, and requests are under way: %v", err)
		run <- nil
	case <-time.After(10 * time.Millisecond):
	}
	close(hold)
	if err := errors.Join(<-shutdown, <-run); err != nil {
		t.Fatal(err)
	}
	want(t, "lines", len(output.Lines()), 2)
}

func TestARequestOnAnOldTableGoesWhereSomebodyIsReady(t *testing.T) {
	backend, _ := recording(t)
	g := start(t, Options{}, `[{backends: [{name: app, port: 80, weight: 1}, {name: h2, port: 80, weight: 1}]}]`, backend)
	g.handler.registry.Service("app:80", nil).Set(nil) // as the next table has it; requests still use the current one
	for range 20 {
		response, _ := g.get("/")
		want(t, "status", response.StatusCode, 200)
	}
}
