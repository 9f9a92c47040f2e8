package upstream

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// wire is a connection that only reads.
type wire struct {
	net.Conn
	scripted
}

func (w *wire) Read(p []byte) (int, error) { return w.scripted.Read(p) }

// ends are the places in a stream of TLS records where one ends.
func ends(stream []byte) map[int]bool {
	list := map[int]bool{0: true}
	for at := 0; at+recordHeader <= len(stream); {
		at += recordHeader + int(binary.BigEndian.Uint16(stream[at+3:]))
		list[at] = true
	}
	return list
}

// FuzzRecords reads any bytes of a backend, in any pieces. TLS gets the same bytes as without records. No read goes beyond the end
// of a record, and pending is true wherever a record is not complete or bytes wait that nobody has asked for.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("\x17\x03\x03\x00\x02ab\x17\x03\x03\x00\x00\x15\x03\x03\x00\x01c"), uint8(3), uint16(2))
	f.Add([]byte("\x17\x03\x03\xff\xffshort"), uint8(200), uint16(9000))
	f.Add([]byte("\x17\x03"), uint8(1), uint16(1))
	f.Add(bytes.Repeat([]byte("\x17\x03\x03\x00\x10sixteen bytes..."), 300), uint8(255), uint16(5))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8, size uint16) {
		end := ends(stream)
		r := newRecords(&wire{scripted: scripted{data: stream, size: int(piece) + 1}})
		into := make([]byte, int(size)+1)
		var got []byte
		for {
			n, err := r.Read(into)
			for i := len(got) + 1; i < len(got)+n; i++ {
				if end[i] {
					t.Fatalf("a read of %d bytes at %d goes beyond the end of a record at %d", n, len(got), i)
				}
			}
			got = append(got, into[:n]...)
			if !end[len(got)] && len(got) < len(stream) && err == nil && !r.pending() {
				t.Fatalf("at %d a record is not complete, and nothing is pending", len(got))
			}
			if err == io.EOF { //nolint:errorlint // it is returned as it is
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		// What is less than a header at the end is no record.
		if !bytes.HasPrefix(stream, got) || len(stream)-len(got) >= recordHeader {
			t.Fatalf("%d of %d bytes arrive", len(got), len(stream))
		}
		if len(got) < len(stream) && !r.pending() {
			t.Fatal("a part of a header has come, and nothing is pending")
		}
	})
}
