package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

// testService is the service with which gRPC implementations test each other.
type testService struct {
	testpb.UnimplementedTestServiceServer

	canceled chan struct{} // closed when the backend sees a canceled call
}

func payload(size int32) *testpb.Payload { return &testpb.Payload{Body: make([]byte, size)} }

func (s *testService) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

func (s *testService) UnaryCall(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if asked := in.GetResponseStatus(); asked != nil {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("why-bin", "\x00\xff"))
		return nil, grpcstatus.Error(codes.Code(asked.GetCode()), asked.GetMessage())
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs("head", "1"))
	_ = grpc.SetTrailer(ctx, metadata.Pairs("tail", "2"))
	return &testpb.SimpleResponse{Payload: payload(in.GetResponseSize())}, nil
}

func (s *testService) StreamingOutputCall(in *testpb.StreamingOutputCallRequest, out testpb.TestService_StreamingOutputCallServer) error {
	for _, asked := range in.GetResponseParameters() {
		if err := out.Send(&testpb.StreamingOutputCallResponse{Payload: payload(asked.GetSize())}); err != nil {
			return err
		}
	}
	return nil
}

func (s *testService) StreamingInputCall(in testpb.TestService_StreamingInputCallServer) error {
	total := 0
	for {
		message, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return in.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: int32(total)})
		}
		if err != nil {
			return err
		}
		total += len(message.GetPayload().GetBody())
	}
}

func (s *testService) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	for {
		message, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			s.canceled <- struct{}{}
			return err
		}
		for _, asked := range message.GetResponseParameters() {
			if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: payload(asked.GetSize())}); err != nil {
				return err
			}
		}
	}
}

// serveGRPC starts the service and returns its address.
func serveGRPC(t *testing.T) (string, *testService) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := &testService{canceled: make(chan struct{}, 100)}
	server := grpc.NewServer()
	testpb.RegisterTestServiceServer(server, service)
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		wait.Wait()
	})
	return listener.Addr().String(), service
}

// dialGRPC returns a client of the test service at an address, and the connection for other
// services.
func dialGRPC(t *testing.T, address string, transport credentials.TransportCredentials) (testpb.TestServiceClient, *grpc.ClientConn) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(8<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return testpb.NewTestServiceClient(conn), conn
}

// startTLS also serves the gateway's handler with TLS. It returns the address.
func (g *gateway) startTLS(t *testing.T) string {
	var certificates Certificates
	if err := certificates.Set([]Certificate{certificate(t, 1, "a.example.com")}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := New(Options{})
	handler.Set(g.handler.current.Load().Config)
	server := NewServer(handler, ServerOptions{HTTPS: listener, Certificates: &certificates, ErrorLog: log.New(io.Discard, "", 0)})
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Run(context.Background()) })
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		_ = server.Shutdown(ended)
		wait.Wait()
		handler.registry.Keep(func(string) bool { return false })
	})
	return listener.Addr().String()
}

func TestGRPC(t *testing.T) {
	backend, service := serveGRPC(t)
	g := start(t, Options{}, toH2, backend)
	addresses := map[string]string{"h2c": g.address, "TLS": g.startTLS(t)}
	for name, transport := range map[string]credentials.TransportCredentials{
		"h2c": insecure.NewCredentials(), "TLS": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
	} {
		client, conn := dialGRPC(t, addresses[name], transport)
		for call, test := range map[string]func(context.Context, *testing.T, testpb.TestServiceClient){
			"unary": callUnary, "client streaming": callClientStreaming, "server streaming": callServerStreaming, "ping pong": callBothWays, "status": callForStatus,
			"deadline": callUntilDeadline,
			"cancellation": func(ctx context.Context, t *testing.T, client testpb.TestServiceClient) {
				callAndCancel(ctx, t, client, service)
			},
			"unimplemented": func(ctx context.Context, t *testing.T, _ testpb.TestServiceClient) {
				_, err := testpb.NewUnimplementedServiceClient(conn).UnimplementedCall(ctx, &testpb.Empty{})
				want(t, "code", grpcstatus.Code(err), codes.Unimplemented)
			},
		} {
			t.Run(name+"/"+call, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				test(ctx, t, client)
			})
		}
	}
}

