package dump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"
)

// frame is a frame of any kind and length, which need not be that of the body.
func frame(kind byte, length uint32, body string) string {
	header := [headerLength]byte{kind}
	binary.BigEndian.PutUint32(header[1:], length)
	return string(header[:]) + body
}

func data(body string) string { return frame(kindData, uint32(len(body)), body) }

func ending(how how, code int32, count uint64, text string) string {
	var b bytes.Buffer
	_ = writeEnd(&b, end{how: how, code: code, count: count, text: text})
	return b.String()
}

// Only a whole stream that says itself that all is well is complete. All else is a failure, and says why.
func TestWhatIsComplete(t *testing.T) {
	good := ending(exited, 0, 6, "")
	tests := map[string]struct {
		bytes    string
		complete bool
		lost     bool
		says     string
	}{
		"an output":                       {data("abc") + data("def") + good, true, false, ""},
		"an output with a last word":      {data("abcdef") + ending(exited, 0, 6, "done"), true, false, ""},
		"no output":                       {ending(exited, 0, 0, ""), true, false, ""},
		"nothing":                         {"", false, true, "cut off"},
		"an output without an end":        {data("abcdef"), false, true, "cut off"},
		"half a header":                   {data("abcdef") + "d\x00\x00", false, true, "cut off"},
		"half a frame":                    {frame(kindData, 6, "abc"), false, true, "cut off"},
		"half an end":                     {data("abcdef") + good[:len(good)-1], false, true, "cut off"},
		"an end without its text":         {data("abcdef") + frame(kindEnd, endLength+5, good[headerLength:]), false, true, "cut off"},
		"exit code 1 after all":           {data("abcdef") + ending(exited, 1, 6, "disk full\n"), false, false, "the command ended with exit code 1: disk full"},
		"exit code 1 after nothing":       {ending(exited, 1, 0, ""), false, false, "exit code 1"},
		"exit code 256":                   {data("abcdef") + ending(exited, 256, 6, ""), false, false, "exit code 256"},
		"exit code -1":                    {data("abcdef") + ending(exited, -1, 6, ""), false, false, "exit code -1"},
		"a signal":                        {data("abcdef") + ending(signaled, 9, 6, ""), false, false, "signal 9 (killed)"},
		"the signal 0":                    {data("abcdef") + ending(signaled, 0, 6, ""), false, false, "signal 0"},
		"a signal that there is not":      {data("abcdef") + ending(signaled, math.MinInt32, 6, ""), false, false, "signal -2147483648"},
		"not started":                     {ending(unstarted, 127, 0, "no such file"), false, false, "could not be started (exit code 127): no such file"},
		"not started, with code 0":        {ending(unstarted, 0, 0, ""), false, false, "could not be started"},
		"held by a child":                 {data("abcdef") + ending(held, 0, 6, ""), false, false, "left a process behind"},
		"an unknown end":                  {data("abcdef") + ending(0, 0, 6, ""), false, false, "an end of kind 0"},
		"another unknown end":             {data("abcdef") + ending(255, 0, 6, ""), false, false, "an end of kind 255"},
		"fewer bytes than counted":        {data("abc") + good, false, false, "3 bytes came of 6"},
		"more bytes than counted":         {data("abcdefg") + good, false, false, "7 bytes came of 6"},
		"a count that wraps":              {data("abcdef") + ending(exited, 0, math.MaxUint64, ""), false, false, "came of"},
		"two ends":                        {data("abcdef") + good + good, false, false, "more after the last frame"},
		"a byte after the end":            {data("abcdef") + good + "x", false, false, "more after the last frame"},
		"output after the end":            {data("abc") + ending(exited, 0, 3, "") + data("def"), false, false, "more after the last frame"},
		"a failure and then success":      {data("abcdef") + ending(exited, 1, 6, "") + good, false, false, "exit code 1"},
		"an empty frame":                  {data("abc") + data("") + data("def") + good, false, false, "a frame of kind 100 and length 0"},
		"a frame that is too long":        {frame(kindData, maxData+1, strings.Repeat("x", maxData+1)), false, false, "length 262145"},
		"a huge frame":                    {frame(kindData, math.MaxUint32, "x"), false, false, "length 4294967295"},
		"an end that is too short":        {data("abcdef") + frame(kindEnd, endLength-1, good[headerLength:]), false, false, "length 12"},
		"an end that is too long":         {data("abcdef") + frame(kindEnd, endLength+maxText+1, good[headerLength:]+strings.Repeat("x", maxText+1)), false, false, "a frame of kind 101"},
		"a huge end":                      {data("abcdef") + frame(kindEnd, math.MaxUint32, good[headerLength:]), false, false, "length 4294967295"},
		"an unknown kind":                 {data("abc") + frame('x', 1, "x") + data("def") + good, false, false, "a frame of kind 120"},
		"no frames":                       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", false, false, "a frame of kind 71"},
		"the greeting once more":          {hello + data("abcdef") + good, false, false, "a frame of kind"},
		"an end in the middle of a frame": {frame(kindData, 6+uint32(len(good)), "abcdef"+good), false, true, "cut off"},
	}
	for name, tc := range tests {
		for how, from := range map[string]func(io.Reader) io.Reader{
			"": func(r io.Reader) io.Reader { return r }, ", byte by byte": iotest.OneByteReader, ", with the error beside the data": iotest.DataErrReader,
		} {
			t.Run(name+how, func(t *testing.T) {
				r := &reader{from: from(strings.NewReader(tc.bytes))}
				_, err := io.Copy(io.Discard, r)
				complete := r.Complete()
				if (err == nil && complete == nil) != tc.complete {
					t.Fatalf("got %v, Complete says %v, want complete %v", err, complete, tc.complete)
				}
				if tc.complete {
					return
				}
				var failure *Failure
				if !errors.As(err, &failure) || failure.Lost != tc.lost || !strings.Contains(failure.Message, tc.says) {
					t.Errorf("got %+v, want lost %v and %q", failure, tc.lost, tc.says)
				}
				if complete == nil {
					t.Error("it is complete although reading it failed")
				}
			})
		}
	}
}

