package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corssetting "github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// backendTo is a reference to the Service "app".
func backendTo(name string) model.BackendRef {
	return model.BackendRef{Namespace: "shop", Service: name, Port: 80, Weight: 1, Field: "backendRefs"}
}

// compileRules makes a table of rules. Each backend is a Service of the namespace shop at
// port 80. An empty address means that there are no endpoints.
func compileRules(t testing.TB, in table.Input, backends map[string]string) *table.Table {
	t.Helper()
	if in.Listeners == nil {
		in.Listeners = []table.Listener{{Name: "all"}}
	}
	in.Services = map[model.ServiceName]model.Service{}
	for name, address := range backends {
		port := model.ServicePort{}
		if address != "" {
			port.Endpoints = []string{address}
		}
		in.Services[model.ServiceName{Namespace: "shop", Name: name}] = model.Service{Ports: map[int32]model.ServicePort{80: port}}
	}
	for i := range in.Rules {
		in.Rules[i].Index = i
	}
	compiled, problems := table.Compile(in)
	for _, problem := range problems {
		t.Logf("problem: %+v", problem)
	}
	return compiled
}

func TestAStrictShareIsAnsweredForItsBackend(t *testing.T) {
	fault := backendTo("app")
	fault.Fault = &model.Fault{Reason: "RefNotPermitted", Message: "no grant"}
	backend := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	g := startTable(t, Options{}, compileRules(t, table.Input{Rules: []table.Rule{
		{Name: "fault", Path: "/fault", StrictShares: true, Backends: []model.BackendRef{fault}},
		{Name: "gone", Path: "/gone", StrictShares: true, Backends: []model.BackendRef{backendTo("gone")}},
		{Name: "idle", Path: "/idle", StrictShares: true, Backends: []model.BackendRef{backendTo("idle")}},
		{Name: "none", Path: "/none", StrictShares: true},
		{Name: "shared", Path: "/shared", StrictShares: true, Backends: []model.BackendRef{backendTo("app"), backendTo("gone"), backendTo("idle")}},
		{Name: "others", Path: "/others", Backends: []model.BackendRef{backendTo("app"), backendTo("gone"), backendTo("idle")}},
	}}, map[string]string{"app": backend, "idle": ""}))
	for path, code := range map[string]string{"/fault": "500", "/gone": "500", "/idle": "503", "/none": "500"} {
		response, _ := g.get(path)
		want(t, path, status(response), code)

		request := g.request("POST", path, "Content-Type", "application/grpc+proto", "Te", "trailers")
		request.Body = io.NopCloser(strings.NewReader("\x00\x00\x00\x00\x00"))
		grpc, err := http2Client(t).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(grpc.Body)
		grpc.Body.Close()
		want(t, path+" with gRPC", newAnswer(grpc).StatusCode, 200)
		want(t, path+" with gRPC", grpc.Header.Get("Grpc-Status")+" "+grpc.Header.Get("Content-Type"), "14 application/grpc")
		if len(body) > 0 || err != nil || len(grpc.Trailer) > 0 {
			t.Errorf("%s: after the head comes %q, %v, %v", path, body, err, grpc.Trailer)
		}
	}
	seen := map[string]bool{}
	for range 200 {
		response, _ := g.get("/shared")
		seen[status(response)] = true
		if response, _ := g.get("/others"); response.StatusCode != http.StatusOK {
			t.Fatalf("without strict shares: %d", response.StatusCode)
		}
	}
	if len(seen) != 3 || !seen["200"] || !seen["500"] || !seen["503"] {
		t.Errorf("got %v", seen)
	}
}

// A request that is not gRPC, or not over HTTP/2, has no use for a status of gRPC.
func TestOnlyGRPCGetsAGRPCStatus(t *testing.T) {
	g := startTable(t, Options{}, compileRules(t, table.Input{Rules: []table.Rule{
		{Name: "strict", StrictShares: true}, {Name: "others", Path: "/others", Backends: []model.BackendRef{backendTo("idle")}},
	}}, map[string]string{"idle": ""}))
	response, _ := g.get("/", "Content-Type", "application/grpc")
	want(t, "HTTP/1.1", status(response)+response.Header.Get("Grpc-Status"), "500")
	for path, code := range map[string]string{"/": "500", "/others": "503"} {
		contentType := map[string]string{"/": "application/json", "/others": "application/grpc"}[path]
		plain, err := http2Client(t).Do(g.request("GET", path, "Content-Type", contentType))
		if err != nil {
			t.Fatal(err)
		}
		plain.Body.Close()
		want(t, path, status(newAnswer(plain))+plain.Header.Get("Grpc-Status"), code)
	}
}

