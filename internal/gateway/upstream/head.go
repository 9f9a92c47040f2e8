package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// maxFields bounds the number of fields in a header or trailer section.
const maxFields = 512

var errMalformed = errors.New("malformed response")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errMalformed}, args...)...)
}

// head is the parsed head of a response.
type head struct {
	status int
	http2  bool // it came over HTTP/2, which frames the message itself
	minor  byte // of the version HTTP/1.minor
	count  int  // of all fields, including those that are not kept
	fields []Field

	length    int64 // of the content, -1 if it is not declared
	chunked   bool
	close     bool // the connection ends with this response
	doubtful  bool // content may follow although there must be none
	upgrade   string
	nominated []string // the fields that Connection names
}

func (h *head) reset() {
	clear(h.fields)
	clear(h.nominated)
	*h = head{fields: h.fields[:0], nominated: h.nominated[:0], length: -1}
}

// parse parses a head as RFC 9112 defines it. A line may end with a bare LF (2.2).
// Everything that two parsers could understand differently is refused.
func (h *head) parse(block string) error {
	h.reset()
	line, rest := cutLine(block)
	if err := h.parseStatusLine(line); err != nil {
		return err
	}
	for {
		line, rest = cutLine(rest)
		if line == "" {
			break
		}
		field, err := parseField(line)
		if err != nil {
			return err
		}
		if err := h.add(field); err != nil {
			return err
		}
	}
	return h.check()
}

// take checks a head that came over HTTP/2, by the same rules. golang.org/x/net/http2 has checked the pseudo fields and the
// case of names. It has not checked lengths: it takes what it cannot read for no length.
func (h *head) take(status string, header http.Header) error {
	h.reset()
	h.http2 = true
	if err := h.parseStatus(status); err != nil {
		return err
	}
	for name, values := range header {
		for _, value := range values {
			if err := h.add(Field{Name: name, Value: trimSpace(value)}); err != nil {
				return err
			}
		}
	}
	return h.check()
}

func cutLine(block string) (line, rest string) {
	line, rest, _ = strings.Cut(block, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// parseStatusLine parses "HTTP/1.1 200 OK". The reason may be missing, with the space
// before it.
func (h *head) parseStatusLine(line string) error {
	const prefix = "HTTP/1."
	if len(line) < len("HTTP/1.1 200") || !strings.HasPrefix(line, prefix) {
		return malformed("no status line of HTTP/1")
	}
	h.minor = line[len(prefix)] - '0'
	if h.minor > 1 || line[len(prefix)+1] != ' ' {
		return malformed("version is neither HTTP/1.0 nor HTTP/1.1")
	}
	code, reason := line[9:12], line[12:]
	if err := h.parseStatus(code); err != nil {
		return err
	}
	if reason != "" && (reason[0] != ' ' || !isFieldValue(reason)) {
		return malformed("reason with forbidden characters")
	}
	return nil
}

func (h *head) parseStatus(code string) error {
	status, ok := parseLength(code)
	if !ok || len(code) != len("200") {
		return malformed("status is not a number of three digits")
	}
	if status < 100 {
		return malformed("status below 100")
	}
	h.status = int(status)
	return nil
}

// parseField parses "Name: value". It removes white space before the colon, as a proxy must
// (RFC 9112, 5.1). It refuses a folded line (5.2).
func parseField(line string) (Field, error) {
	if line[0] == ' ' || line[0] == '\t' {
		return Field{}, malformed("folded or misplaced field line")
	}
	colon := strings.IndexByte(line, ':')
	if colon < 0 {
		return Field{}, malformed("field line without a colon")
	}
	name := line[:colon]
	if colon > 0 && (name[colon-1] == ' ' || name[colon-1] == '\t') {
		name = trimSpace(name)
	}
	return Field{Name: name, Value: trimSpace(line[colon+1:])}, nil
}

// checkReceived checks a field of a header or trailer section, as it came over any protocol.
func (f *Field) checkReceived() error {
	if !isToken(f.Name) {
		return malformed("field name with forbidden characters")
	}
	if !isFieldValue(f.Value) {
		return malformed("value of field %s with forbidden characters", f.Name)
	}
	return nil
}

// add checks and records a field. Fields that belong to the connection are not forwarded.
func (h *head) add(field Field) error {
	if h.count++; h.count > maxFields {
		return malformed("more than %d fields", maxFields)
	}
	if err := field.checkReceived(); err != nil {
		return err
	}
	name, value := field.Name, field.Value
	switch {
	case !fieldname.OfConnection(name):
		h.fields = append(h.fields, field)
	case strings.EqualFold(name, "Content-Length"):
		return h.addLength(field)
	case strings.EqualFold(name, "Transfer-Encoding"):
		if h.http2 {
			return malformed("Transfer-Encoding, which HTTP/2 does not have")
		}
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return malformed("transfer coding other than chunked")
		}
		h.chunked = true
	case strings.EqualFold(name, "Connection"):
		eachElement(value, h.addOption)
	case strings.EqualFold(name, "Upgrade"):
		h.upgrade = value
	}
	return nil
}

// addLength records a Content-Length. The field may be repeated, or be a list, if all
// values are equal (RFC 9112, 6.3). Whoever gets the response gets one number, without
// zeros before it.
func (h *head) addLength(field Field) error {
	for rest, more := field.Value, true; more; {
		var element string
		element, rest, more = strings.Cut(rest, ",")
		length, ok := parseLength(trimSpace(element))
		if !ok || (h.length >= 0 && length != h.length) {
			return malformed("invalid Content-Length")
		}
		if h.length < 0 {
			digits := strings.TrimLeft(trimSpace(element), "0")
			h.fields = append(h.fields, Field{Name: field.Name, Value: cmp.Or(digits, "0")})
		}
		h.length = length
	}
	return nil
}

func parseLength(digits string) (int64, bool) {
	if digits == "" || len(digits) > 18 {
		return 0, false
	}
	var length int64
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		length = length*10 + int64(digits[i]-'0')
	}
	return length, true
}

