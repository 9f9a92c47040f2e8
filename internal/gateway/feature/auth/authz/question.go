package authz

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Method is the path of the call.
const Method = "/envoy.service.auth.v3.Authorization/Check"

// prefix is the length of what comes before a message: a flag and its size.
const prefix = 5

// Question is the request that a Service is asked about.
type Question struct {
	// Method, Path (with the query), Host, Scheme and Protocol (such as HTTP/1.1) are those of the client's request.
	Method, Path, Host, Scheme, Protocol string
	// Client is the address of the client. Empty: it is not known.
	Client string
	// Time is when the request came.
	Time time.Time
	// Fields are the fields that the Service is shown.
	Fields []upstream.Field
	// Body is the whole body, if the Service is shown it.
	Body []byte
}

// Encode returns the message of a call, with what comes before it. A request with text that is no UTF-8 cannot be asked about.
func (q *Question) Encode() ([]byte, error) {
	headers := q.headers()
	attributes := &authv3.AttributeContext{
		Request: &authv3.AttributeContext_Request{
			Time: timestamppb.New(q.Time),
			Http: &authv3.AttributeContext_HttpRequest{
				Method: q.Method, Path: q.Path, Host: q.Host, Scheme: q.Scheme, Protocol: q.Protocol,
				Headers: headers, Size: int64(len(q.Body)), RawBody: q.Body,
			},
		},
	}
	if q.Client != "" {
		attributes.Source = &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: q.Client, PortSpecifier: &corev3.SocketAddress_PortValue{}},
		}}}
	}
	framed, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, prefix, prefix+1024), &authv3.CheckRequest{Attributes: attributes})
	if err != nil {
		return nil, fmt.Errorf("ask about the request: %w", err)
	}
	binary.BigEndian.PutUint32(framed[1:prefix], uint32(len(framed)-prefix))
	return framed, nil
}

// headers are the fields by their names in lower case. A client may send thousands of one name, so they are joined at the end.
func (q *Question) headers() map[string]string {
	headers, several := make(map[string]string, len(q.Fields)), map[string][]string{}
	for _, field := range q.Fields {
		name := strings.ToLower(field.Name)
		switch first, known := headers[name]; {
		case !known:
			headers[name] = field.Value
		case several[name] == nil:
			several[name] = []string{first, field.Value}
		default:
			several[name] = append(several[name], field.Value)
		}
	}
	for name, values := range several {
		separator := ","
		if name == "cookie" {
			separator = "; "
		}
		headers[name] = strings.Join(values, separator)
	}
	return headers
}
