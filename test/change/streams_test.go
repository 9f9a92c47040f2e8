//go:build e2e || change

package change

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

const (
	// beat is the time between two messages of a stream.
	beat = 250 * time.Millisecond
	// shortest and longest are how long a stream lives. When a pod of the gateway or of a
	// backend ends, a stream that has just begun has 35 s or more.
	shortest, longest = 2 * time.Second, 25 * time.Second
	// streamTimeout is when a stream counts as cut: it did not end by itself.
	streamTimeout = 60 * time.Second
)

// streams are the kinds of streams, and how many of each there are at a time.
var streams = []struct {
	name    string
	workers int
	live    func(ctx context.Context, r *run, life time.Duration) error
}{
	{"WebSocket", 4, func(ctx context.Context, r *run, life time.Duration) error { return r.socket(ctx, "ws", life) }},
	{"WebSocket with TLS", 4, func(ctx context.Context, r *run, life time.Duration) error { return r.socket(ctx, "wss", life) }},
	{"events over HTTP/1.1", 4, func(ctx context.Context, r *run, life time.Duration) error { return r.events(ctx, "http", http1, life) }},
	{"events over HTTP/2 with TLS", 4, func(ctx context.Context, r *run, life time.Duration) error {
		return r.events(ctx, "https", http2, life)
	}},
	{"gRPC", 4, func(ctx context.Context, r *run, life time.Duration) error {
		return r.calls(ctx, insecure.NewCredentials(), "80", life)
	}},
	{"gRPC with TLS", 4, func(ctx context.Context, r *run, life time.Duration) error {
		return r.calls(ctx, credentials.NewTLS(r.tls.Clone()), "443", life)
	}},
}

// stream opens streams until the context ends, and returns when the last one has ended.
func (r *run) stream(ctx context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	for _, s := range streams {
		for range s.workers {
			wait.Go(func() {
				for ctx.Err() == nil {
					life := shortest + rand.N(longest-shortest)
					start := time.Now()
					bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), streamTimeout)
					err := s.live(bounded, r, life)
					cancel()
					r.record.ended("stream, "+s.name, start, fmt.Sprintf("of %v", life.Round(beat)), err)
				}
			})
		}
	}
}

// paced calls a function with one number after the other, one each beat, for a lifetime.
func paced(ctx context.Context, life time.Duration, each func(i int) error) error {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	start := time.Now()
	for i := 0; time.Since(start) < life; i++ {
		if err := each(i); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// socket sends messages over a WebSocket and expects each of them back.
func (r *run) socket(ctx context.Context, scheme string, life time.Duration) error {
	transport := r.transport(http1)
	defer transport.CloseIdleConnections()
	conn, response, err := websocket.Dial(ctx, scheme+"://"+host+"/streams/socket", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}}) //nolint:bodyclose // the library says that it never needs to be
	if err != nil {
		if response != nil {
			return fmt.Errorf("open, %s: %w", response.Status, err)
		}
		return fmt.Errorf("open: %w", err)
	}
	defer conn.CloseNow() //nolint:errcheck // most of the time it is closed already
	err = paced(ctx, life, func(i int) error {
		want := fmt.Appendf(nil, "message %d", i)
		if err := conn.Write(ctx, websocket.MessageText, want); err != nil {
			return err
		}
		_, got, err := conn.Read(ctx)
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("got %.100q, want %q", got, want)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// events reads server-sent events up to the one that says that it is the last.
func (r *run) events(ctx context.Context, scheme string, protocols func(*http.Protocols), life time.Duration) error {
	transport := r.transport(protocols)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s/streams/events?for=%s", scheme, host, life), nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	for n := 0; lines.Scan(); {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !found:
		case data == "end":
			return nil
		case data != fmt.Sprint(n):
			return fmt.Errorf("event %q, want %d", data, n)
		default:
			n++
		}
	}
	return fmt.Errorf("the last event is missing: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

// calls sends messages over a gRPC stream and expects each of them back.
func (r *run) calls(ctx context.Context, transport credentials.TransportCredentials, port string, life time.Duration) error {
	conn, err := grpc.NewClient(net.JoinHostPort(r.address, port), grpc.WithTransportCredentials(transport), grpc.WithAuthority(host))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := testpb.NewTestServiceClient(conn).FullDuplexCall(ctx)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	err = paced(ctx, life, func(i int) error {
		want := fmt.Appendf(nil, "message %d", i)
		// What went wrong with sending is what Recv returns.
		if err := stream.Send(&testpb.StreamingOutputCallRequest{Payload: &testpb.Payload{Body: want}}); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		message, err := stream.Recv()
		if err == nil && !bytes.Equal(message.GetPayload().GetBody(), want) {
			err = errors.New("another message came back")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
