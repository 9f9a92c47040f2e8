package authz

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"golang.org/x/net/http/httpguts"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const (
	// MaxAnswer bounds the bytes of an answer: 64 KiB for the body of a refusal, and 32 KiB for the rest.
	MaxAnswer = 96 << 10
	// maxFields bounds the fields of an answer, and those that are to be removed.
	maxFields = 128
	// maxDepth bounds how deep the messages in an answer are nested.
	maxDepth = 40
	// maxParts bounds the fields of all messages in an answer. A field of few bytes takes a hundred of them in memory.
	maxParts = 2048
)

// ErrUndecided means that the Service says that it could not decide.
var ErrUndecided = errors.New("the Service could not decide")

var errTooManyParts = errors.New("the answer has too many parts")

// Verdict is what a Service says of a request.
type Verdict struct {
	// Allowed tells that the request may come in.
	Allowed bool
	// Status is that of a refusal, from 300 to 599, and Body what the client gets.
	Status int
	Body   string
	// Fields are those for the backend, or of a refusal.
	Fields []upstream.Field
	// Remove are the names of fields that the backend must not get from the client.
	Remove []string
}

// Decode reads an answer: one message with what comes before it. An answer that says something else than yes or no, or that asks
// for what the gateway does not do, does not count.
func Decode(framed []byte) (*Verdict, error) {
	if len(framed) < prefix {
		return nil, errors.New("the answer is no message")
	}
	if framed[0] != 0 {
		return nil, errors.New("the answer is compressed")
	}
	if int64(binary.BigEndian.Uint32(framed[1:prefix])) != int64(len(framed)-prefix) {
		return nil, errors.New("the answer is not one message")
	}
	answer, parts := &authv3.CheckResponse{}, 0
	if err := countParts(answer.ProtoReflect().Descriptor(), framed[prefix:], maxDepth, &parts); err != nil {
		return nil, err
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}).Unmarshal(framed[prefix:], answer); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if _, is := answer.GetHttpResponse().(*authv3.CheckResponse_ErrorResponse); is {
		return nil, ErrUndecided
	}
	if answer.GetStatus().GetCode() != 0 {
		return refusal(answer.GetDeniedResponse()), nil
	}
	if answer.GetDeniedResponse() != nil {
		return nil, errors.New("the answer is yes and no")
	}
	return consent(answer.GetOkResponse())
}

// countParts counts the fields of an encoded message and of the messages in it, before memory is taken for them.
func countParts(kind protoreflect.MessageDescriptor, encoded []byte, depth int, parts *int) error {
	for len(encoded) > 0 {
		if *parts++; *parts > maxParts || depth == 0 {
			return errTooManyParts
		}
		number, wire, tag := protowire.ConsumeTag(encoded)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, wire, encoded[tag:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		field := kind.Fields().ByNumber(number)
		if field != nil && field.Message() != nil && wire == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(encoded[tag:])
			if err := countParts(field.Message(), content, depth-1, parts); err != nil {
				return err
			}
		}
		encoded = encoded[tag+size:]
	}
	return nil
}

// consent reads what comes with a yes. What cannot be done as it says could leave the request with more than the Service allows.
func consent(in *authv3.OkHttpResponse) (*Verdict, error) {
	made := &Verdict{Allowed: true}
	switch {
	case len(in.GetQueryParametersToSet()) > 0 || len(in.GetQueryParametersToRemove()) > 0:
		return nil, errors.New("the answer changes the query, which is not supported")
	case len(in.GetHeaders()) > maxFields || len(in.GetHeadersToRemove()) > maxFields:
		return nil, errors.New("the answer has too many fields")
	}
	for _, option := range in.GetHeaders() {
		field, ok := fieldOf(option)
		if !ok {
			return nil, errors.New("the answer has a field that cannot be sent")
		}
		made.Fields = append(made.Fields, field)
	}
	for _, name := range in.GetHeadersToRemove() {
		if !isName(name) {
			return nil, errors.New("the answer removes a field that cannot be removed")
		}
		made.Remove = append(made.Remove, name)
	}
	return made, nil
}

// refusal reads a no. Whatever is wrong with it, it stays one.
func refusal(in *authv3.DeniedHttpResponse) *Verdict {
	made := &Verdict{Status: int(in.GetStatus().GetCode()), Body: in.GetBody()}
	if made.Status < http.StatusMultipleChoices || made.Status > 599 {
		made.Status = http.StatusForbidden
	}
	for _, option := range in.GetHeaders()[:min(len(in.GetHeaders()), maxFields)] {
		if field, ok := fieldOf(option); ok {
			made.Fields = append(made.Fields, field)
		}
	}
	return made
}

// fieldOf returns a field, if it is one of a message and not of a connection.
func fieldOf(option *corev3.HeaderValueOption) (upstream.Field, bool) {
	in := option.GetHeader()
	value := in.GetValue()
	if value == "" {
		value = string(in.GetRawValue())
	}
	return upstream.Field{Name: in.GetKey(), Value: value}, isName(in.GetKey()) && httpguts.ValidHeaderFieldValue(value)
}

func isName(name string) bool {
	return httpguts.ValidHeaderFieldName(name) && !fieldname.OfConnection(name)
}