// twoPorts is a gateway with a plain port 80 and a TLS port 443.
type twoPorts struct{ plain, secure string }

func startTwoPorts(t *testing.T, compiled *table.Table, certificates *Certificates) twoPorts {
	t.Helper()
	handler := New(Options{})
	handler.Set(Config{Table: compiled})
	var listeners [2]net.Listener
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	server := NewServer(handler, ServerOptions{
		HTTP: listeners[0], HTTPS: listeners[1], HTTPPort: 80, HTTPSPort: 443, Certificates: certificates, ErrorLog: log.New(io.Discard, "", 0),
	})
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Run(context.Background()) })
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		_ = server.Shutdown(ended)
		wait.Wait()
	})
	return twoPorts{listeners[0].Addr().String(), listeners[1].Addr().String()}
}

// get sends a request over a connection and returns the status and the body.
func getOver(t *testing.T, conn net.Conn, host, path string) string {
	t.Helper()
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return status(newAnswer(response)) + response.Header.Get("Location")
	}
	return string(body)
}

func TestARequestGetsTheListenerOfItsPortAndTheCertificateOfItsName(t *testing.T) {
	in := table.Input{Listeners: []table.Listener{
		{Name: "plain", Port: 80},
		{Name: "any", Port: 443, Secure: true},
		{Name: "below", Port: 443, Secure: true, Hostname: "*.example.com"},
		{Name: "exact", Port: 443, Secure: true, Hostname: "a.example.com"},
		{Name: "closed", Port: 443, Secure: true, Hostname: "closed.example.com"},
	}}
	for i, l := range in.Listeners {
		in.Rules = append(in.Rules, table.Rule{Name: l.Name, Listeners: []int{i}, Path: "/rule", Direct: &model.DirectResponse{StatusCode: 200, Body: []byte(l.Name)}})
	}
	in.Rules = append(in.Rules, table.Rule{Name: "redirect", Path: "/redirect", PathType: table.PathExact, Redirect: &model.Redirect{StatusCode: 302, Host: "b.test", ListenerPort: true}})
	certificates := new(Certificates)
	if err := certificates.SetListeners([]SecureListener{
		{Port: 443, Certificates: []Certificate{certificate(t, 1, "some.test")}},
		{Port: 443, Hostname: "*.example.com", Certificates: []Certificate{certificate(t, 2, "x.example.com"), certificate(t, 3, "y.example.com")}},
		{Port: 443, Hostname: "a.example.com", Certificates: []Certificate{certificate(t, 4, "a.example.com")}},
		{Port: 443, Hostname: "closed.example.com"},
		{Port: 8443, Hostname: "b.example.com", Certificates: []Certificate{certificate(t, 5, "b.example.com")}},
	}); err != nil {
		t.Fatal(err)
	}
	ports := startTwoPorts(t, compileRules(t, in, nil), certificates)

	conn, err := net.Dial("tcp", ports.plain)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the plain port", getOver(t, conn, "a.example.com", "/rule"), "plain")
	if conn, err = net.Dial("tcp", ports.plain); err != nil {
		t.Fatal(err)
	}
	want(t, "a redirect", getOver(t, conn, "a.example.com:9999", "/redirect"), "302http://b.test/redirect")
	for _, tc := range []struct {
		server, host string
		serial       int64 // 0: no connection
		want         string
	}{
		{"a.example.com", "a.example.com", 4, "exact"},
		{"A.example.com", "a.example.com:443", 4, "exact"},
		{"x.example.com", "x.example.com", 2, "below"},
		{"y.example.com", "y.example.com", 3, "below"},
		{"u.v.example.com", "u.v.example.com", 2, "below"}, // the first, as none has the name
		{"b.example.com", "b.example.com", 2, "below"},     // not that of another port
		{"other.test", "other.test", 1, "any"},
		{"", "other.test", 1, "any"},
		{"closed.example.com", "closed.example.com", 0, ""},
		{"x.example.com", "y.example.com", 2, "below"},
		{"x.example.com", "a.example.com", 2, "421"},
		{"other.test", "closed.example.com", 1, "421"},
		{"", "a.example.com", 1, "421"},
	} {
		conn, err := tls.Dial("tcp", ports.secure, &tls.Config{ServerName: tc.server, InsecureSkipVerify: true})
		if err != nil {
			want(t, tc.server+": "+err.Error(), int64(0), tc.serial)
			continue
		}
		want(t, "certificate for "+tc.server, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), tc.serial)
		want(t, tc.server+" "+tc.host, getOver(t, conn, tc.host, "/rule"), tc.want)
	}
}

