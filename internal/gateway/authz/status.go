package authz

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Speaks reports whether fields of a response say that it is one of gRPC.
func Speaks(fields []upstream.Field) bool {
	found := 0
	for _, field := range fields {
		if !strings.EqualFold(field.Name, "Content-Type") {
			continue
		}
		name, _, _ := strings.Cut(field.Value, ";")
		if name != "application/grpc" && name != "application/grpc+proto" {
			return false
		}
		found++
	}
	return found == 1
}

// Succeeded reports whether fields and trailers of a response say once that the call has succeeded.
func Succeeded(fields, trailers []upstream.Field) bool {
	said := 0
	for _, list := range [][]upstream.Field{fields, trailers} {
		for _, field := range list {
			if !strings.EqualFold(field.Name, "Grpc-Status") {
				continue
			}
			if field.Value != "0" {
				return false
			}
			said++
		}
	}
	return said == 1
}
