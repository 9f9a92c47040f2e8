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

// ofService are the statuses of calls that say that the Service has failed. The others say that something is wrong with the call,
// which may be the client's doing.
var ofService = map[string]bool{"1": true, "2": true, "4": true, "8": true, "10": true, "13": true, "14": true, "15": true}

// Failed reports whether fields and trailers of a response say once that the Service has failed.
func Failed(fields, trailers []upstream.Field) bool {
	said := statuses(fields, trailers)
	return len(said) == 1 && ofService[said[0]]
}

// Succeeded reports whether fields and trailers of a response say once that the call has succeeded.
func Succeeded(fields, trailers []upstream.Field) bool {
	said := statuses(fields, trailers)
	return len(said) == 1 && said[0] == "0"
}

func statuses(lists ...[]upstream.Field) (said []string) {
	for _, list := range lists {
		for _, field := range list {
			if strings.EqualFold(field.Name, "Grpc-Status") {
				said = append(said, field.Value)
			}
		}
	}
	return said
}
