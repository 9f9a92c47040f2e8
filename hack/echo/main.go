// Command echo is a backend that speaks what a gateway carries: HTTP/1.1, HTTP/2 without
// TLS, WebSocket, server-sent events and gRPC. It answers with what it got, so that a
// client can tell whether anything was lost on the way.
//
//	PORT, GRPC_PORT   where it listens; default 8080 and 9090
//	COLOR             is told to clients in the field X-Color
//	LEAVE_DELAY       how long it serves on after the signal to end, as a backend has to
//	                  until nobody sends it anything any more; default 5s
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// drainTime is how long requests and streams have to end.
const drainTime = 40 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, getenv func(string) string) error {
	delay, err := time.ParseDuration(cmp.Or(getenv("LEAVE_DELAY"), "5s"))
	if err != nil {
		return fmt.Errorf("LEAVE_DELAY: %w", err)
	}
	var config net.ListenConfig
	web, err := config.Listen(ctx, "tcp", ":"+cmp.Or(getenv("PORT"), "8080"))
	if err != nil {
		return err
	}
	rpc, err := config.Listen(ctx, "tcp", ":"+cmp.Or(getenv("GRPC_PORT"), "9090"))
	if err != nil {
		_ = web.Close()
		return err
	}
	log.Printf("echo listens at %s and, for gRPC, at %s", web.Addr(), rpc.Addr())
	return serve(ctx, web, rpc, getenv("COLOR"), delay)
}

// serve answers until the context ends, goes on for the delay, and then finishes what has
// begun.
func serve(ctx context.Context, web, rpc net.Listener, color string, delay time.Duration) error {
	echo := &echo{color: color}
	httpServer := &http.Server{Handler: echo.handler(), ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	httpServer.Protocols.SetHTTP1(true)
	httpServer.Protocols.SetUnencryptedHTTP2(true)
	grpcServer := grpc.NewServer()
	testpb.RegisterTestServiceServer(grpcServer, &service{color: color})

	failed := make(chan error, 2)
	go func() { failed <- httpServer.Serve(web) }()
	go func() { failed <- grpcServer.Serve(rpc) }()
	select {
	case err := <-failed:
		_ = httpServer.Close()
		grpcServer.Stop()
		return err
	case <-ctx.Done():
	}
	log.Printf("leaving, in %v", delay)
	<-time.After(delay)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	stopped := context.AfterFunc(ctx, grpcServer.Stop)
	defer stopped()
	var wait sync.WaitGroup
	var err error
	wait.Go(grpcServer.GracefulStop)
	wait.Go(func() { err = errors.Join(httpServer.Shutdown(ctx), echo.wait(ctx)) })
	wait.Wait()
	return err
}
