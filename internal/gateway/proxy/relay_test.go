package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/authority"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// logLines collects an access log.
type logLines struct{ lockedbuffer.Buffer }

// has reports whether a line has all of these parts.
func (l *logLines) has(parts ...string) bool {
	return slices.ContainsFunc(l.Lines(), func(line string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	})
}

// streamTable makes a table. Endpoints are those of port 1 of the Services, for TCP and for UDP.
func streamTable(t testing.TB, listeners []table.Listener, rules []table.Rule, services map[string][]string) *table.Table {
	t.Helper()
	in := table.Input{Listeners: listeners, Rules: rules, Services: map[model.ServiceName]model.Service{}}
	for name, endpoints := range services {
		port := map[int32]model.ServicePort{1: {Endpoints: endpoints}}
		in.Services[model.ServiceName{Name: name}] = model.Service{Ports: port, UDP: port}
	}
	compiled, problems := table.Compile(in)
	for _, problem := range problems {
		t.Logf("problem: %+v", problem)
	}
	return compiled
}

func to(services ...string) []model.BackendRef {
	var refs []model.BackendRef
	for _, service := range services {
		refs = append(refs, model.BackendRef{Service: service, Port: 1, Weight: 1})
	}
	return refs
}

// tlsEcho starts a server of crypto/tls that says its name and the name that it was asked for, and then sends back what it
// gets.
func tlsEcho(t testing.TB, name string, with *authority.Authority, names ...string) string {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{*with.Issue(t, x509.Certificate{DNSNames: names})}}
	return listen(t, func(conn net.Conn) {
		secure := tls.Server(conn, config)
		if secure.Handshake() != nil {
			return
		}
		_, _ = io.WriteString(secure, name+" "+secure.ConnectionState().ServerName+"\n")
		_, _ = io.Copy(secure, secure)
		_ = secure.CloseWrite()
	})
}

// streamGateway is a gateway with a port for TLS.
type streamGateway struct {
	*gateway

	authority *authority.Authority
	address   string
	log       logLines
	registry  *prometheus.Registry
}

// startStreams starts a gateway: through.test and everything below wild.test pass through, ended.test is ended, web.test is HTTP.
func startStreams(t testing.TB, ca *authority.Authority, services map[string][]string) *streamGateway {
	t.Helper()
	return startStreamsWith(t, Options{}, ca, services)
}

func startStreamsWith(t testing.TB, options Options, ca *authority.Authority, services map[string][]string) *streamGateway {
	t.Helper()
	g := &streamGateway{authority: ca, registry: prometheus.NewPedanticRegistry()}
	options.AccessLog, options.Metrics = &g.log, g.registry
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.address = listener.Addr().String()
	certificates := &Certificates{}
	of := Certificate{Certificate: *g.authority.Issue(t, x509.Certificate{DNSNames: []string{"ended.test", "web.test"}})}
	err = certificates.SetListeners([]SecureListener{
		{Port: 443, Hostname: "through.test"},
		{Port: 443, Hostname: "*.wild.test"},
		{Port: 443, Hostname: "ended.test", Certificates: []Certificate{of}},
		{Port: 443, Hostname: "web.test", Certificates: []Certificate{of}},
	})
	if err != nil {
		t.Fatal(err)
	}
	compiled := streamTable(t,
		[]table.Listener{
			{Port: 443, Secure: true, Hostname: "through.test", Transport: model.TransportTLS},
			{Port: 443, Secure: true, Hostname: "*.wild.test", Transport: model.TransportTLS},
			{Port: 443, Secure: true, Hostname: "ended.test", Transport: model.TransportTCP},
			{Port: 443, Secure: true, Hostname: "web.test"},
		},
		[]table.Rule{
			{Name: "through", Listeners: []int{0}, Host: "through.test", Transport: model.TransportTLS, StrictShares: true, Backends: to("a")},
			{Name: "wild", Listeners: []int{1}, Host: "*.wild.test", Transport: model.TransportTLS, StrictShares: true, Backends: to("b")},
			{Name: "exact", Listeners: []int{1}, Host: "exact.wild.test", Transport: model.TransportTLS, StrictShares: true, Backends: to("a")},
			{Name: "refused", Listeners: []int{1}, Host: "refused.wild.test", Transport: model.TransportTLS, StrictShares: true, Backends: to("a"), Fault: &model.Fault{Reason: "Unsupported"}},
			{Name: "nowhere", Listeners: []int{1}, Host: "nowhere.wild.test", Transport: model.TransportTLS, StrictShares: true, Backends: to("none")},
			{Name: "ended", Listeners: []int{2}, Host: "ended.test", Transport: model.TransportTCP, StrictShares: true, Backends: to("plain")},
			{Name: "web", Listeners: []int{3}, Host: "web.test", StrictShares: true, Backends: to("web")},
		}, services)
	g.gateway = startServer(t, options, ServerOptions{HTTPS: listener, HTTPSPort: 443, Certificates: certificates}, compiled)
	return g
}

