// Package generate makes objects out of the bytes that a fuzz test is given. Every input
// gives an object that can exist: a spec that the schema allows, a status that the cluster
// may report. A small change of the input is a small change of the object, so that a
// fuzzer finds its way.
package generate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Source hands out choices. When its bytes are used up, every choice is the first one.
type Source struct{ data []byte }

// From makes a source of bytes.
func From(data []byte) *Source { return &Source{data} }

// Seed gives a fuzz test inputs to start from, which ordinary test runs check too: none,
// and random ones of growing length, the same every time.
func Seed(f *testing.F, count int) {
	f.Helper()
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range count {
		data := make([]byte, 240*i/count)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
}

// Byte returns the next byte.
func (s *Source) Byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

// Below returns a number from 0 to n-1.
func (s *Source) Below(n int) int { return int(s.Byte()) % n }

// Maybe returns true or false.
func (s *Source) Maybe() bool { return s.Byte()%2 == 1 }

// Rest returns the bytes that are left.
func (s *Source) Rest() []byte { return s.data }

// Pick returns one of the choices.
func Pick[T any](s *Source, choices ...T) T { return choices[s.Below(len(choices))] }

// Optional returns nil or one of the choices.
func Optional[T any](s *Source, choices ...T) *T {
	if !s.Maybe() {
		return nil
	}
	choice := Pick(s, choices...)
	return &choice
}

// Text returns any text, often one that is easily mistaken for something else.
func (s *Source) Text() string {
	if s.Maybe() {
		return Pick(s, "", "info", " ", "a b", "line 1\nline 2", "$(HOME)", "100%", `"`, "ü", "\U0001f600", "a\u0085b", "a\u2028b",
			"\ufeff", "\x7f", "<nil>", "{}", "null", "0", "-")
	}
	n := min(s.Below(24), len(s.data))
	text := strings.ToValidUTF8(string(s.data[:n]), "?")
	s.data = s.data[n:]
	return text
}

// Word returns a name of letters and digits with a letter in front.
func (s *Source) Word() string {
	return fmt.Sprintf("%c%x", 'a'+rune(s.Below(26)), s.Byte())
}