func TestNothingIsCompleteBeforeItIsRead(t *testing.T) {
	r := &reader{from: strings.NewReader(data("abcdef") + ending(exited, 0, 6, ""))}
	for range 3 {
		if r.Complete() == nil {
			t.Fatal("complete before its end")
		}
		if _, err := io.ReadFull(r, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
	}
	if r.Complete() == nil {
		t.Fatal("complete before the last frame")
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || r.Complete() != nil {
		t.Errorf("got %v, Complete says %v", err, r.Complete())
	}
}

// A connection that stays open after the last frame, and is then ended by the limit of time, is not a complete one.
func TestAConnectionThatStaysOpenIsNotComplete(t *testing.T) {
	called := false
	r := &reader{
		from: io.MultiReader(strings.NewReader(data("abcdef")+ending(exited, 0, 6, "")), iotest.ErrReader(errors.New("use of closed network connection"))),
		last: func() { called = true },
	}
	_, err := io.Copy(io.Discard, r)
	var failure *Failure
	if !errors.As(err, &failure) || failure.Lost || !called || r.Complete() == nil {
		t.Errorf("got %v, limited %v", err, called)
	}
}

// modelComplete says in another way what is complete: it takes the whole stream and undoes it from its end.
func modelComplete(stream []byte) (output []byte, complete bool) {
	for len(stream) >= headerLength {
		length := int(binary.BigEndian.Uint32(stream[1:headerLength]))
		if length > len(stream)-headerLength || length == 0 {
			return nil, false
		}
		body := stream[headerLength : headerLength+length]
		rest := stream[headerLength+length:]
		if stream[0] == 'e' {
			// how 1, code 0, the count, any text
			wanted := append([]byte{1, 0, 0, 0, 0}, binary.BigEndian.AppendUint64(nil, uint64(len(output)))...)
			return output, len(rest) == 0 && bytes.HasPrefix(body, wanted) && length <= 13+2048
		}
		if stream[0] != 'd' || length > 256<<10 {
			return nil, false
		}
		output = append(output, body...)
		stream = rest
	}
	return nil, false
}

// Whatever comes, the reader and the model agree, and what is said of a failure fits into a status.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", data("abc") + ending(exited, 0, 3, ""), data("a") + data("bc") + ending(exited, 0, 3, "x"), ending(exited, 0, 0, ""),
		data("abc") + ending(exited, 1, 3, "no\x1b[31m space\nleft"), data("abc") + ending(signaled, 9, 3, ""), frame(kindData, math.MaxUint32, "x"),
		data("abc") + ending(exited, 0, 3, "") + "x", ending(unstarted, 127, 0, "\xff\u202e"),
	} {
		f.Add([]byte(seed), uint8(1))
		f.Add([]byte(seed), uint8(200))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		r := &reader{from: bytes.NewReader(stream)}
		var got []byte
		buffer := make([]byte, int(size)+1)
		var err error
		for err == nil {
			var n int
			n, err = r.Read(buffer)
			got = append(got, buffer[:n]...)
		}
		want, complete := modelComplete(stream)
		if errors.Is(err, io.EOF) != complete || (r.Complete() == nil) != complete {
			t.Fatalf("got %v, Complete says %v, the model %v", err, r.Complete(), complete)
		}
		if complete {
			if !bytes.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			return
		}
		var failure *Failure
		if !errors.As(err, &failure) {
			t.Fatalf("got %T %v", err, err)
		}
		checkMessage(t, failure.Message)
	})
}

