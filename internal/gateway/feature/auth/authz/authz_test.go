package authz_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpguts"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/authz"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// framed is an answer with what comes before it.
func framed(t testing.TB, answer *authv3.CheckResponse) []byte {
	t.Helper()
	message, err := proto.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: name, Value: value}}
}

func yes(in *authv3.OkHttpResponse) *authv3.CheckResponse {
	return &authv3.CheckResponse{Status: &status.Status{}, HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: in}}
}

func no(in *authv3.DeniedHttpResponse) *authv3.CheckResponse {
	return &authv3.CheckResponse{Status: &status.Status{Code: 7}, HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: in}}
}

func TestWhatAnAnswerSays(t *testing.T) {
	code := func(code int) *typev3.HttpStatus { return &typev3.HttpStatus{Code: typev3.StatusCode(code)} }
	for name, test := range map[string]struct {
		answer *authv3.CheckResponse
		want   *authz.Verdict // nil: it does not count
	}{
		"yes, without more":     {&authv3.CheckResponse{}, &authz.Verdict{Allowed: true}},
		"yes":                   {yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{header("x-user", "alice")}, HeadersToRemove: []string{"X-Token"}}), &authz.Verdict{Allowed: true, Fields: []upstream.Field{{Name: "x-user", Value: "alice"}}, Remove: []string{"X-Token"}}},
		"yes, with bytes":       {yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "a", RawValue: []byte("b\xe4")}}}}), &authz.Verdict{Allowed: true, Fields: []upstream.Field{{Name: "a", Value: "b\xe4"}}}},
		"another query":         {yes(&authv3.OkHttpResponse{QueryParametersToSet: []*corev3.QueryParameter{{Key: "a"}}}), nil},
		"less of a query":       {yes(&authv3.OkHttpResponse{QueryParametersToRemove: []string{"a"}}), nil},
		"a line end in a value": {yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{header("a", "b\r\nx-admin: 1")}}), nil},
		"a line end in a name":  {yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{header("a\r\nb", "c")}}), nil},
		"no name":               {yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{{}}}), nil},
		"another path":          {yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{header(":path", "/admin")}}), nil},
		"another host":          {yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{header("host", "b")}}), nil},
		"another length":        {yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{header("Content-Length", "0")}}), nil},
		"removed framing":       {yes(&authv3.OkHttpResponse{HeadersToRemove: []string{"transfer-encoding"}}), nil},
		"too many fields":       {yes(&authv3.OkHttpResponse{HeadersToRemove: strings.Split(strings.Repeat("a,", 200), ",")}), nil},
		"yes and no":            {&authv3.CheckResponse{HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{}}}, nil},
		"neither":               {&authv3.CheckResponse{HttpResponse: &authv3.CheckResponse_ErrorResponse{}}, nil},
		"no, without more":      {&authv3.CheckResponse{Status: &status.Status{Code: 16}}, &authz.Verdict{Status: 403}},
		"no, as if yes":         {&authv3.CheckResponse{Status: &status.Status{Code: 7}, HttpResponse: &authv3.CheckResponse_OkResponse{}}, &authz.Verdict{Status: 403}},
		"no":                    {no(&authv3.DeniedHttpResponse{Status: code(401), Body: "who?", Headers: []*corev3.HeaderValueOption{header("www-authenticate", "Basic")}}), &authz.Verdict{Status: 401, Body: "who?", Fields: []upstream.Field{{Name: "www-authenticate", Value: "Basic"}}}},
		"no, with a bad field":  {no(&authv3.DeniedHttpResponse{Status: code(302), Headers: []*corev3.HeaderValueOption{header("location", "/\r\nSet-Cookie: a=1"), header("set-cookie", "a")}}), &authz.Verdict{Status: 302, Fields: []upstream.Field{{Name: "set-cookie", Value: "a"}}}},
		"no, with status 200":   {no(&authv3.DeniedHttpResponse{Status: code(200)}), &authz.Verdict{Status: 403}},
		"no, with status 101":   {no(&authv3.DeniedHttpResponse{Status: code(101)}), &authz.Verdict{Status: 403}},
		"no, with status -1":    {no(&authv3.DeniedHttpResponse{Status: code(-1)}), &authz.Verdict{Status: 403}},
		"no, with status 999":   {no(&authv3.DeniedHttpResponse{Status: code(999)}), &authz.Verdict{Status: 403}},
		"no, with status 503":   {no(&authv3.DeniedHttpResponse{Status: code(503)}), &authz.Verdict{Status: 503}},
	} {
		got, err := authz.Decode(framed(t, test.answer))
		if (err == nil) != (test.want != nil) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		} else if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestOnlyOneWholeMessageIsAnAnswer(t *testing.T) {
	good := framed(t, no(&authv3.DeniedHttpResponse{Body: "a"}))
	compressed := append([]byte{1}, good[1:]...)
	huge := append([]byte{0, 0xff, 0xff, 0xff, 0xff}, good[5:]...)
	deep := []byte{}
	for range 28 { // a list of lists
		deep = protoField(6, protoField(1, deep))
	}
	deep = protoField(4, protoField(1, protoField(2, deep))) // in the metadata, which is one of maps
	for name, text := range map[string][]byte{
		"nothing": nil, "no message": good[:4], "a compressed one": compressed, "a huge one": huge, "one that is cut": good[:len(good)-1],
		"two": append(append([]byte{}, good...), good...), "noise": {0, 0, 0, 0, 2, 0xff, 0xff}, "deep metadata": append([]byte{0, 0, 0, 0, byte(len(deep))}, deep...),
		"too many parts": framed(t, no(&authv3.DeniedHttpResponse{Headers: make([]*corev3.HeaderValueOption, 2048)})),
		"too much metadata": framed(t, &authv3.CheckResponse{DynamicMetadata: &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewListValue(
			&structpb.ListValue{Values: slices.Repeat([]*structpb.Value{structpb.NewNullValue()}, 2048)})}}}),
	} {
		if got, err := authz.Decode(text); err == nil {
			t.Errorf("%s is an answer: %+v", name, got)
		}
	}
	if got, err := authz.Decode([]byte{0, 0, 0, 0, 0}); err != nil || !got.Allowed {
		t.Errorf("an empty message, which says OK: %+v, %v", got, err)
	}
}

