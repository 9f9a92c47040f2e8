package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
)

const byHost = `
- {backendService: {name: app, port: 80}}
- {host: admin.example.com, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}`

// startByHost starts a gateway with a route for any host and a route that requires a key.
func startByHost(t *testing.T) (*gateway, chan seen) {
	t.Helper()
	backend, requests := recording(t)
	return startTable(t, Options{}, compile(t, byHost, map[string]map[string][]byte{"keys": keySecret("k")}, backend)), requests
}

// askHost sends requests for a host in the three ways in which a request can name one.
func (g *gateway) askHost(host string) map[string]string {
	g.t.Helper()
	hosted, _ := g.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
	absolute, _ := g.raw("GET http://" + host + "/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
	f := g.frames()
	defer f.conn.Close()
	f.open(1, true, ":method", "GET", ":scheme", "http", ":authority", host, ":path", "/")
	return map[string]string{"Host": status(hosted), "absolute": status(absolute), ":authority": f.outcome(1)}
}

func TestAHostHasOneSpelling(t *testing.T) {
	g, requests := startByHost(t)
	for host, sent := range map[string]string{
		"admin.example.com":       "", // requires a key
		"ADMIN.Example.com":       "",
		"admin.example.com.":      "",
		"admin.example.com:":      "",
		"admin.example.com.:":     "",
		"admin.example.com:80":    "",
		"Admin.example.com.:8080": "",
		"a.test":                  "a.test",
		"A.test.:":                "a.test",
		"A.Test:81":               "a.test:81",
		"10.0.0.1:81":             "10.0.0.1:81",
		"[::1]:":                  "[::1]",
		"[0:0::1]:81":             "[::1]:81",
	} {
		for way, got := range g.askHost(host) {
			if sent == "" {
				want(t, host+" as "+way, got, "401")
				continue
			}
			want(t, host+" as "+way, got, "200")
			if got == "200" {
				r := <-requests
				want(t, "what the backend gets", r.Host+" "+r.Header.Get("X-Forwarded-Host"), sent+" "+sent)
			}
		}
	}
	want(t, "requests that were left", len(requests), 0)
}

func TestAHostThatIsNoneIsRefused(t *testing.T) {
	g, requests := startByHost(t)
	const admin = "admin.example.com"
	for _, host := range []string{
		"", admin + ":80:80", admin + "..", admin + ",x", admin + ", x", admin + ";x", admin + "]", "[" + admin + "]", "[" + admin, "[::1", "::1", "[::1]x", admin + "@a.test", "a.test@" + admin,
		admin + ":x", admin + ":-1", admin + ":+80", admin + ":65536", admin + ":080", admin + "_", "_x." + admin, "." + admin, "a..b", "-a.test", "a-.test", "*.example.com", admin + "%2e", "%61dmin.example.com",
		admin + "\\", admin + "'", admin + "!", admin + "=", admin + "~", "[::1%25lo]",
	} {
		for way, got := range g.askHost(host) {
			if got != "400" && got != "RST PROTOCOL_ERROR" {
				t.Errorf("%q as %s: %s", host, way, got)
			}
		}
	}
	for _, host := range []string{admin + "/", admin + "/x", admin + "?", admin + "?x", admin + "#", admin + " "} {
		f := g.frames()
		f.open(1, true, ":method", "GET", ":scheme", "http", ":authority", host, ":path", "/")
		if got := f.outcome(1); got != "400" && got != "RST PROTOCOL_ERROR" {
			t.Errorf("%q as :authority: %s", host, got)
		}
	}
	for name, request := range map[string]string{
		"no host":                "GET / HTTP/1.1\r\n\r\n",
		"empty host":             "GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"two hosts":              "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
		"the same host twice":    "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
		"no host beside a URL":   "GET http://a.test/ HTTP/1.1\r\n\r\n",
		"no authority in a URL":  "GET http:///x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"only a port in a URL":   "GET http://:80/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"user in a URL":          "GET http://u@a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"another scheme":         "GET ftp://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"a scheme and no host":   "GET http:/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"a scheme and a name":    "GET http:x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"an authority":           "GET a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"a host of HTTP/1.0":     "GET / HTTP/1.0\r\nHost: " + admin + ":80:80\r\n\r\n",
		"OPTIONS without a host": "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
	} {
		response, _ := g.raw(request)
		want(t, name, response.StatusCode, 400)
	}
	want(t, "requests at the backend", len(requests), 0)
}

// RFC 9112, 3.2.2, and RFC 9113, 8.3.1.
func TestWhereTwoHostsAreSaidOneCounts(t *testing.T) {
	g, requests := startByHost(t)
	for name, test := range map[string]struct{ request, want string }{
		"URL for a protected host":    {"GET http://Admin.example.com:/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "401"},
		"URL for an open host":        {"GET HTTP://A.test/x HTTP/1.1\r\nHost: admin.example.com\r\n\r\n", "200a.test"},
		"URL with nothing but a host": {"GET https://a.test HTTP/1.1\r\nHost: b.test\r\n\r\n", "200a.test"},
		"URL with a query":            {"GET http://a.test?x HTTP/1.1\r\nHost: b.test\r\n\r\n", "200a.test"},
		"URL of HTTP/1.0":             {"GET http://admin.example.com/ HTTP/1.0\r\n\r\n", "401"},
	} {
		response, _ := g.raw(test.request)
		got := status(response)
		if got == "200" {
			got += (<-requests).Host
		}
		want(t, name, got, test.want)
	}
	for name, test := range map[string]struct {
		fields []string
		want   string
	}{
		"the same":      {[]string{":authority", "a.test:81", "host", "A.test.:81"}, "200"},
		"another name":  {[]string{":authority", "a.test", "host", "admin.example.com"}, "400"},
		"another port":  {[]string{":authority", "a.test", "host", "a.test:81"}, "400"},
		"that is none":  {[]string{":authority", "a.test", "host", "a.test,b"}, "400"},
		"twice":         {[]string{":authority", "a.test", "host", "a.test", "host", "a.test"}, "400"},
		"alone":         {[]string{"host", "admin.example.com"}, "401"},
		"alone, twice":  {[]string{"host", "a.test", "host", "admin.example.com"}, "400"},
		"nothing of it": {nil, "400"},
	} {
		f := g.frames()
		fields := []string{":method", "GET", ":scheme", "http"}
		if len(test.fields) > 0 && test.fields[0] == ":authority" {
			fields, test.fields = append(fields, test.fields[:2]...), test.fields[2:]
		}
		f.open(1, true, append(append(fields, ":path", "/"), test.fields...)...)
		want(t, "HTTP/2, "+name, f.outcome(1), test.want)
		f.conn.Close()
	}
}

func TestAHostOfAnotherCertificateIsMisdirected(t *testing.T) {
	backend, _ := recording(t)
	handler := New(Options{})
	handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	shared := certificate(t, 1, "a.example.com", "b.example.com")
	again := shared
	again.Hosts = []string{"c.example.com"}
	var certificates Certificates
	if err := certificates.Set([]Certificate{shared, again, certificate(t, 2, "secret.example.com"), certificate(t, 3, "*.example.com")}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(handler, ServerOptions{HTTPS: listener, Certificates: &certificates, ErrorLog: log.New(io.Discard, "", 0)})
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Run(context.Background()) })
	defer wait.Wait()
	defer server.Shutdown(t.Context()) //nolint:errcheck // nothing is under way

	for _, test := range []struct {
		server, host string
		want         string
	}{
		{"a.example.com", "a.example.com", "200"},
		{"a.example.com", "A.example.com.:443", "200"},
		{"A.example.com", "a.example.com", "200"},
		{"a.example.com", "b.example.com", "200"}, // one certificate for both
		{"a.example.com", "c.example.com", "200"}, // the same, the other way round
		{"x.example.com", "y.example.com", "200"},
		{"a.example.com", "secret.example.com", "421"},
		{"secret.example.com", "a.example.com", "421"},
		{"x.example.com", "secret.example.com", "421"},
		{"a.example.com", "x.example.com", "421"},
		{"a.example.com", "other.example.org", "200"}, // no certificate is for it
		{"", "secret.example.com", "200"},             // no server was named
	} {
		dial := func(protocol string) *tls.Conn {
			conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{ServerName: test.server, InsecureSkipVerify: true, NextProtos: []string{protocol}})
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		conn := dial("http/1.1")
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+test.host+"\r\nConnection: close\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		want(t, test.server+" "+test.host, status(newAnswer(response)), test.want)
		response.Body.Close()
		conn.Close()

		f := newFrames(t, dial("h2"))
		f.open(1, true, ":method", "GET", ":scheme", "https", ":authority", test.host, ":path", "/")
		want(t, "HTTP/2, "+test.server+" "+test.host, f.outcome(1), test.want)
		f.conn.Close()
	}
}