func callUnary(ctx context.Context, t *testing.T, client testpb.TestServiceClient) {
	if _, err := client.EmptyCall(ctx, &testpb.Empty{}); err != nil {
		t.Fatal(err)
	}
	var header, trailer metadata.MD
	for _, size := range []int32{0, 1, 314159, 4 << 20} {
		request := &testpb.SimpleRequest{ResponseSize: size, Payload: payload(min(size, 3<<20))}
		response, err := client.UnaryCall(ctx, request, grpc.Header(&header), grpc.Trailer(&trailer))
		if err != nil || len(response.GetPayload().GetBody()) != int(size) {
			t.Fatalf("size %d: got %d bytes, %v", size, len(response.GetPayload().GetBody()), err)
		}
		want(t, "metadata", strings.Join(append(header.Get("head"), trailer.Get("tail")...), ""), "12")
	}
}

func callClientStreaming(ctx context.Context, t *testing.T, client testpb.TestServiceClient) {
	stream, err := client.StreamingInputCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if err := stream.Send(&testpb.StreamingInputCallRequest{Payload: payload(45904)}); err != nil {
			t.Fatal(err)
		}
	}
	response, err := stream.CloseAndRecv()
	if err != nil || response.GetAggregatedPayloadSize() != 200*45904 {
		t.Errorf("got %v, %v", response, err)
	}
}

func callServerStreaming(ctx context.Context, t *testing.T, client testpb.TestServiceClient) {
	request := &testpb.StreamingOutputCallRequest{}
	for range 200 {
		request.ResponseParameters = append(request.ResponseParameters, &testpb.ResponseParameters{Size: 31415})
	}
	stream, err := client.StreamingOutputCall(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			want(t, "messages", i, 200)
			return
		}
		if err != nil || !bytes.Equal(message.GetPayload().GetBody(), make([]byte, 31415)) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

func callBothWays(ctx context.Context, t *testing.T, client testpb.TestServiceClient) {
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int32{31415, 9, 2653, 58979} {
		request := &testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: size}}, Payload: payload(size)}
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
		message, err := stream.Recv()
		if err != nil || len(message.GetPayload().GetBody()) != int(size) {
			t.Fatalf("size %d: %v", size, err)
		}
	}
	_ = stream.CloseSend()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func callForStatus(ctx context.Context, t *testing.T, client testpb.TestServiceClient) {
	for _, message := range []string{"plain", "", "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"} {
		var trailer metadata.MD
		_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Code: int32(codes.DataLoss), Message: message}}, grpc.Trailer(&trailer))
		want(t, "code", grpcstatus.Code(err), codes.DataLoss)
		want(t, "message", grpcstatus.Convert(err).Message(), message)
		want(t, "binary trailer", strings.Join(trailer.Get("why-bin"), ""), "\x00\xff")
	}
}

func callUntilDeadline(ctx context.Context, t *testing.T, client testpb.TestServiceClient) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	stream, err := client.FullDuplexCall(ctx)
	if err == nil {
		_, err = stream.Recv()
	}
	want(t, "code", grpcstatus.Code(err), codes.DeadlineExceeded)
}

func callAndCancel(ctx context.Context, t *testing.T, client testpb.TestServiceClient, service *testService) {
	for len(service.canceled) > 0 {
		<-service.canceled
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: 1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = stream.Recv()
	want(t, "code", grpcstatus.Code(err), codes.Canceled)
	<-service.canceled // the backend sees the cancellation
}

func TestGRPCClientsUnderstandTheGatewaysOwnAnswers(t *testing.T) {
	g := start(t, Options{}, `[{path: /nothing, backendService: {name: none, port: 80}}]`)
	client, _ := dialGRPC(t, g.address, insecure.NewCredentials())
	_, err := client.EmptyCall(t.Context(), &testpb.Empty{})
	want(t, "no route", grpcstatus.Code(err), codes.Unimplemented)
	g.handler.Set(Config{Table: compile(t, `[{backendService: {name: none, port: 80}}]`, nil)})
	_, err = client.EmptyCall(t.Context(), &testpb.Empty{})
	want(t, "no endpoints", grpcstatus.Code(err), codes.Unavailable)
	// A proxy in front of the backend may answer instead of it.
	g.handler.Set(Config{Table: compile(t, toApp, nil, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "not now\n")
	}))})
	_, err = client.EmptyCall(t.Context(), &testpb.Empty{})
	want(t, "an answer that is not gRPC", grpcstatus.Code(err), codes.Unavailable)
}
