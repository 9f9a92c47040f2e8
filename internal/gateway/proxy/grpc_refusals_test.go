package proxy

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	grpcstatus "google.golang.org/grpc/status"
)

// refusals are the gateway's own answers, by the host of the call.
const refusals = `
- {host: timeout.test, backendService: {name: h2, port: 80}, timeouts: {request: 50ms}}
- {host: limit.test, backendService: {name: h2, port: 80}, rateLimit: {requests: 1, period: 1h}, timeouts: {request: 50ms}}
- {host: key.test, backendService: {name: h2, port: 80}, auth: {apiKey: {secretRef: {name: keys}}}}
- {host: address.test, backendService: {name: h2, port: 80}, clientAddresses: {deny: [127.0.0.0/8]}}
- {host: endpoints.test, backendService: {name: none, port: 80}}
- {host: gone.test, backendService: {name: app, port: 80}}
- {host: large.test, backendService: {name: h2, port: 80}, maxBodyBytes: 100}`

// Clients of gRPC read no other status than that of gRPC. What is logged is what others get.
func TestClientsOfGRPCAreRefusedInGRPC(t *testing.T) {
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	var logged lockedText
	compiled := compile(t, refusals, map[string]map[string][]byte{"keys": {"k": []byte("sha256:" + strings.Repeat("0", 64))}}, silent)
	for _, backend := range compiled.Backends {
		if !backend.Protocol.IsHTTP2() && len(backend.Endpoints) > 0 {
			backend.Endpoints = []string{"127.0.0.1:1"}
		}
	}
	g := startTable(t, Options{AccessLog: &logged}, compiled)
	for host, tc := range map[string]struct {
		calls  int
		size   int
		code   codes.Code
		text   string
		status string
	}{
		"timeout.test":   {code: codes.DeadlineExceeded, text: "timeout", status: "504"},
		"limit.test":     {calls: 1, code: codes.ResourceExhausted, text: "rate_limit", status: "429"},
		"key.test":       {code: codes.Unauthenticated, text: "unauthenticated", status: "401"},
		"address.test":   {code: codes.PermissionDenied, text: "client_address", status: "403"},
		"other.test":     {code: codes.Unimplemented, text: "no_route", status: "404"},
		"endpoints.test": {code: codes.Unavailable, text: "no_endpoints", status: "503"},
		"gone.test":      {code: codes.Unavailable, text: "connect", status: "502"},
		"large.test":     {size: 1000, code: codes.ResourceExhausted, text: "body_too_large", status: "413"},
	} {
		t.Run(host, func(t *testing.T) {
			conn, err := grpc.NewClient(g.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(host))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			client := testpb.NewTestServiceClient(conn)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			for range tc.calls + 1 {
				_, err = client.UnaryCall(ctx, &testpb.SimpleRequest{Payload: &testpb.Payload{Body: make([]byte, tc.size)}})
			}
			if got := grpcstatus.Convert(err); got.Code() != tc.code || got.Message() != tc.text {
				t.Errorf("got %v %q", got.Code(), got.Message())
			}
			eventually(t, "it is logged", func() bool {
				_ = g.handler.log.Flush()
				return strings.Contains(logged.String(), `"host":"`+host+`"`) && strings.Contains(logged.String(), `"status":`+tc.status+`,`)
			})
		})
	}
}

// A 200 may be taken for consent by what asks on behalf of others, and be stored. So who does not speak gRPC gets what HTTP has.
func TestOnlyClientsOfGRPCGetItsStatuses(t *testing.T) {
	for name, tc := range map[string]struct {
		method, contentType, te string
		http1                   bool
		want                    int
	}{
		"a call":                          {contentType: "application/grpc", te: "trailers", want: http.StatusOK},
		"a call with a format":            {contentType: "Application/gRPC+proto; charset=utf-8", te: "trailers", want: http.StatusOK},
		"without TE, as a check forwards": {contentType: "application/grpc", want: http.StatusNotFound},
		"a GET":                           {method: http.MethodGet, contentType: "application/grpc", te: "trailers", want: http.StatusNotFound},
		"over HTTP/1.1":                   {contentType: "application/grpc", te: "trailers", http1: true, want: http.StatusNotFound},
		"gRPC-Web":                        {contentType: "application/grpc-web+proto", te: "trailers", want: http.StatusNotFound},
		"gRPC-Web over HTTP/1.1":          {contentType: "application/grpc-web", http1: true, want: http.StatusNotFound},
		"another type":                    {contentType: "application/grpcx", te: "trailers", want: http.StatusNotFound},
		"a parameter":                     {contentType: "application/json; a=application/grpc", te: "trailers", want: http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(cmp.Or(tc.method, http.MethodPost), "/", strings.NewReader("x"))
			r.Host = "other.test"
			r.Header.Set("Content-Type", tc.contentType)
			if tc.te != "" {
				r.Header.Set("Te", tc.te)
			}
			if !tc.http1 {
				r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
			}
			g := start(t, Options{}, `[{host: app.test, backendService: {name: none, port: 80}}]`)
			w := httptest.NewRecorder()
			g.handler.ServeHTTP(w, r)
			if got := w.Result(); got.StatusCode != tc.want || (got.Header.Get("Grpc-Status") == "12") != (tc.want == http.StatusOK) {
				t.Errorf("got %d %v", got.StatusCode, got.Header)
			}
		})
	}
}

// lockedText keeps what several goroutines write.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
