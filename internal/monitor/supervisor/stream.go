package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// stream reads JSON values from an answer, one after another. It holds one value at a time, so an answer may be as long as
// it likes. A value that is longer than a limit is read to its end, and its begin is kept.
//
// It finds where values end and does not check them: who uses a value does.
type stream struct {
	from   io.Reader
	buffer []byte
	// begin is where the value that is read begins, position is the next byte, and end is behind the last one.
	begin, position, end int
	failed               error
}

const (
	// firstBuffer is what a stream begins with. There are thousands of quiet ones.
	firstBuffer = 4 << 10
	// keptBuffer is how much a stream keeps for the next value.
	keptBuffer = 64 << 10
)

// errGarbage is an answer that is not what an API server sends.
var errGarbage = errors.New("the answer makes no sense")

func garbage(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", errGarbage, fmt.Sprintf(format, arguments...))
}

func newStream(from io.Reader) *stream { return &stream{from: from} }

// value returns the next value. It is valid until the next call. cut reports whether it is only the first limit bytes. The error
// is io.EOF when there is no value any more, and io.ErrUnexpectedEOF when the answer ends within one.
func (s *stream) value(limit int) (value []byte, cut bool, err error) {
	first, err := s.space()
	if err != nil {
		return nil, false, err
	}
	s.begin = s.position
	s.shrink()
	scan := scanner{}
	var head []byte
	for {
		done, err := s.scan(&scan, first)
		if err != nil {
			return nil, false, err
		}
		if head == nil && s.position-s.begin > limit {
			head = bytes.Clone(s.buffer[s.begin : s.begin+limit])
		}
		if head != nil {
			s.begin = s.position // what follows is not kept
		}
		if done {
			break
		}
	}
	if head != nil {
		return head, true, nil
	}
	return s.buffer[s.begin:s.position], false, nil
}

// scanner knows where in a value it is.
type scanner struct {
	depth   int
	text    bool
	escaped bool
}

// scan goes on through the value, to its end or to that of what has been read. first is its first byte.
func (s *stream) scan(scan *scanner, first byte) (done bool, err error) {
	if s.position == s.end {
		if err := s.fill(); err != nil {
			return false, unexpected(err)
		}
	}
	if first != '{' && first != '[' && first != '"' {
		return s.scanWord()
	}
	for s.position < s.end {
		c := s.buffer[s.position]
		s.position++
		if scan.step(c) {
			return true, nil
		}
	}
	return false, nil
}

// step takes one byte and reports whether the value ends with it.
func (scan *scanner) step(c byte) bool {
	if scan.text {
		switch {
		case scan.escaped:
			scan.escaped = false
		case c == '\\':
			scan.escaped = true
		case c == '"':
			scan.text = false
			return scan.depth == 0
		}
		return false
	}
	switch c {
	case '"':
		scan.text = true
	case '{', '[':
		scan.depth++
	case '}', ']':
		scan.depth--
		return scan.depth <= 0
	}
	return false
}

// scanWord goes on through a number, true, false or null.
func (s *stream) scanWord() (done bool, err error) {
	for s.position < s.end {
		switch s.buffer[s.position] {
		case ',', '}', ']', ':', ' ', '\t', '\r', '\n':
			if s.position == s.begin {
				return false, garbage("there is no value where one should be")
			}
			return true, nil
		}
		s.position++
	}
	return false, nil
}

// delimiter takes the next byte that is no space.
func (s *stream) delimiter() (byte, error) {
	c, err := s.space()
	if err != nil {
		return 0, unexpected(err)
	}
	s.position++
	return c, nil
}

// space goes to the next byte that is no space, and returns it.
func (s *stream) space() (byte, error) {
	for {
		for ; s.position < s.end; s.position++ {
			switch c := s.buffer[s.position]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, nil
			}
		}
		s.begin = s.position
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// fill reads more, behind what has been read and is still needed.
func (s *stream) fill() error {
	if s.failed != nil {
		return s.failed
	}
	if s.begin > 0 {
		s.end = copy(s.buffer, s.buffer[s.begin:s.end])
		s.position -= s.begin
		s.begin = 0
	}
	if s.end == len(s.buffer) {
		grown := make([]byte, max(firstBuffer, 2*len(s.buffer)))
		copy(grown, s.buffer[:s.end])
		s.buffer = grown
	}
	n, err := s.from.Read(s.buffer[s.end:])
	s.end += n
	if n > 0 {
		s.failed = err
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	s.failed = err
	return err
}

// shrink gives a large buffer back.
func (s *stream) shrink() {
	if len(s.buffer) <= keptBuffer || s.end-s.begin > firstBuffer {
		return
	}
	small := make([]byte, 2*firstBuffer)
	s.end = copy(small, s.buffer[s.begin:s.end])
	s.buffer, s.position, s.begin = small, s.position-s.begin, 0
}

// unexpected says that an answer ended where it should not.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
