package upstream

import (
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// FuzzHeadOverEveryProtocol gives the same fields to HTTP/1.1 and to HTTP/2. Both must come to the same verdict, and what passes
// has at most one length, in the one form that nobody reads as another.
func FuzzHeadOverEveryProtocol(f *testing.F) {
	for _, seed := range []string{
		"Content-Length: 2", "Content-Length: 97\nContent-Length: 2", "Content-Length: 2, 2", "Content-Length: +2", "Content-Length: ",
		"Content-Length: 0002", "Content-Length: 9223372036854775807", "Transfer-Encoding: chunked", "Connection: Content-Length\nContent-Length: 2",
		"Keep-Alive: x\nUpgrade: h2c\nTE: gzip\nProxy-Connection: close", "A: \x00", "A:  b \t", "Content_Length: 3\nContent-Length: 2",
	} {
		f.Add(seed, uint16(200), false)
	}
	f.Add("Content-Length: 97", uint16(204), false)
	f.Add("Content-Length: 97", uint16(304), false)
	f.Add("Content-Length: 97\nContent-Length: 2", uint16(103), true)
	f.Fuzz(func(t *testing.T, section string, code uint16, isHead bool) {
		status := "HTTP/1.1 " + string([]byte{'0' + byte(code/100%10), '0' + byte(code/10%10), '0' + byte(code%10)})
		header := http.Header{}
		var lines strings.Builder
		for line := range strings.SplitSeq(section, "\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.Trim(value, " \t\r")
			if !isToken(name) || strings.EqualFold(name, "Trailer") {
				continue // golang.org/x/net/http2 refuses it, or takes it for itself
			}
			header[textproto.CanonicalMIMEHeaderKey(name)] = append(header[textproto.CanonicalMIMEHeaderKey(name)], value)
			lines.WriteString(name + ": " + value + "\r\n")
		}
		var one, two head
		first := one.parse(status + " X\r\n" + lines.String() + "\r\n")
		second := two.take(status[len("HTTP/1.1 "):], header)
		if (first == nil) != (second == nil) && header["Transfer-Encoding"] == nil {
			t.Fatalf("HTTP/1.1: %v, HTTP/2: %v", first, second)
		}
		method := http.MethodGet
		if isHead {
			method = http.MethodHead
		}
		for _, h := range []*head{&one, &two} {
			if (h == &one && first != nil) || (h == &two && second != nil) {
				continue
			}
			framing := h.framing(method)
			checkPassed(t, h, framing)
		}
	})
}

// checkPassed fails if a head that passed leaves anything in doubt.
func checkPassed(t *testing.T, h *head, framing framing) {
	t.Helper()
	lengths := 0
	for _, field := range h.fields {
		isLength := strings.EqualFold(field.Name, "Content-Length")
		if isLength {
			lengths++
		}
		length, ok := parseLength(field.Value)
		switch {
		case !isToken(field.Name) || !isFieldValue(field.Value):
			t.Fatalf("field %q: %q passes", field.Name, field.Value)
		case !isLength && fieldname.OfConnection(field.Name):
			t.Fatalf("field %q of the connection passes", field.Name)
		case isLength && (!ok || length != h.length || (len(field.Value) > 1 && field.Value[0] == '0')):
			t.Fatalf("length %q passes, and %d is counted", field.Value, h.length)
		case isLength && (h.chunked || h.status < 200 || h.status == 204):
			t.Fatalf("%d: length %q passes", h.status, field.Value)
		}
	}
	if lengths > 1 || (lengths > 0 && framing != byLength && framing != noBody) {
		t.Fatalf("%d lengths pass, framing %d", lengths, framing)
	}
}