func protoField(number byte, content []byte) []byte {
	return append([]byte{number<<3 | 2, byte(len(content) % 128)}, content...)
}

func TestWhetherACallHasSucceeded(t *testing.T) {
	field := func(values ...string) (fields []upstream.Field) {
		for _, value := range values {
			fields = append(fields, upstream.Field{Name: "grpc-status", Value: value})
		}
		return fields
	}
	for _, test := range []struct {
		fields, trailers []upstream.Field
		want             bool
	}{
		{nil, field("0"), true},
		{field("0"), nil, true},
		{nil, nil, false},
		{nil, field("14"), false},
		{field("0"), field("0"), false},
		{nil, field("0", "7"), false},
		{nil, field("00"), false},
		{nil, field(""), false},
		{nil, field("0 "), false},
	} {
		if got := authz.Succeeded(test.fields, test.trailers); got != test.want {
			t.Errorf("%v %v: %v", test.fields, test.trailers, got)
		}
	}
	for code := range 18 {
		service := slices.Contains([]int{1, 2, 4, 8, 10, 13, 14, 15}, code)
		if got := authz.Failed(nil, field(fmt.Sprint(code))); got != service {
			t.Errorf("status %d: the Service has failed: %v", code, got)
		}
	}
	if authz.Failed(field("14"), field("14")) || authz.Failed(nil, nil) || authz.Failed(nil, field("014")) {
		t.Error("what is not one status says that the Service has failed")
	}
	for text, want := range map[string]bool{"application/grpc": true, "application/grpc+proto": true, "application/grpc; a=b": true, "application/grpc-web": false, "text/html": false, "": false} {
		if got := authz.Speaks([]upstream.Field{{Name: "Content-Type", Value: text}}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAQuestionSaysWhatTheRequestIs(t *testing.T) {
	question := authz.Question{
		Method: "PUT", Path: "/a?b=c", Host: "shop.example.com", Scheme: "https", Protocol: "HTTP/2.0", Client: "2001:db8::1", Time: time.Unix(7, 0), Body: []byte("\xff"),
		Fields: []upstream.Field{{Name: "Cookie", Value: "a=1"}, {Name: "cookie", Value: "b=2"}, {Name: "X-A", Value: "1"}, {Name: "X-A", Value: "2"}},
	}
	text, err := question.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got := &authv3.CheckRequest{}
	if err := proto.Unmarshal(text[5:], got); err != nil || int(binary.BigEndian.Uint32(text[1:5])) != len(text)-5 || text[0] != 0 {
		t.Fatal(err, text[:5])
	}
	http := got.GetAttributes().GetRequest().GetHttp()
	want := map[string]string{"cookie": "a=1; b=2", "x-a": "1,2"}
	if diff := cmp.Diff(want, http.GetHeaders()); diff != "" || http.GetMethod() != "PUT" || http.GetPath() != "/a?b=c" || http.GetHost() != "shop.example.com" || string(http.GetRawBody()) != "\xff" || http.GetSize() != 1 {
		t.Errorf("asked is %v%s", http, diff)
	}
	if got := got.GetAttributes().GetSource().GetAddress().GetSocketAddress().GetAddress(); got != "2001:db8::1" {
		t.Errorf("the client is %q", got)
	}
	question.Fields[0].Value = "\xff"
	if _, err := question.Encode(); err == nil {
		t.Error("text that is no UTF-8 can be asked about")
	}
}

// Whatever a Service sends, what comes of it can be sent on: no field of a connection, no line end, and no status that is none.
func FuzzDecode(f *testing.F) {
	f.Add(framed(f, yes(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{header("a", "b")}, HeadersToRemove: []string{"c"}})))
	f.Add(framed(f, no(&authv3.DeniedHttpResponse{Status: &typev3.HttpStatus{Code: 401}, Headers: []*corev3.HeaderValueOption{header("a", "b")}, Body: "c"})))
	f.Add(framed(f, &authv3.CheckResponse{}))
	f.Fuzz(func(t *testing.T, text []byte) {
		verdict, err := authz.Decode(text)
		if err != nil {
			return
		}
		for _, field := range verdict.Fields {
			if fieldname.OfConnection(field.Name) || !httpguts.ValidHeaderFieldName(field.Name) || strings.ContainsAny(field.Value, "\r\n\x00") {
				t.Errorf("%q: %q", field.Name, field.Value)
			}
		}
		answer := &authv3.CheckResponse{}
		if proto.Unmarshal(text[5:], answer) != nil || (answer.GetStatus().GetCode() != 0 || answer.GetDeniedResponse() != nil) == verdict.Allowed {
			t.Errorf("%v becomes %+v", answer, verdict)
		}
		if !verdict.Allowed && (verdict.Status < 300 || verdict.Status > 599) {
			t.Errorf("refused with %d", verdict.Status)
		}
	})
}
