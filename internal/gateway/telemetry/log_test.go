package telemetry

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// halfWriter writes only half of what it gets.
type halfWriter struct{ bytes.Buffer }

func (w *halfWriter) Write(p []byte) (int, error) {
	n, _ := w.Buffer.Write(p[:len(p)/2])
	return n, errors.New("full")
}

func TestLinesThatAreLostAreCounted(t *testing.T) {
	lost := 0
	l := NewLog(&halfWriter{}, "", func(lines int) { lost += lines })
	l.pending = []byte("one\ntwo\nthree\nfour\n")
	if err := l.Flush(); err == nil {
		t.Error("no error")
	}
	if lost != 2 {
		t.Errorf("%d lines are lost", lost)
	}
}

// Lines that nobody writes take a bounded memory. All others are dropped and counted.
func TestLinesThatWaitAreBounded(t *testing.T) {
	dropped := 0
	l := NewLog(&bytes.Buffer{}, "", func(lines int) { dropped += lines })
	const lines = 400
	for range lines {
		l.Write(&Line{Path: "/" + strings.Repeat("x", 8<<10)}, 100)
	}
	if len(l.pending) > maxLogPending || cap(l.pending) > 3*maxLogPending {
		t.Errorf("%d bytes of lines are kept in %d", len(l.pending), cap(l.pending))
	}
	if kept := bytes.Count(l.pending, []byte("\n")); kept == 0 || kept+dropped != lines {
		t.Errorf("%d lines are kept, and %d dropped", kept, dropped)
	}
}

// The access log is one for all clients. A line that panics must not keep it.
func TestALineThatPanicsIsNotLogged(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(&out, "", nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		l.append(func(b []byte) []byte { _ = append(b, "half a line"...); panic("a defect") })
	}()
	l.append(func(b []byte) []byte { return append(b, "a line\n"...) })
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "a line\n" {
		t.Errorf("the log has %q", got)
	}
}

func TestAShareOfTheLinesIsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		percent uint32
		always  bool
		least   int
		most    int
	}{
		"all":                      {100, false, 1000, 1000},
		"none":                     {0, false, 0, 0},
		"none of the failures":     {0, true, 0, 0},
		"failures always":          {1, true, 1000, 1000},
		"a half, which is a guess": {50, false, 300, 700},
	} {
		t.Run(name, func(t *testing.T) {
			written := 0
			for range 1000 {
				if isSampled(tc.percent, tc.always) {
					written++
				}
			}
			if written < tc.least || written > tc.most {
				t.Errorf("%d of 1000", written)
			}
		})
	}
}
