package clienthello_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/clienthello"
)

// helloOf is what a client of crypto/tls sends first.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, config).Handshake()
		_ = client.Close()
	}()
	header := make([]byte, 5)
	if _, err := io.ReadFull(server, header); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	return append(header, body...)
}

// named is the message of a client that asks for a name.
func named(t testing.TB, name string) []byte {
	t.Helper()
	const placeholder = "placeholder.example.com"
	return withName(helloOf(t, &tls.Config{ServerName: placeholder, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}), placeholder, serverNames(entry(0, name)))
}

// entry is an entry of a list of server names.
func entry(kind byte, name string) []byte {
	return append([]byte{kind, byte(len(name) >> 8), byte(len(name))}, name...)
}

// serverNames is the body of the extension with a list of these entries.
func serverNames(entries ...[]byte) []byte {
	list := bytes.Join(entries, nil)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(list))), list...)
}

// extension is an extension.
func extension(kind uint16, body []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, kind)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(body))), body...)
}

// withName replaces the extension with the server names.
func withName(hello []byte, placeholder string, body []byte) []byte {
	return withExtensions(hello, placeholder, extension(0, body))
}

// withExtensions replaces the extension with the placeholder by others, and corrects all lengths before it.
func withExtensions(hello []byte, placeholder string, others []byte) []byte {
	old := extension(0, serverNames(entry(0, placeholder)))
	grown := len(others) - len(old)
	hello = bytes.Replace(hello, old, others, 1)
	message := hello[5:]
	at := 4 + 2 + 32
	at += 1 + int(message[at])
	at += 2 + int(binary.BigEndian.Uint16(message[at:]))
	at += 1 + int(message[at])
	binary.BigEndian.PutUint16(message[at:], uint16(int(binary.BigEndian.Uint16(message[at:]))+grown))
	size := len(message) - 4
	message[1], message[2], message[3] = byte(size>>16), byte(size>>8), byte(size)
	binary.BigEndian.PutUint16(hello[3:], uint16(len(message)))
	return hello
}

// inRecords cuts the message into records of this size.
func inRecords(hello []byte, size int) []byte {
	var out []byte
	for message := hello[5:]; len(message) > 0; {
		n := min(size, len(message))
		out = append(out, 22, 3, 1)
		out = binary.BigEndian.AppendUint16(out, uint16(n))
		out = append(out, message[:n]...)
		message = message[n:]
	}
	return out
}

// read reads from a client that sends pieces of this size and then waits.
func read(t testing.TB, sent []byte, piece int) (name string, seen []byte, err error) {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		defer client.Close()
		for len(sent) > 0 {
			n := min(piece, len(sent))
			if _, err := client.Write(sent[:n]); err != nil {
				return
			}
			sent = sent[n:]
		}
		_, _ = io.Copy(io.Discard, client)
	}()
	if err := server.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	return clienthello.Read(server)
}

func TestTheNameIsReadHoweverTheMessageIsCut(t *testing.T) {
	hello := named(t, "a.example.com")
	tests := map[string][]byte{
		"one record": hello, "two records": inRecords(hello, len(hello)/2), "records of a byte": inRecords(hello, 1),
		"with what follows": append(bytes.Clone(hello), "\x17\x03\x03\x00\x01x"...),
	}
	for what, sent := range tests {
		for _, piece := range []int{1, 7, len(sent)} {
			name, seen, err := read(t, sent, piece)
			if name != "a.example.com" || err != nil {
				t.Errorf("%s, %d bytes at a time: got %q, %v", what, piece, name, err)
			}
			if !bytes.HasPrefix(sent, seen) {
				t.Errorf("%s, %d bytes at a time: what was read is not what was sent", what, piece)
			}
		}
	}
}

