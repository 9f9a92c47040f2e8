package feature

import (
	"net/textproto"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// EditableHeader returns the canonical form of a header name that a rule may change.
func EditableHeader(field, name string) (string, *model.Fault) {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if !fieldname.IsToken(canonical) {
		return "", model.Invalid("%s: %q cannot be the name of a header", field, name)
	}
	// HTTP itself needs these fields, and rewrite changes Host. Changing them here could
	// change where a message ends or which host it is for.
	if canonical == "Trailer" || fieldname.OfConnection(canonical) {
		return "", model.Invalid("%s: %s cannot be changed", field, canonical)
	}
	return canonical, nil
}

// OptionalHeader returns the canonical form of a name, which may be empty.
func OptionalHeader(field, name string) (string, *model.Fault) {
	if name == "" {
		return "", nil
	}
	if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
		return "Authorization", nil
	}
	return EditableHeader(field, name)
}
