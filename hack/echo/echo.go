package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
)

const (
	// eventInterval is the time between two server-sent events.
	eventInterval = 250 * time.Millisecond
	// longest bounds a stream of them.
	longest = time.Hour
	// maxBody bounds what is echoed.
	maxBody = 16 << 20
)

// echo answers over HTTP.
type echo struct {
	color string
	// sockets are the WebSockets, which net/http does not wait for.
	sockets sync.WaitGroup
}

// handler chooses by the end of the path, so that a route may have any prefix.
func (e *echo) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Color", e.color)
		switch {
		case strings.HasSuffix(r.URL.Path, "/socket"):
			e.socket(w, r)
		case strings.HasSuffix(r.URL.Path, "/events"):
			events(w, r)
		case r.Method == http.MethodPost:
			post(w, r)
		default:
			_, _ = io.WriteString(w, r.URL.Path)
		}
	})
}

// post sends the body back. It reads all of it first: net/http lets nobody read on who has
// begun to answer a request of HTTP/1.1.
func post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = w.Write(body)
}

// socket sends every message back.
func (e *echo) socket(w http.ResponseWriter, r *http.Request) {
	e.sockets.Add(1) // as long as net/http still counts it
	defer e.sockets.Done()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // the client has been told
	}
	defer conn.CloseNow() //nolint:errcheck // most of the time it is closed already
	for {
		kind, message, err := conn.Read(r.Context())
		if err != nil || conn.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}

// events sends numbered events for as long as asked for, and then one that says "end".
func events(w http.ResponseWriter, r *http.Request) {
	life, err := time.ParseDuration(r.FormValue("for"))
	if err != nil || life < 0 || life > longest {
		http.Error(w, fmt.Sprintf("for must be a time up to %v, such as 10s", longest), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	ticker := time.NewTicker(eventInterval)
	defer ticker.Stop()
	end := time.After(life)
	for i := 0; ; i++ {
		if _, err := fmt.Fprintf(w, "data: %d\n\n", i); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-end:
			_, _ = io.WriteString(w, "data: end\n\n")
			return
		case <-r.Context().Done():
			return
		}
	}
}

// wait waits until the WebSockets have ended.
func (e *echo) wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		e.sockets.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return errors.New("WebSockets were cut")
	}
}

// service answers over gRPC.
type service struct {
	testpb.UnimplementedTestServiceServer

	color string
}

// UnaryCall answers with the payload.
func (s *service) UnaryCall(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs("x-color", s.color)); err != nil {
		return nil, err
	}
	return &testpb.SimpleResponse{Payload: in.GetPayload()}, nil
}

// FullDuplexCall sends every payload back.
func (s *service) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	for {
		message, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: message.GetPayload()}); err != nil {
			return err
		}
	}
}
