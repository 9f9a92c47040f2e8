package proxy

import (
	"encoding/binary"
	"net"
	"testing"
)

// trickle is a connection from which bytes come in pieces.
type trickle struct {
	net.Conn

	source
	piece int
}

func (c *trickle) Read(p []byte) (int, error) { return c.source.Read(p[:min(len(p), c.piece)]) }

// FuzzRecordsOfAClient reads any bytes of a client of TLS, in any pieces. TLS gets the same bytes, at least one with each read, and never
// more than up to the end of a record: what it has not got cannot tell it of the end of the client's side.
func FuzzRecordsOfAClient(f *testing.F) {
	f.Add([]byte("\x16\x03\x01\x00\x02ab\x17\x03\x03\x00\x00\x15\x03\x03\x00\x01c"), uint16(100), uint16(2))
	f.Add([]byte("\x17\x03\x03\xff\xffshort"), uint16(3), uint16(9000))
	f.Add([]byte("\x17\x03"), uint16(1), uint16(1))
	f.Add([]byte("\x17\x03\x03\x00\x00\x17\x03\x03\x00\x00\x17\x03\x03\x00\x01x"), uint16(50), uint16(4))
	f.Fuzz(func(t *testing.T, stream []byte, piece, size uint16) {
		const header = 5
		ends := map[int]bool{}
		for at := 0; at+header <= len(stream); {
			at += header + int(binary.BigEndian.Uint16(stream[at+3:]))
			ends[at] = true
		}
		conn := &clientConn{Conn: &trickle{source: source{left: stream}, piece: int(piece) + 1}, half: halfClose{secure: true}}
		into, got := make([]byte, int(size)+1), make([]byte, 0, len(stream))
		for {
			n, err := conn.fetch(into)
			if err != nil {
				break
			}
			if n == 0 {
				t.Fatal("a read brings nothing")
			}
			for at := len(got) + 1; at < len(got)+n; at++ {
				if ends[at] {
					t.Fatalf("a read of %d bytes at %d goes beyond the end of a record at %d", n, len(got), at)
				}
			}
			got = append(got, into[:n]...)
		}
		if string(got) != string(stream) {
			t.Fatalf("%d bytes have come of %d", len(got), len(stream))
		}
	})
}