func (h *head) addOption(option string) {
	switch {
	case strings.EqualFold(option, "close"):
		h.close = true
	case strings.EqualFold(option, "keep-alive"), strings.EqualFold(option, "Upgrade"):
	default:
		h.nominated = append(h.nominated, option)
	}
}

func (h *head) dropNominated() {
	for _, option := range h.nominated {
		h.drop(option)
	}
}

func (h *head) drop(name string) {
	h.fields = slices.DeleteFunc(h.fields, func(field Field) bool { return strings.EqualFold(field.Name, name) })
}

// check drops the fields that Connection names, and refuses heads that leave the end of the
// message in doubt.
func (h *head) check() error {
	h.dropNominated()
	if h.chunked && h.length >= 0 {
		return malformed("both Transfer-Encoding and Content-Length")
	}
	if h.chunked && h.minor == 0 {
		return malformed("Transfer-Encoding in HTTP/1.0")
	}
	if h.minor == 0 && !h.http2 {
		h.close = true // keep-alive of HTTP/1.0 is not worth its risks
	}
	return nil
}

// framing tells how to find the end of a body.
type framing int

const (
	noBody framing = iota
	byLength
	byChunks
	byClose
	byStream // with its stream of HTTP/2
)

// framing returns how the body after this head ends, as RFC 9112, 6.3 defines it. method is
// that of the request.
func (h *head) framing(method string) framing {
	switch {
	case h.status < 200 || h.status == 204:
		h.close = h.close || h.status == 101 // from now on the connection carries another protocol
		h.doubtful = h.saysContent()
		h.drop("Content-Length")
		h.length = 0
		return noBody
	case method == "HEAD" || h.status == 304:
		h.doubtful = h.saysContent()
		return noBody
	case h.chunked:
		return byChunks
	case h.length >= 0:
		return byLength
	case h.http2:
		return byStream
	}
	h.close = true
	return byClose
}

// saysContent reports whether the head declares a body. An endpoint that declares one may
// send it even if there must be none, shortly after the head. It would be read as the
// response to the next request on the connection.
func (h *head) saysContent() bool { return h.chunked || h.length > 0 }

// addTrailer checks a field of a trailer section, and adds it to those before. It drops a
// field that must not be a trailer.
func addTrailer(trailers []Field, field Field) ([]Field, error) {
	if len(trailers) >= maxFields {
		return trailers, malformed("more than %d trailers", maxFields)
	}
	if err := field.checkReceived(); err != nil {
		return trailers, err
	}
	if fieldname.ForbiddenTrailer(field.Name) {
		return trailers, nil
	}
	return append(trailers, field), nil
}