func TestTheConnectionOfAGatewayWithoutTLSIsNoneOfATLSListener(t *testing.T) {
	ports := startTwoPorts(t, compileRules(t, table.Input{
		Listeners: []table.Listener{{Name: "secure", Port: 80, Secure: true}},
		Rules:     []table.Rule{{Name: "secure", Direct: &model.DirectResponse{StatusCode: 200}}},
	}, nil), new(Certificates))
	conn, err := net.Dial("tcp", ports.plain)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "status", getOver(t, conn, "a.test", "/"), "404")
}

func TestEveryMirrorGetsItsFraction(t *testing.T) {
	backend := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	first, firstCopies := recording(t)
	second, secondCopies := recording(t)
	mirror := func(name string, numerator uint32) model.MirrorRef {
		return model.MirrorRef{Namespace: "shop", Service: name, Port: 80, Numerator: numerator, Denominator: 3}
	}
	g := startTable(t, Options{}, compileRules(t, table.Input{Rules: []table.Rule{{
		Name: "r", Backends: []model.BackendRef{backendTo("app")}, Mirrors: []model.MirrorRef{mirror("first", 3), mirror("never", 0), mirror("second", 3)},
	}, {
		Name: "third", Path: "/third", Backends: []model.BackendRef{backendTo("app")}, Mirrors: []model.MirrorRef{mirror("first", 1)},
	}}}, map[string]string{"app": backend, "first": first, "second": second, "never": second}))
	request := g.request("POST", "/")
	request.Body, request.ContentLength = io.NopCloser(strings.NewReader("body")), 4
	g.send(request)
	want(t, "first", (<-firstCopies).body, "body")
	want(t, "second", (<-secondCopies).body, "body")
	const requests, few, many = 300, 50, 150 // a third is 100; 50 and 150 are six deviations away
	copies := 0
	for range requests {
		g.get("/third")
		g.handler.features.mirror.Wait()
		for len(firstCopies) > 0 {
			<-firstCopies
			copies++
		}
	}
	if copies < few || copies > many || len(secondCopies) > 0 {
		t.Errorf("%d of %d requests were copied, and %d to the one that gets none", copies, requests, len(secondCopies))
	}
}

func TestABackendHasChangesOfItsOwn(t *testing.T) {
	backend, requests := recording(t)
	mirror, copies := recording(t)
	set := func(name, value string) *model.HeaderEdit {
		return &model.HeaderEdit{Set: []model.HeaderField{{Name: name, Value: value}}}
	}
	plain, changed := backendTo("app"), backendTo("app")
	changed.Rewrite = &model.Rewrite{PathPrefix: "/v2"}
	changed.RequestHeaders, changed.ResponseHeaders = set("X-For", "backend"), set("X-From", "backend")
	changed.Mirrors = []model.MirrorRef{{Namespace: "shop", Service: "mirror", Port: 80, Numerator: 1, Denominator: 1}}
	rule := table.Rule{
		Name: "plain", Path: "/plain", Backends: []model.BackendRef{plain},
		Rewrite: &model.Rewrite{Host: "inside.test", PathPrefix: "/v1"}, RequestHeaders: set("X-For", "rule"), ResponseHeaders: set("X-Rule", "yes"),
	}
	other := rule
	other.Name, other.Path, other.Backends = "changed", "/changed", []model.BackendRef{changed}
	g := startTable(t, Options{}, compileRules(t, table.Input{Rules: []table.Rule{rule, other}}, map[string]string{"app": backend, "mirror": mirror}))
	for path, expected := range map[string]string{
		"/plain/x":   "inside.test /v1/x rule  yes",
		"/changed/x": "inside.test /v2/x backend backend yes",
	} {
		response, _ := g.get(path)
		r := <-requests
		got := strings.Join([]string{r.Host, r.URL.Path, r.Header.Get("X-For"), response.Header.Get("X-From"), response.Header.Get("X-Rule")}, " ")
		want(t, path, got, expected)
	}
	want(t, "the copy", (<-copies).URL.Path, "/v2/x")
	want(t, "further copies", len(copies), 0)
}

