package redact

import (
	"bytes"
	"io"
	"strings"
)

const (
	// maxLine is how much of a line without an end is kept back until it ends.
	maxLine = 64 << 10
	// overlap is how much of such a line is kept back when the rest is written: what may be the beginning of a secret.
	overlap = 4 << 10
	// maxKey is how long a private key in PEM is at most. What begins like one does not hide all that follows.
	maxKey = 64 << 10
)

// Writer writes a stream without secrets, line by line. Close writes what is left, and does not close what is below.
type Writer struct {
	to       io.Writer
	redactor *Redactor
	line     []byte
	// key is how many bytes may still belong to a private key in PEM that has begun, 0 outside of one.
	key int
}

// NewWriter returns a writer.
func NewWriter(to io.Writer, redactor *Redactor) *Writer { return &Writer{to: to, redactor: redactor} }

// Write takes part of a stream.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			end = min(len(p), maxLine)
		}
		w.line = append(w.line, p[:end]...)
		p = p[end:]
		if w.line[len(w.line)-1] == '\n' {
			if err := w.flush(len(w.line)); err != nil {
				return 0, err
			}
		} else if len(w.line) > maxLine {
			if err := w.flush(w.cut()); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// Close writes the line that has no end yet.
func (w *Writer) Close() error { return w.flush(len(w.line)) }

// cut is where the line may be cut: some way before its end, and not within a secret.
func (w *Writer) cut() int {
	at := len(w.line) - overlap
	for _, p := range w.redactor.parts(string(w.line)) {
		if p.Start < at && p.End > at {
			at = p.End
		}
	}
	return at
}

// flush writes the first bytes of the line.
func (w *Writer) flush(length int) error {
	if length == 0 {
		return nil
	}
	text := string(w.line[:length])
	w.line = append(w.line[:0], w.line[length:]...)
	_, err := io.WriteString(w.to, w.clean(text))
	return err
}

// clean returns a line without secrets, and nothing of one that is within a private key.
func (w *Writer) clean(line string) string {
	if w.key > 0 {
		w.key -= len(line)
		_, rest, found := strings.Cut(line, "-----END ")
		if !found {
			return ""
		}
		w.key = 0
		if _, rest, found = strings.Cut(rest, "-----"); !found {
			return ""
		}
		line = rest
	}
	text, ended := strings.CutSuffix(line, "\n")
	if begin := strings.LastIndex(text,
		"-----BEGIN "); begin >= 0 && isPrivateKey(text[begin:]) && !strings.Contains(text[begin:], "-----END ") {
		w.key = maxKey
	}
	text = w.redactor.Clean(text)
	if ended {
		text += "\n"
	}
	return text
}
