package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// scripted returns data as a connection would, a few bytes at a time.
type scripted struct {
	data []byte
	size int
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.size)], s.data)
	s.data = s.data[n:]
	return n, nil
}

// parsed is a response as a parser understood it.
type parsed struct {
	status int
	body   string
	rest   int // bytes after the response
	header http.Header
}

// readOurs parses a response as a connection does. It returns false if it refuses the
// response.
func readOurs(data []byte, method string, size int) (parsed, bool) {
	in := buffer{source: &scripted{data: data, size: size}}
	block, err := in.head(64 << 10)
	if err != nil {
		return parsed{}, false
	}
	var h head
	if err := h.parse(block); err != nil {
		return parsed{}, false
	}
	p := parsed{status: h.status, header: http.Header{}}
	var b body
	b.begin(&in, h.framing(method), h.length, 64<<10)
	for _, field := range h.fields {
		p.header.Add(field.Name, field.Value)
	}
	var content bytes.Buffer
	piece := make([]byte, 1+size)
	for {
		n, err := b.read(piece)
		content.Write(piece[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return parsed{}, false
		}
	}
	p.body = content.String()
	left, _ := io.ReadAll(&in)
	p.rest = len(left)
	return p, true
}

// readTheirs parses a response as net/http does.
func readTheirs(data []byte, method string) (parsed, bool) {
	in := bufio.NewReader(bytes.NewReader(data))
	response, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return parsed{}, false
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return parsed{}, false
	}
	left, _ := io.ReadAll(in)
	return parsed{status: response.StatusCode, body: string(content), rest: len(left), header: response.Header}, true
}

// hasSpaceInName reports whether a name ends with white space. This package removes it, as
// RFC 9112, 5.1 requires.
func hasSpaceInName(header http.Header) bool {
	for name := range header {
		if strings.ContainsAny(name, " \t") {
			return true
		}
	}
	return false
}

// FuzzResponse compares responses that both parsers accept. If they disagreed about the end
// of a response, one response could be read as two.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		okResponse,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\nrest",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nokHTTP/1.1",
		"HTTP/1.0 200 OK\n\nuntil the end",
		"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close, A\r\nA : b\r\n\r\n",
	} {
		f.Add([]byte(seed), false, byte(3))
		f.Add([]byte(seed), true, byte(200))
	}
	f.Fuzz(func(t *testing.T, data []byte, head bool, size byte) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		ours, ok := readOurs(data, method, 1+int(size))
		if !ok {
			return
		}
		whole, _ := readOurs(data, method, 1<<20)
		if whole.body != ours.body || whole.status != ours.status || whole.rest != ours.rest {
			t.Fatalf("pieces matter: %+v and %+v", ours, whole)
		}
		for name, values := range ours.header {
			for _, value := range values {
				if !isToken(name) || strings.ContainsAny(value, "\r\n\x00") {
					t.Fatalf("field %q: %q passes", name, value)
				}
			}
		}
		theirs, ok := readTheirs(data, method)
		if !ok || hasSpaceInName(theirs.header) {
			return
		}
		if ours.status != theirs.status || ours.body != theirs.body || ours.rest != theirs.rest {
			t.Fatalf("different responses:\nours   %+v\ntheirs %+v", ours, theirs)
		}
		for name, values := range ours.header {
			if got := theirs.header[name]; strings.Join(got, "\n") != strings.Join(values, "\n") && name != "Content-Length" {
				t.Fatalf("field %s: ours %q, theirs %q", name, values, got)
			}
		}
	})
}
