package main

import (
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/mover"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// Go's HTTP client logs what a server sends without being asked. A server knows the key's ID and the session token, and
// would have them written to the log of the pod.
func TestAServerCannotMakeTheProgramTellASecret(t *testing.T) {
	const token = "canary-session-token-41"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		body := "<Error><Code>NoSuchKey</Code><Message>" + token + "</Message></Error>"
		fmt.Fprintf(buffered, "HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_ = buffered.Flush()
		// It has an end: now and then it comes in time to be the answer to the next request.
		fmt.Fprintf(buffered, "HTTP/1.1 200 OK\r\nX-Token: %s\r\nContent-Length: 0\r\n\r\n", token)
		_ = buffered.Flush()
		_, _ = connection.Read(make([]byte, 1)) // the next request has to take another connection
	}))
	defer server.Close()
	before := slog.Default()
	defer slog.SetDefault(before)
	var stray lockedbuffer.Buffer
	log.SetOutput(&stray)
	b := newBench(t)
	for name, value := range map[string]string{
		"accessKeyID": "canary-key-id-42", "secretAccessKey": "canary-key-43", "sessionToken": token, "endpoint": server.URL, "region": "us-east-1",
	} {
		b.write(t, "secret/"+name, value)
	}
	b.config.Repository.Filesystem = nil
	b.config.Repository.S3 = &mover.S3{Bucket: "bucket", CredentialsFolder: b.path("secret")}
	var said strings.Builder
	for n := 0; n < 50 && !strings.Contains(said.String()+stray.String(), "Unsolicited"); n++ {
		o := b.run(t, "list")
		said.WriteString(o.output)
		said.Write(o.raw)
	}
	all := said.String() + stray.String()
	if at := strings.Index(all, "canary"); at >= 0 {
		t.Errorf("a secret is in what was said: %s", all[max(0, at-200):min(len(all), at+30)])
	}
	if !strings.Contains(all, "Unsolicited") {
		t.Error("nothing was logged, so the test proves nothing")
	}
}
