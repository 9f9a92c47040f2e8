package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// authorizer is a Service that decides, with the library that such Services are made with.
type authorizer struct {
	authv3.UnimplementedAuthorizationServer

	asked  chan *authv3.AttributeContext_HttpRequest
	answer func(*authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error)
}

func (a *authorizer) Check(_ context.Context, in *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	http := in.GetAttributes().GetRequest().GetHttp()
	a.asked <- http
	return a.answer(http)
}

// startAuthorizer starts one, and a gateway with a route that asks it.
func startAuthorizer(t *testing.T, external string, answer func(*authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error)) (*gateway, *authorizer, chan seen) {
	t.Helper()
	a := &authorizer{asked: make(chan *authv3.AttributeContext_HttpRequest, 100), answer: answer}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, a)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	backend, passed := recording(t)
	return startTable(t, Options{}, compileAsking(t, ", protocol: GRPC"+external, backend, listener.Addr().String())), a, passed
}

func option(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: name, Value: value}}
}

func TestAServiceThatSpeaksGRPCDecidesWhoComesIn(t *testing.T) {
	g, a, passed := startAuthorizer(t, `, backendHeaders: [X-User], identityHeader: X-User`, func(in *authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error) {
		if in.GetHeaders()["authorization"] != "Bearer good" {
			return &authv3.CheckResponse{Status: &rpcstatus.Status{Code: 16}, HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
				Status: &typev3.HttpStatus{Code: 302}, Body: "log in",
				Headers: []*corev3.HeaderValueOption{option("location", "https://login.example.com/"), option("set-cookie", "a=1"), option("set-cookie", "b=2"), option("x-internal", "secret")},
			}}}, nil
		}
		return &authv3.CheckResponse{Status: &rpcstatus.Status{}, HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: []*corev3.HeaderValueOption{option("x-user", "alice"), option("x-else", "no")}, HeadersToRemove: []string{"authorization", "X-Internal-Token"},
		}}}, nil
	})
	response, body := g.get("/buy")
	want(t, "refused", status(response)+body, "302log in")
	want(t, "location", response.Header.Get("Location"), "https://login.example.com/")
	want(t, "cookies", join(response.Header["Set-Cookie"]), "a=1 | b=2")
	want(t, "what is internal", response.Header.Get("X-Internal"), "")
	<-a.asked
	none(t, "the backend", passed)

	request := g.request("POST", "/buy/a%20b?x=1", "Authorization", "Bearer good", "X-User", "root", "X_user", "root", "X-Internal-Token", "t", "X_internal_token", "t", "X-Else", "yes", "X_else", "yes", "X-Other", "o")
	request.Body, request.ContentLength = io.NopCloser(strings.NewReader("body")), 4
	response, _ = g.send(request)
	want(t, "let in", response.StatusCode, 200)
	asked := <-a.asked
	want(t, "question", asked.GetMethod()+" "+asked.GetPath()+" "+asked.GetScheme()+" "+asked.GetHost()+string(asked.GetRawBody()), "POST /buy/a%20b?x=1 http "+request.Host)
	told := map[string]string{"authorization": "Bearer good", "x-forwarded-proto": "http", "x-forwarded-host": request.Host, "x-forwarded-for": "127.0.0.1"}
	if diff := cmp.Diff(told, asked.GetHeaders()); diff != "" {
		t.Errorf("the Service is told: -want +got:\n%s", diff)
	}
	r := <-passed
	want(t, "user", join(r.Header["X-User"])+join(r.Header["X_user"]), "alice")
	want(t, "what is removed", join(r.Header["Authorization"])+join(r.Header["X-Internal-Token"])+join(r.Header["X_internal_token"]), "")
	want(t, "what is not asked for", join(r.Header["X-Else"])+join(r.Header["X_else"]), "")
	want(t, "what the client sends besides", join(r.Header["X-Other"])+r.body, "obody")
	response, _ = g.get("/", "Cookie", "a=\xff")
	want(t, "text that cannot be asked about", response.StatusCode, 400)
	none(t, "the backend", passed)
}

// Without an answer nobody comes in, but where the route lets everybody in then. An answer that cannot be understood lets nobody in.
func TestWhatIsNoAnswerOverGRPC(t *testing.T) {
	big := strings.Repeat("a", 300<<10)
	for name, answer := range map[string]func(*authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error){
		"an error": func(*authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error) {
			return nil, grpcstatus.Error(codes.Unavailable, "x")
		},
		"a denial as a status": func(*authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error) {
			return nil, grpcstatus.Error(codes.PermissionDenied, "x")
		},
		"a huge one": func(*authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error) {
			return &authv3.CheckResponse{HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{option("x-a", big)}}}}, nil
		},
		"a field with a line end": func(*authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error) {
			return &authv3.CheckResponse{HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{option("x-user", "a\r\nb: c")}}}}, nil
		},
	} {
		letIn := 503 // there was an answer
		if strings.HasSuffix(name, "error") {
			letIn = 200
		}
		for onFailure, code := range map[string]int{"Refuse": 503, "LetIn": letIn} {
			g, _, passed := startAuthorizer(t, `, backendHeaders: [X-User], onFailure: `+onFailure, answer)
			response, _ := g.get("/")
			want(t, name+" "+onFailure, response.StatusCode, code)
			want(t, name+" "+onFailure+": requests", len(passed), code/200%2)
		}
	}
	for name, service := range map[string]string{
		"HTTP/1":      serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
		"nothing":     rawBackend(t, ""),
		"HTTP/1 gRPC": rawBackend(t, "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nGrpc-Status: 0\r\nContent-Length: 5\r\n\r\n\x00\x00\x00\x00\x00"),
	} {
		backend, passed := recording(t)
		g := startTable(t, Options{}, compileAsking(t, ", protocol: GRPC, timeout: 1s", backend, service))
		response, _ := g.get("/")
		want(t, name, response.StatusCode, 503)
		none(t, "the backend", passed)
	}
}
