package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// start serves until the test ends, or end is called, which returns how it ended.
func start(t *testing.T) (web, rpc string, end func() error) {
	t.Helper()
	var listeners [2]net.Listener
	for i := range listeners {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = listener
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listeners[0], listeners[1], "blue", 0) }()
	end = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = end() })
	return "http://" + listeners[0].Addr().String(), listeners[1].Addr().String(), end
}

func TestItAnswersWithWhatItGot(t *testing.T) {
	address, rpc, _ := start(t)
	transports := map[string]*http.Transport{"HTTP/1.1": {}, "HTTP/2": {Protocols: new(http.Protocols)}}
	transports["HTTP/2"].Protocols.SetUnencryptedHTTP2(true)
	for name, transport := range transports {
		client := &http.Client{Transport: transport}
		body := strings.Repeat("x", 100_000)
		response, err := client.Post(address+"/any", "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(got) != body || response.Header.Get("X-Color") != "blue" || !strings.HasPrefix(response.Proto, name) {
			t.Errorf("%s: got %d bytes, %v, %v %v", name, len(got), err, response.Proto, response.Header)
		}
		response, err = client.Get(address + "/any/events?for=1ms")
		if err != nil {
			t.Fatal(err)
		}
		got, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if want := "data: 0\n\ndata: end\n\n"; err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
		transport.CloseIdleConnections()
	}

	conn, err := grpc.NewClient(rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	response, err := testpb.NewTestServiceClient(conn).UnaryCall(t.Context(), &testpb.SimpleRequest{Payload: &testpb.Payload{Body: []byte("hello")}})
	if err != nil || string(response.GetPayload().GetBody()) != "hello" {
		t.Errorf("got %v, %v", response, err)
	}
}

func TestItWaitsForWebSockets(t *testing.T) {
	address, _, end := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, address+"/socket", nil) //nolint:bodyclose // the library says that it never needs to be
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	for i := range 20 {
		want := fmt.Sprint(i)
		if err := conn.Write(ctx, websocket.MessageText, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.Read(ctx); err != nil || string(got) != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	if len(ended) > 0 {
		t.Error("it has ended before")
	}
	if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
