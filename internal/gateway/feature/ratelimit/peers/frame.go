package peers

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

const (
	// maxRecords bounds the records of a frame.
	maxRecords = 256
	headBytes  = 3 // the kind and the number of records
	askBytes   = 16 + 8 + 8 + 4 + 8
	answerSize = 16 + 4 + 8 + 8
	helloBytes = 16
	maxFrame   = headBytes + maxRecords*askBytes
)

// The kinds of frames. A frame without records keeps the connection alive.
const (
	kindAsks    = 1
	kindAnswers = 2
)

var (
	errKind    = errors.New("a frame has another kind")
	errRecords = errors.New("a frame has too many records")
)

// instance identifies a running replica. Both sides say theirs first.
type instance [helloBytes]byte

// readFrame reads a frame of a kind into the buffer, which has room for the largest. It returns the records.
func readFrame(from io.Reader, buffer []byte, kind byte, size int) ([]byte, error) {
	head := buffer[:headBytes]
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err // the caller only closes
	}
	records := int(binary.BigEndian.Uint16(head[1:]))
	switch {
	case head[0] != kind:
		return nil, errKind
	case records > maxRecords:
		return nil, errRecords
	}
	body := buffer[headBytes : headBytes+records*size]
	_, err := io.ReadFull(from, body)
	return body, err // the caller only closes
}

// appendHead begins a frame.
func appendHead(to []byte, kind byte, records int) []byte {
	return binary.BigEndian.AppendUint16(append(to, kind), uint16(records))
}

func appendAsk(to []byte, ask *quota.Ask) []byte {
	to = append(to, ask.Key[:]...)
	to = binary.BigEndian.AppendUint64(to, uint64(ask.Limit.Interval))
	to = binary.BigEndian.AppendUint64(to, uint64(ask.Limit.Tolerance))
	to = binary.BigEndian.AppendUint32(to, ask.Want)
	return binary.BigEndian.AppendUint64(to, uint64(ask.Ahead))
}

func readAsk(from []byte) quota.Ask {
	return quota.Ask{
		Key:   quota.Key(from[:16]),
		Limit: quota.Limit{Interval: int64(binary.BigEndian.Uint64(from[16:])), Tolerance: int64(binary.BigEndian.Uint64(from[24:]))},
		Want:  binary.BigEndian.Uint32(from[32:]),
		Ahead: int64(binary.BigEndian.Uint64(from[36:])),
	}
}

func appendAnswer(to []byte, answer *quota.Answer) []byte {
	to = append(to, answer.Key[:]...)
	to = binary.BigEndian.AppendUint32(to, answer.Granted)
	to = binary.BigEndian.AppendUint64(to, uint64(answer.Wait))
	return binary.BigEndian.AppendUint64(to, uint64(answer.Ahead))
}

func readAnswer(from []byte) quota.Answer {
	return quota.Answer{
		Key:     quota.Key(from[:16]),
		Granted: binary.BigEndian.Uint32(from[16:]),
		Wait:    time.Duration(binary.BigEndian.Uint64(from[20:])),
		Ahead:   int64(binary.BigEndian.Uint64(from[28:])),
	}
}
