//go:build attack

package gatewayattack

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// startH2C runs a backend that the gateway speaks HTTP/2 to, and which tells the recorder what it was given.
func startH2C(t *testing.T) *lane {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	records := newRecorder(t)
	server := &http.Server{Protocols: new(http.Protocols), ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.RequestURI, "/early/") {
			_, _ = io.WriteString(w, "early\n")
			return
		}
		length, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return // cut short
		}
		zone := "open"
		if found := zonesOf(r.RequestURI); len(found) > 0 {
			zone = found[0]
		}
		records.note(fmt.Sprintf("GET /report HTTP/1.1\r\nX-Seen-Zone: %s\r\nX-Seen-Method: %s\r\nX-Seen-Length: %d\r\nX-Seen-Target: %s\r\n\r\n", zone, r.Method, length, r.RequestURI))
		id, _ := findID(r.RequestURI)
		_, _ = io.WriteString(w, "seen "+id+"\n")
	})}
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return &lane{name: "h2c", host: "h2c.test", address: listener.Addr().String(), protocol: "kubernetes.io/h2c", records: records, real: true}
}

// note records a request that came in another way.
func (r *recorder) note(request string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connections = append(r.connections, &recorded{in: []byte(request)})
	r.last = time.Now()
}
