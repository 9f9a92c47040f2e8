package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

var errSeen = errors.New("the name was read")

// firstBytes is what a client of crypto/tls sends first, for a name.
func firstBytes(t testing.TB, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_ = tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		_ = client.Close()
	}()
	buffer := make([]byte, 16<<10)
	n, err := io.ReadAtLeast(server, buffer, 5)
	if err != nil {
		t.Fatal(err)
	}
	for n < 5+int(buffer[3])<<8+int(buffer[4]) {
		more, err := server.Read(buffer[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += more
	}
	_ = server.Close()
	return buffer[:n]
}

// inRecords cuts a message of TLS into records.
func inRecords(message []byte, size int) []byte {
	var out []byte
	for rest := message[5:]; len(rest) > 0; {
		n := min(size, len(rest))
		out = append(append(out, message[0], message[1], message[2], byte(n>>8), byte(n)), rest[:n]...)
		rest = rest[n:]
	}
	return out
}

// reader is a backend that reads the first message of TLS with crypto/tls, and tells which name it finds.
func reader(t testing.TB, found chan<- string) string {
	return listen(t, func(conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		name := "(none)"
		_ = tls.Server(conn, &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				name = hello.ServerName
				return nil, errSeen
			},
		}).Handshake()
		found <- name
	})
}

// send sends bytes in pieces, and waits until the connection ends.
func (g *streamGateway) sendBytes(t testing.TB, sent []byte, piece int) {
	t.Helper()
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_ = conn.(*net.TCPConn).SetNoDelay(true)
	for len(sent) > 0 {
		n := min(piece, len(sent))
		if _, err := conn.Write(sent[:n]); err != nil {
			return // it was closed
		}
		sent = sent[n:]
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}

// changed is a first message of TLS with some of its bytes changed, cut off or added.
func changed(random *rand.Rand, from []byte) []byte {
	sent := bytes.Clone(from)
	for range random.IntN(3) {
		switch at := random.IntN(len(sent)); random.IntN(5) {
		case 0:
			sent = sent[:at+1]
		case 1:
			sent[at] = byte(random.IntN(256))
		case 2:
			sent = slices.Insert(sent, at, byte(random.IntN(256)))
		case 3:
			sent = slices.Insert(sent, at, sent[at:min(at+random.IntN(40), len(sent))]...)
		default: // in the name, if there is one
			if name := bytes.Index(sent, []byte(".test")); name > 0 {
				sent[name-random.IntN(8)%name] = pickByte(random)
			}
		}
	}
	return sent
}

func pickByte(random *rand.Rand) byte {
	const special = "\x00.*:@[] _AZaz-\xff"
	return special[random.IntN(len(special))]
}

// Whatever reaches a backend, the TLS of the backend reads a name that the backend is for.
func TestOnlyWhatNamesABackendReachesIt(t *testing.T) {
	count, random := property.Inputs(t, 5000, 200)
	a, b := make(chan string, 3*count), make(chan string, 3*count)
	g := startStreams(t, authority.New(t, "streams"), map[string][]string{"a": {reader(t, a)}, "b": {reader(t, b)}, "none": nil})
	messages := [][]byte{firstBytes(t, "through.test"), firstBytes(t, "x.wild.test"), firstBytes(t, "exact.wild.test"), firstBytes(t, "ended.test")}
	reached := 0
	for i := range count {
		random := random(uint64(i))
		message := messages[random.IntN(len(messages))]
		if random.IntN(3) == 0 {
			message = inRecords(message, 1+random.IntN(200))
		}
		sent := changed(random, message)
		g.sendBytes(t, sent, 1+random.IntN(len(sent)))
		for len(a)+len(b) > 0 {
			reached++
			select {
			case name := <-a:
				if lower := strings.ToLower(name); lower != "through.test" && lower != "exact.wild.test" {
					t.Errorf("input %d: the backend of through.test reads %q", i, name)
				}
			case name := <-b:
				if lower := strings.ToLower(name); !strings.HasSuffix(lower, ".wild.test") || lower == "exact.wild.test" || lower == ".wild.test" {
					t.Errorf("input %d: the backend of *.wild.test reads %q", i, name)
				}
			}
		}
	}
	if reached == 0 {
		t.Error("nothing has reached a backend")
	}
}

// A name in pieces leads to the same place.
func TestAFirstMessageInPiecesIsPassedThrough(t *testing.T) {
	found := make(chan string, 1)
	g := startStreams(t, authority.New(t, "streams"), map[string][]string{"a": {reader(t, found)}, "none": nil})
	message := firstBytes(t, "through.test")
	for _, sent := range [][]byte{message, inRecords(message, 100), inRecords(message, 1)} {
		for _, piece := range []int{1, 100, len(sent)} {
			g.sendBytes(t, sent, piece)
			want(t, "the name that the backend reads", <-found, "through.test")
		}
	}
}