func TestNames(t *testing.T) {
	const placeholder = "placeholder.example.com"
	plain := func() []byte {
		return helloOf(t, &tls.Config{ServerName: placeholder, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	}
	with := func(body []byte) []byte { return withName(plain(), placeholder, body) }
	long := strings.Repeat("a.", 126) + "a"
	tests := map[string]struct {
		hello []byte
		name  string // empty: none
		wrong bool
	}{
		"none":                     {hello: withExtensions(plain(), placeholder, nil)},
		"upper case":               {hello: named(t, "A.Example.COM"), name: "a.example.com"},
		"as long as it may be":     {hello: named(t, long), name: long},
		"too long":                 {hello: named(t, long+".a"), wrong: true},
		"a dot at the end":         {hello: named(t, "a.example.com."), wrong: true},
		"two dots":                 {hello: named(t, "a..example.com"), wrong: true},
		"a dot at the beginning":   {hello: named(t, ".example.com"), wrong: true},
		"a zero byte":              {hello: named(t, "a.example.com\x00.evil.com"), wrong: true},
		"a space":                  {hello: named(t, "a.example.com "), wrong: true},
		"bytes above 127":          {hello: named(t, "\xc3\xa4.example.com"), wrong: true},
		"a port":                   {hello: named(t, "a.example.com:443"), wrong: true},
		"a wildcard":               {hello: named(t, "*.example.com"), wrong: true},
		"an underscore":            {hello: named(t, "_a.example.com"), wrong: true},
		"an IPv4 address":          {hello: named(t, "192.0.2.1"), wrong: true},
		"an IPv6 address":          {hello: named(t, "2001:db8::1"), wrong: true},
		"one in brackets":          {hello: named(t, "[2001:db8::1]"), wrong: true},
		"an empty name":            {hello: with(serverNames(entry(0, ""))), wrong: true},
		"an empty list":            {hello: with(serverNames()), wrong: true},
		"two names":                {hello: with(serverNames(entry(0, "a.example.com"), entry(0, "b.example.com"))), wrong: true},
		"the same name twice":      {hello: with(serverNames(entry(0, "a.example.com"), entry(0, "a.example.com"))), wrong: true},
		"bytes behind the list":    {hello: with(append(serverNames(entry(0, "a.example.com")), 0)), wrong: true},
		"two lists":                {hello: withExtensions(plain(), placeholder, bytes.Repeat(extension(0, serverNames(entry(0, "a.example.com"))), 2)), wrong: true},
		"no TLS":                   {hello: []byte("GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n"), wrong: true},
		"a message of SSL 2":       {hello: append([]byte{0x80, 0x2e, 1, 3, 1, 0, 3, 0, 0, 0, 0x10}, make([]byte, 40)...), wrong: true},
		"an alert before it":       {hello: append([]byte{21, 3, 1, 0, 2, 2, 40}, named(t, "a.example.com")...), wrong: true},
		"another message":          {hello: append([]byte{22, 3, 1, 0, 4}, 2, 0, 0, 0), wrong: true},
		"application data":         {hello: []byte{23, 3, 3, 0, 1, 0}, wrong: true},
		"a name of another kind":   {hello: with(serverNames(entry(1, "a.example.com")))},
		"with an encrypted hello":  {hello: withExtensions(plain(), placeholder, append(extension(0, serverNames(entry(0, "outer.example.com"))), extension(0xfe0d, append([]byte{0, 0, 1, 0, 1, 9, 0, 1, 7, 0, 1}, 7))...)), name: "outer.example.com"},
		"more than may be read":    {hello: append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}, make([]byte, 1<<16)...), wrong: true},
		"a record that never ends": {hello: []byte{22, 3, 1, 0x40, 0, 1}, wrong: true},
	}
	for what, test := range tests {
		name, _, err := read(t, test.hello, len(test.hello))
		if name != test.name || (err != nil) != test.wrong {
			t.Errorf("%s: got %q, %v; want %q, wrong %t", what, name, err, test.name, test.wrong)
		}
	}
}

// stuck sends nothing but part of a record.
func TestWhatIsReadIsBounded(t *testing.T) {
	endless := bytes.Repeat(append([]byte{22, 3, 1, 0, 1}, 1), clienthello.MaxBytes)
	_, seen, err := read(t, endless, len(endless))
	if err == nil || len(seen) > clienthello.MaxBytes {
		t.Errorf("read %d bytes, %v", len(seen), err)
	}
}

// FuzzRead asks a server of crypto/tls for its opinion of the same bytes: who is passed through, comes to the same name there.
func FuzzRead(f *testing.F) {
	f.Add(named(f, "a.example.com"))
	f.Add(inRecords(named(f, "b.example.com"), 50))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		name, seen, err := clienthello.Read(&given{rest: bytes.NewReader(sent)})
		if !bytes.HasPrefix(sent, seen) || len(seen) > clienthello.MaxBytes {
			t.Fatalf("it has read %d bytes that were not sent, or too many", len(seen))
		}
		if err != nil {
			return
		}
		asked, read := "", false
		_ = tls.Server(&given{rest: bytes.NewReader(sent)}, &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				asked, read = hello.ServerName, true
				return nil, io.EOF
			},
		}).Handshake()
		if !read || strings.ToLower(asked) != name {
			t.Errorf("read %q, and a backend reads %q (%t)", name, asked, read)
		}
	})
}

// given is a connection that sends what it has and ends.
type given struct {
	net.Conn

	rest *bytes.Reader
}

func (g *given) Read(p []byte) (int, error)       { return g.rest.Read(p) }
func (g *given) Write(p []byte) (int, error)      { return len(p), nil }
func (g *given) Close() error                     { return nil }
func (g *given) SetDeadline(time.Time) error      { return nil }
func (g *given) SetReadDeadline(time.Time) error  { return nil }
func (g *given) SetWriteDeadline(time.Time) error { return nil }