func TestWildcardsOfCORSAnswerWhatIsAskedFor(t *testing.T) {
	rule := func(path string, credentials bool) table.Rule {
		return table.Rule{Name: path, Path: path, Direct: &model.DirectResponse{StatusCode: 200}, Settings: list.Settings{CORS: &corssetting.Rule{
			AllowOrigins: []string{"*"}, AllowMethods: []string{"*"}, AllowHeaders: []string{"*"}, ExposeHeaders: []string{"*", "X-Out"},
			AllowCredentials: credentials, Wildcards: true,
		}}}
	}
	g := startTable(t, Options{}, compileRules(t, table.Input{Rules: []table.Rule{rule("/with", true), rule("/without", false)}}, nil))
	ask := func(method, path string, fields ...string) string {
		response, _ := g.send(g.request(method, path, append(fields, "Origin", "https://a.test:8443")...))
		var got []string
		for _, name := range []string{"Origin", "Methods", "Headers", "Credentials"} {
			got = append(got, response.Header.Get("Access-Control-Allow-"+name))
		}
		return strings.Join(append(got, response.Header.Get("Access-Control-Expose-Headers")), "|")
	}
	asked := []string{"Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "x-a, x-b"}
	want(t, "preflight", ask("OPTIONS", "/with", asked...), "https://a.test:8443|PATCH|x-a, x-b|true|X-Out")
	want(t, "preflight without headers", ask("OPTIONS", "/with", asked[:2]...), "https://a.test:8443|PATCH||true|X-Out")
	want(t, "odd preflight", ask("OPTIONS", "/with", "Access-Control-Request-Method", "A B", "Access-Control-Request-Headers", "a b"), "https://a.test:8443|||true|X-Out")
	want(t, "request", ask("GET", "/with"), "https://a.test:8443|||true|X-Out")
	want(t, "preflight without credentials", ask("OPTIONS", "/without", asked...), "*|*|*||*, X-Out")
}

func TestARouteMayNameTheStatusesThatAreTriedAgain(t *testing.T) {
	var mu sync.Mutex
	tries := map[string]int{}
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		tries[r.Method+r.URL.Path]++
		if code := map[string]int{"/500": 500, "/429": 429, "/404": 404}[r.URL.Path]; code != 0 && tries[r.Method+r.URL.Path] < 3 {
			w.WriteHeader(code)
		}
	})
	const wait = 150 * time.Millisecond // longer than the waits without it
	g := startTable(t, Options{}, compileRules(t, table.Input{Rules: []table.Rule{{
		Name: "r", Backends: []model.BackendRef{backendTo("app")},
		Retries: model.Retries{Attempts: 3, Statuses: model.StatusesOf(500, 429, 200), Wait: wait},
	}}}, map[string]string{"app": backend}))
	begin := time.Now()
	response, _ := g.get("/500")
	want(t, "500", status(response), "200")
	if took := time.Since(begin); took < 2*wait {
		t.Errorf("two retries came within %v", took)
	}
	response, _ = g.get("/429")
	want(t, "429", status(response), "200")
	response, _ = g.get("/404")
	want(t, "404", status(response), "404")
	response, _ = g.send(g.request("POST", "/500"))
	want(t, "POST", status(response), "500") // it may have had an effect
	response, _ = g.get("/200")
	want(t, "200", status(response), "200")
	mu.Lock()
	defer mu.Unlock()
	want(t, "tries of 200", tries["GET/200"], 1)
}
