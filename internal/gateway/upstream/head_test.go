package upstream

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeadKeepsEndToEndFieldsOnly(t *testing.T) {
	var h head
	err := h.parse("HTTP/1.1 200 OK\r\n" +
		"Content-Type: text/plain\r\n" +
		"Connection: close, X-Hop\r\n" +
		"Keep-Alive: timeout=5\r\n" +
		"Proxy-Connection: keep-alive\r\n" +
		"X-Hop: gone\r\n" +
		"x-hop: gone too\r\n" +
		"Upgrade: h2c\r\n" +
		"TE: trailers\r\n" +
		"Trailer: Digest\r\n" +
		"Set-Cookie: a=1\r\n" +
		"Set-Cookie: b=2\r\n" +
		"Content-Length: 2\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{
		{"Content-Type", "text/plain"},
		{"Trailer", "Digest"},
		{"Set-Cookie", "a=1"},
		{"Set-Cookie", "b=2"},
		{"Content-Length", "2"},
	}
	if diff := cmp.Diff(want, h.fields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !h.close {
		t.Error("Connection: close was not seen")
	}
}

func TestHeadThatIsAccepted(t *testing.T) {
	for name, block := range map[string]string{
		"no reason":                          "HTTP/1.1 200 \r\n\r\n",
		"no reason and no space":             "HTTP/1.1 200\r\n\r\n",
		"reason with other bytes":            "HTTP/1.1 200 D\xe9j\xe0 vu\r\n\r\n",
		"bare line feeds":                    "HTTP/1.1 200 OK\nA: b\n\n",
		"HTTP/1.0":                           "HTTP/1.0 200 OK\r\n\r\n",
		"empty value":                        "HTTP/1.1 200 OK\r\nA:\r\n\r\n",
		"tab around a value":                 "HTTP/1.1 200 OK\r\nA:\t b \t\r\n\r\n",
		"the same length twice":              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"the same length in a list":          "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
		"chunked in capitals":                "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n",
		"white space before the colon":       "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
		"status of an unknown class":         "HTTP/1.1 999 What\r\n\r\n",
		"value with bytes of another tongue": "HTTP/1.1 200 OK\r\nA: \xff\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var h head
			if err := h.parse(block); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestHeadThatIsRefused(t *testing.T) {
	for name, block := range map[string]string{
		"nothing":                         "\r\n",
		"another protocol":                "SSH-2.0-OpenSSH_9.2\r\n\r\n",
		"HTTP/2 in text":                  "HTTP/2.0 200 OK\r\n\r\n",
		"HTTP/1.2":                        "HTTP/1.2 200 OK\r\n\r\n",
		"lower case version":              "http/1.1 200 OK\r\n\r\n",
		"two digits":                      "HTTP/1.1 20 OK\r\n\r\n",
		"four digits":                     "HTTP/1.1 2000 OK\r\n\r\n",
		"sign in the status":              "HTTP/1.1 +20 OK\r\n\r\n",
		"status below 100":                "HTTP/1.1 099 OK\r\n\r\n",
		"two spaces":                      "HTTP/1.1  200 OK\r\n\r\n",
		"control byte in the reason":      "HTTP/1.1 200 O\x01K\r\n\r\n",
		"carriage return in the reason":   "HTTP/1.1 200 O\rK\r\n\r\n",
		"space before the first field":    "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
		"folded line":                     "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
		"line without a colon":            "HTTP/1.1 200 OK\r\nA\r\n\r\n",
		"empty name":                      "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
		"space in a name":                 "HTTP/1.1 200 OK\r\nA B: c\r\n\r\n",
		"NUL in a value":                  "HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n",
		"carriage return in a value":      "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
		"delete in a value":               "HTTP/1.1 200 OK\r\nA: b\x7fc\r\n\r\n",
		"two lengths":                     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"two lengths in a list":           "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
		"length with a sign":              "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
		"negative length":                 "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
		"hexadecimal length":              "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n",
		"empty length":                    "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"length that does not fit":        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"length and chunked":              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"chunked and length":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
		"length with a space in its name": "HTTP/1.1 200 OK\r\nContent-Length : 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"chunked in HTTP/1.0":             "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"another coding":                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"another coding before chunked":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"chunked twice":                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"chunked with a vertical tab":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
		"identity":                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
		"more fields than anybody needs":  "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxFields+1) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var h head
			if err := h.parse(block); !errors.Is(err, errMalformed) {
				t.Errorf("got error %v, want a malformed response; fields %v", err, h.fields)
			}
		})
	}
}

func TestHeadIsReadWholeFromPieces(t *testing.T) {
	const text = "HTTP/1.1 200 OK\r\nA: b\r\n\r\nrest"
	for size := 1; size <= len(text); size++ {
		b := buffer{source: &slowReader{text: text, size: size}}
		head, err := b.head(1 << 10)
		if err != nil || head != strings.TrimSuffix(text, "rest") {
			t.Errorf("pieces of %d: got %q, %v", size, head, err)
		}
	}
}

func TestHeadIsBounded(t *testing.T) {
	const limit = 8 << 10
	for name, text := range map[string]string{
		"a line without an end": "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 4*limit),
		"lines without an end":  "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", limit),
		"just too long":         "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", limit) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := buffer{source: &slowReader{text: text, size: 3000}}
			if _, err := b.head(limit); !errors.Is(err, errTooLong) {
				t.Errorf("got error %v, want too long", err)
			}
			if len(b.data) > 2*limit {
				t.Errorf("%d bytes were held", len(b.data))
			}
		})
	}
}

// slowReader returns its text in pieces.
type slowReader struct {
	text string
	size int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, errors.New("the test has no more text")
	}
	n := copy(p[:min(len(p), r.size)], r.text)
	r.text = r.text[n:]
	return n, nil
}
