package dump

import (
	"encoding/binary"
	"io"
)

// hello is what each side says first. The receiver's means: run the command.
const hello = "slipway-dump 1\n"

// A frame is a byte that says of which kind it is, four bytes with the length of what follows, the most significant one first,
// and so many bytes.
const (
	headerLength = 5
	// kindData is a part of the output, 1 to maxData bytes.
	kindData byte = 'd'
	// kindEnd says how the command ended. It is the last frame.
	kindEnd byte = 'e'

	maxData = 256 << 10
	// endLength is the length of an end without its text: how, a code of four bytes, a count of eight.
	endLength = 13
	// maxText bounds the text of an end, in bytes.
	maxText = 2048
)

// how a command ended.
type how byte

const (
	// exited ended by itself. The code is its exit code.
	exited how = iota + 1
	// signaled was ended by a signal. The code is its number.
	signaled
	// unstarted could not be started. The code is what a shell makes of that: 126 or 127.
	unstarted
	// held ended by itself, with this exit code, and left a process behind that can still write to its output.
	held
)

// end is how a command ended.
type end struct {
	how  how
	code int32
	// count is how many bytes of output there were.
	count uint64
	// text is what the command had to say last.
	text string
}

// well reports whether the output is complete.
func (e end) well() bool { return e.how == exited && e.code == 0 }

// putHeader writes the header of a frame to the beginning of a buffer.
func putHeader(buffer []byte, kind byte, length int) {
	buffer[0] = kind
	binary.BigEndian.PutUint32(buffer[1:headerLength], uint32(length))
}

// writeEnd writes the last frame.
func writeEnd(w io.Writer, e end) error {
	if len(e.text) > maxText {
		e.text = e.text[:maxText]
	}
	frame := make([]byte, headerLength+endLength, headerLength+endLength+len(e.text))
	putHeader(frame, kindEnd, endLength+len(e.text))
	body := frame[headerLength:]
	body[0] = byte(e.how)
	binary.BigEndian.PutUint32(body[1:5], uint32(e.code))
	binary.BigEndian.PutUint64(body[5:endLength], e.count)
	_, err := w.Write(append(frame, e.text...))
	return err
}

// parseEnd reads what is in the last frame.
func parseEnd(body []byte) end {
	return end{
		how: how(body[0]), code: int32(binary.BigEndian.Uint32(body[1:5])), count: binary.BigEndian.Uint64(body[5:endLength]),
		text: string(body[endLength:]),
	}
}
