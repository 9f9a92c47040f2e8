package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// errDamaged says that bytes from disk are not what was written. Who reads them wraps it in an Error of the kind Corrupt.
var errDamaged = errors.New("the stored bytes are damaged")

// errBadRow is errDamaged of a whole row: it is not only the content of one object that cannot be read.
var errBadRow = fmt.Errorf("%w: a row has what its table cannot have", errDamaged)

// The first byte of a payload is its version. Another one is refused, not guessed. In the second, the time follows at which the object
// was made.
const (
	payloadVersion      = 1
	payloadWithCreation = 2
)

// encodePayload returns what a record holds beside the columns of its row. All numbers are varints and all texts have their
// length before them: shorter than JSON, and any bytes can stand in a value.
func encodePayload(r *change.Record) []byte {
	b := make([]byte, 0, 256)
	if r.ObjectCreated.IsZero() {
		b = append(b, payloadVersion)
	} else {
		b = binary.AppendVarint(append(b, payloadWithCreation), r.ObjectCreated.Unix())
	}
	b = binary.AppendVarint(b, r.Generation)
	b = appendText(b, r.Actor.Operation)
	b = appendText(b, r.Actor.Subresource)
	b = appendText(b, string(r.Actor.Confidence))
	b = appendText(b, r.Actor.Source)
	b = binary.AppendUvarint(b, uint64(len(r.Actor.Others)))
	for _, other := range r.Actor.Others {
		b = appendText(b, other)
	}
	b = binary.AppendVarint(b, r.Folded)
	b = binary.AppendVarint(b, r.Redacted)
	b = appendText(b, r.Reason)
	b = appendTime(b, r.Since)
	b = binary.AppendUvarint(b, uint64(len(r.Fields)))
	for i := range r.Fields {
		f := &r.Fields[i]
		b = appendText(b, f.Path)
		b = appendText(b, string(f.Op))
		b = appendValue(b, f.Old)
		b = appendValue(b, f.New)
	}
	return b
}

// decodePayload fills in what encodePayload wrote. Any bytes are safe to give: the work is bounded by their number.
func decodePayload(data []byte, r *change.Record) error {
	d := decoder{rest: data}
	switch d.byte() {
	case payloadVersion:
	case payloadWithCreation:
		r.ObjectCreated = time.Unix(d.varint(), 0).UTC()
	default:
		return errDamaged
	}
	r.Generation = d.varint()
	r.Actor.Operation = d.text()
	r.Actor.Subresource = d.text()
	r.Actor.Confidence = change.Confidence(d.text())
	r.Actor.Source = d.text()
	for range d.count(1) {
		r.Actor.Others = append(r.Actor.Others, d.text())
	}
	r.Folded = d.varint()
	r.Redacted = d.varint()
	r.Reason = d.text()
	r.Since = d.time()
	if n := d.count(4); n > 0 {
		r.Fields = make([]change.Field, 0, n)
		for range n {
			r.Fields = append(r.Fields, change.Field{Path: d.text(), Op: change.Op(d.text()), Old: d.value(), New: d.value()})
		}
	}
	if d.damaged || len(d.rest) != 0 {
		return errDamaged
	}
	return nil
}

func appendText(b []byte, text string) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// appendValue keeps no value (nil) and an empty one apart.
func appendValue(b, value []byte) []byte {
	if value == nil {
		return binary.AppendUvarint(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(value))+1)
	return append(b, value...)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), t.UnixNano())
}

// decoder reads from bytes that may be damaged. After the first fault everything it returns is empty.
type decoder struct {
	rest    []byte
	damaged bool
}

func (d *decoder) fail() {
	d.damaged = true
	d.rest = nil
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads how many items follow, each of size bytes at least: a number that cannot be true allocates nothing.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.rest)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) text() string { return string(d.bytes(d.uvarint())) }

func (d *decoder) value() []byte {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	return append([]byte{}, d.bytes(n-1)...)
}

func (d *decoder) time() time.Time {
	switch d.byte() {
	case 0:
		return time.Time{}
	case 1:
		return time.Unix(0, d.varint()).UTC()
	default:
		d.fail()
		return time.Time{}
	}
}
