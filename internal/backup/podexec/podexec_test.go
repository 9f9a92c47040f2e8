package podexec

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	success = `{"kind":"Status","metadata":{},"status":"Success"}`
	exit3   = `{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`
)

// serve answers exec as play says. The path and the query of the last request go to asked.
func serve(t *testing.T, protocol string, play func(*websocket.Conn), asked *http.Request) *Client {
	t.Helper()
	var plays sync.WaitGroup
	handler := websocket.Server{
		Handshake: func(config *websocket.Config, request *http.Request) error {
			*asked = *request.Clone(context.WithoutCancel(request.Context()))
			config.Protocol = []string{protocol}
			return nil
		},
		Handler: func(connection *websocket.Conn) {
			plays.Add(1)
			defer plays.Done()
			connection.PayloadType = websocket.BinaryFrame
			play(connection)
		},
	}
	server := httptest.NewServer(handler)
	t.Cleanup(plays.Wait) // the server does not wait for connections that have become those of a WebSocket
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, BearerToken: "token"}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return New(config, clients)
}

// say sends a message. It may be that nobody hears it any more: the client leaves as soon as it knows enough.
func say(connection *websocket.Conn, stream byte, text string) {
	_, _ = connection.Write(append([]byte{stream}, text...))
}

func TestOnlyAStatusThatSaysSoIsASuccess(t *testing.T) {
	const protocol = "v5.channel.k8s.io"
	tests := map[string]struct {
		protocol string
		play     func(*websocket.Conn)
		want     string
	}{
		"success": {play: func(c *websocket.Conn) { say(c, 3, success) }},
		"success in two parts": {play: func(c *websocket.Conn) {
			say(c, 3, success[:10])
			say(c, 3, success[10:])
		}},
		"success after output": {play: func(c *websocket.Conn) {
			say(c, 2, "words")
			say(c, 3, success)
		}},
		"an exit code":                   {play: func(c *websocket.Conn) { say(c, 3, exit3) }, want: "ended with exit code 3"},
		"a connection that ends":         {play: func(*websocket.Conn) {}, want: "the connection ended before"},
		"one that ends after output":     {play: func(c *websocket.Conn) { say(c, 2, "words") }, want: "the connection ended before"},
		"an empty status":                {play: func(c *websocket.Conn) { say(c, 3, "") }, want: "the connection ended before"},
		"half of a status":               {play: func(c *websocket.Conn) { say(c, 3, success[:20]) }, want: "the connection ended before"},
		"output that looks like success": {play: func(c *websocket.Conn) { say(c, 2, success) }, want: "the connection ended before"},
		"a status of nothing":            {play: func(c *websocket.Conn) { say(c, 3, `{}`) }, want: "did not run"},
		"a status that is null":          {play: func(c *websocket.Conn) { say(c, 3, `null`) }, want: "did not run"},
		"a status of another kind":       {play: func(c *websocket.Conn) { say(c, 3, `"Success"`) }, want: "read the status"},
		"a failure of another reason":    {play: func(c *websocket.Conn) { say(c, 3, `{"status":"Failure","reason":"InternalError"}`) }, want: "did not run"},
		"a failure with exit code 0": {play: func(c *websocket.Conn) {
			say(c, 3, strings.Replace(exit3, `"3"`, `"0"`, 1))
		}, want: "did not run"},
		"a failure without an exit code": {play: func(c *websocket.Conn) {
			say(c, 3, `{"status":"Failure","reason":"NonZeroExitCode"}`)
		}, want: "did not run"},
		"a status without an end": {play: func(c *websocket.Conn) {
			for range 5 {
				say(c, 3, strings.Repeat(" ", maxStatus/4))
			}
			_, _ = io.Copy(io.Discard, c)
		}, want: "too long"},
		"output without an end": {play: func(c *websocket.Conn) {
			for range 3 * maxOutput / 4096 {
				say(c, 2, strings.Repeat("x", 4096))
			}
			say(c, 3, success)
		}, want: "wrote more than"},
		"a message without an end": {play: func(c *websocket.Conn) {
			say(c, 2, strings.Repeat("x", 2*maxOutput))
			say(c, 3, success)
		}, want: "read limit"},
		"another protocol": {protocol: "v4.channel.k8s.io", play: func(c *websocket.Conn) { say(c, 3, success) }, want: "connect"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.protocol == "" {
				tc.protocol = protocol
			}
			client := serve(t, tc.protocol, tc.play, &http.Request{})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := client.Exec(ctx, "team", "db-0", "db", []string{"/freeze", "a b"})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestTheCommandIsAskedForAsItIs(t *testing.T) {
	asked := &http.Request{}
	client := serve(t, "v5.channel.k8s.io", func(c *websocket.Conn) { say(c, 3, success) }, asked)
	if err := client.Exec(t.Context(), "team", "db-0", "db", []string{"/freeze", "a b", "", "&c=d", "ü"}); err != nil {
		t.Fatal(err)
	}
	const want = "/api/v1/namespaces/team/pods/db-0/exec?command=%2Ffreeze&command=a+b&command=&command=%26c%3Dd&command=%C3%BC&container=db&stderr=true"
	if got := asked.URL.RequestURI(); got != want {
		t.Errorf("asked for %s\nwant      %s", got, want)
	}
	if got := asked.Header.Get("Authorization"); got != "Bearer token" {
		t.Errorf("the request is from %q", got)
	}
}

// A command that hangs costs its timeout, and no more.
func TestTheConnectionEndsWithTheContext(t *testing.T) {
	closed := make(chan struct{})
	client := serve(t, "v5.channel.k8s.io", func(c *websocket.Conn) {
		_, _ = io.Copy(io.Discard, c)
		close(closed)
	}, &http.Request{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Exec(ctx, "team", "db-0", "db", []string{"/freeze"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Error("the connection was not closed")
	}
}

func TestARefusalIsNoSuccess(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "forbidden", http.StatusForbidden)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := New(config, clients).Exec(t.Context(), "team", "db-0", "db", []string{"/freeze"}); err == nil || !isUnknown(err) {
		t.Errorf("error %v", err)
	}
}