func checkMessage(t *testing.T, message string) {
	t.Helper()
	if len(message) > maxQuoted+200 || !utf8.ValidString(message) || strings.ContainsFunc(message, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("the message has %d bytes: %q", len(message), message)
	}
}

func TestWhatIsQuotedIsOneLineThatPrints(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"\n\n":                                "",
		"one\ntwo\r\n\r\nthree\n":             "one / two / three",
		"a\tb   c":                            "a b c",
		"\x1b[31mred\x1b[0m":                  "[31mred [0m",
		"a\x00b\x07c":                         "a b c",
		"right\u202eleft\u200b":               "right left",
		"\xff\xfe":                            "?",
		"über 文":                              "über 文",
		strings.Repeat("x", 50) + "\nthe end": "...xxxxxxxxxxxxxxxxxxx / the end",
		strings.Repeat("ü", 50):               "..." + strings.Repeat("ü", 14),
	} {
		if got := printable(text, 32); got != want || len(got) > 32 {
			t.Errorf("%q: got %q (%d bytes), want %q", text, got, len(got), want)
		}
	}
}

func TestNoValueOfAVariableIsQuoted(t *testing.T) {
	environment := []string{"PGPASSWORD=canary-secret", "URL=postgres://shop:canary-secret@db/shop", "SHORT=abc", "EMPTY=", "odd", "LINES=two\nlines of it"}
	text := "connect to postgres://shop:canary-secret@db/shop: wrong password canary-secret for abc, two\nlines of it"
	want := "connect to $URL: wrong password $PGPASSWORD for abc, $LINES"
	if got := secretsOf(environment).Clean(text); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheEndOfALogIsKept(t *testing.T) {
	k := &tail{limit: 10}
	for _, part := range []string{"", "abc", "defghij", "k", strings.Repeat("x", 100) + "0123456789", "ab"} {
		if n, err := k.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}
	if got := string(k.bytes); got != "23456789ab" {
		t.Errorf("got %q", got)
	}
}