// dial opens a connection with TLS.
func (g *streamGateway) dial(name string) (*tls.Conn, error) {
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	secure := tls.Client(conn, &tls.Config{RootCAs: g.authority.Pool(), ServerName: name})
	if err := secure.Handshake(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

func TestConnectionsGoWhereTheNameOfTheirTLSLeads(t *testing.T) {
	ca := authority.New(t, "streams")
	g := startStreams(t, ca, map[string][]string{
		"a":    {tlsEcho(t, "a", ca, "through.test", "exact.wild.test")},
		"b":    {tlsEcho(t, "b", ca, "x.wild.test", "y.x.wild.test")},
		"none": nil,
	})
	for name, want := range map[string]string{
		"through.test": "a through.test", "THROUGH.test": "a THROUGH.test", "exact.wild.test": "a exact.wild.test",
		"x.wild.test": "b x.wild.test", "y.x.wild.test": "b y.x.wild.test",
	} {
		conn, err := g.dial(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		in := bufio.NewReader(conn)
		line, err := in.ReadString('\n')
		if strings.TrimSpace(line) != want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", name, line, err, want)
		}
		sent := strings.Repeat("x", 1<<20)
		go func() {
			_, _ = io.WriteString(conn, sent)
			_ = conn.CloseWrite()
		}()
		back, err := io.ReadAll(in)
		if string(back) != sent || err != nil {
			t.Errorf("%s: %d bytes have come back, %v", name, len(back), err)
		}
		_ = conn.Close()
	}
	eventually(t, "a line for a connection", func() bool {
		return g.log.has(`"protocol":"TLS","host":"x.wild.test","route":"wild","received":1`, `"upstream":"127.0.0.1:`, `"client":"127.0.0.1"`) && !g.log.has("failure")
	})
	eventually(t, "the connections are counted", func() bool {
		return series(t, g.registry)["slipway_gateway_streams_total ok wild"] == 2
	})
}

func TestAConnectionThatLeadsNowhereIsClosed(t *testing.T) {
	ca := authority.New(t, "streams")
	g := startStreams(t, ca, map[string][]string{"a": {tlsEcho(t, "a", ca, "refused.wild.test", "other.test", "wild.test")}, "none": nil, "plain": nil})
	for name, failure := range map[string]string{
		"refused.wild.test": "route_unavailable", "nowhere.wild.test": "no_endpoints", "x.wild.test": "no_backend", "wild.test": "no_route", "other.test": "no_route",
		"bad_name.wild.test": "client_hello", "ended.test": "no_endpoints",
	} {
		if _, err := g.dial(name); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want the end of the connection and no byte", name, err)
		}
		what := []string{`"failure":"` + failure + `"`}
		if failure != "client_hello" {
			what = append(what, `"host":"`+name+`"`)
		}
		eventually(t, "a line about "+name, func() bool { return g.log.has(what...) })
	}
}

func TestHTTPAndOtherConnectionsShareAPort(t *testing.T) {
	ca := authority.New(t, "streams")
	g := startStreams(t, ca, map[string][]string{
		"web":   {serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })},
		"plain": {listen(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn); _ = conn.(*net.TCPConn).CloseWrite() })},
	})
	for _, http2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), ServerName: "web.test"}, ForceAttemptHTTP2: http2}
		client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.address, nil)
		request.Host = "web.test"
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "status", response.StatusCode, 200)
		want(t, "HTTP/2", response.ProtoMajor == 2, http2)
		_ = response.Body.Close()
		// The same connection for a name of another listener.
		request.Host = "ended.test"
		response, err = client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "status for another listener's name", response.StatusCode, http.StatusMisdirectedRequest)
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	}
	conn, err := g.dial("ended.test")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	want(t, "protocol", conn.ConnectionState().NegotiatedProtocol, "")
	_, _ = io.WriteString(conn, "hello")
	_ = conn.CloseWrite()
	back, err := io.ReadAll(conn)
	if string(back) != "hello" || err != nil {
		t.Errorf("got %q, %v", back, err)
	}
}
