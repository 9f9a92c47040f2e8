package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

const ownAnswers = `
- {host: "401", backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}
- {host: "413", backendService: {name: app, port: 80}, maxBodyBytes: 10}
- {host: "302", redirect: {host: new.example.com}}
- {host: "200", directResponse: {statusCode: 200, body: hello}}
- {host: "503", backendService: {name: none, port: 80}}
`

func TestABodyThatNobodyReadsHoldsNoConnection(t *testing.T) {
	secrets := map[string]map[string][]byte{"keys": {"alice": keyHash("secret")}}
	g := startTable(t, Options{ClientTimeout: 50 * time.Millisecond}, compile(t, ownAnswers, secrets))
	for _, host := range []string{"401", "404", "413", "302", "200", "503"} {
		for _, framing := range []string{"Content-Length: 100", "Content-Length: 10000000", "Transfer-Encoding: chunked"} {
			if host == "413" && strings.HasPrefix(framing, "T") {
				continue // the length is known later, and the route has no endpoint
			}
			conn, err := net.Dial("tcp", g.address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: "+host+"\r\n"+framing+"\r\n\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
			answer, err := io.ReadAll(conn)
			conn.Close()
			if errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(string(answer), "HTTP/1.1 "+host) {
				t.Errorf("%s, %s: got %q, %v", host, framing, answer, err)
			}
		}
	}
	conn, err := net.Dial("tcp", g.address) // a body that comes in time leaves the connection usable
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for range 2 {
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: 401\r\nContent-Length: 4\r\n\r\nbody")
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		want(t, "status", response.StatusCode, 401)
		<-time.After(60 * time.Millisecond)
	}
}
