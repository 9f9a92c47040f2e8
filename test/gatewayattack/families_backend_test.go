package gatewayattack

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// Backends over HTTP/2 that do not behave: RFC 9113, 8. Each answer is for a client of HTTP/1.1 that keeps its connection,
// and for one of HTTP/2.

// fate is what has to become of an answer.
type fate int

const (
	// refused: the client gets 502 instead.
	refused fate = iota
	// cutShort: it is not whole, and must not look so.
	cutShort
	// tooLong: the client gets what was declared, and nothing more.
	tooLong
	// harmless: the client gets it.
	harmless
	// eitherWay: it may be refused or not. What the client gets must be an answer all the same.
	eitherWay
)

// scripted is an answer over HTTP/2 by its name.
type scripted struct {
	name    string
	fate    fate
	replies []reply
	// method is that of the request. "": GET.
	method string
	// mends: the connection is as good as before, though the answer was refused: it broke a stream in a way that HTTP/2 has for it.
	mends bool
	// unprocessed: the backend says that it has not looked at the request, which may come again.
	unprocessed bool
	// forVictim: it is meant for the next request as well, which may be on its way already. A backend may answer that as it likes.
	forVictim bool
}

// attacks2 are the answers for both kinds of clients.
func attacks2(family string, answers []scripted) []*attack {
	var all []*attack
	for _, s := range answers {
		method := s.method
		if method == "" {
			method = "GET"
		}
		a := attack{family: family, name: s.name, head: method == "HEAD", recorderOnly: true, unprocessed: s.unprocessed, noVictim: s.forVictim, cut: s.fate == cutShort, behind: behaviour{replies: &s.replies}}
		switch s.fate {
		case refused:
			a.gets, a.spoils = 502, !s.mends
		case tooLong:
			a.spoils = true
		case harmless:
			a.gets = 200
		case cutShort, eitherWay:
		}
		h1, h2 := a, a
		h1.sends, h1.h1 = "ab", []step{{send: method + " /open/{a} HTTP/1.1\r\n" + host + "\r\n" + strings.Replace(afterwards, "GET", method, 1)}}
		h2.name, h2.sends, h2.h2 = s.name+", to a client of HTTP/2", "a", []frame{{stream: 1, fields: head2("/open/{a}", "", method), end: true}}
		all = append(all, &h1, &h2)
	}
	return all
}

// success is the head of an answer with 200 and more fields.
func success(fields ...string) []string { return append([]string{":status", "200"}, fields...) }

// smuggledAnswer is what a backend would like somebody else to get.
const smuggledAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Split: {y}\r\n\r\nsplit"

// Lengths that are none, several, or not digits: the head of S1 and its kind.
func answerLengths() []*attack {
	const cl = "content-length"
	var all []scripted
	with := func(name string, fate fate, fields ...string) {
		all = append(all, scripted{name: name, fate: fate, replies: []reply{{fields: success(fields...), data: "ok", end: true}}})
	}
	withMore := func(name string, fate fate, fields ...string) {
		all = append(all, scripted{name: name + ", and more of a body", fate: fate, replies: []reply{
			{fields: success(fields...), data: "ok", pause: 20 * time.Millisecond}, {data: smuggledAnswer, end: true},
		}})
	}
	withMore("two that differ", refused, cl, "2", cl, "30")
	withMore("two that are the same", tooLong, cl, "2", cl, "2")
	withMore("plus", refused, cl, "+2")
	withMore("none and two", refused, cl, "", cl, "2")
	withMore("a list that differs", refused, cl, "2, 30")
	with("two that differ", refused, cl, "2", cl, "30")
	with("two that differ, the long one first", refused, cl, "30", cl, "2")
	with("two that differ, apart", refused, cl, "97", "x", "y", cl, "2")
	with("three, one of which differs", refused, cl, "2", cl, "2", cl, "3")
	with("two that are the same", eitherWay, cl, "2", cl, "2")
	with("a list", eitherWay, cl, "2, 2")
	for _, value := range []string{
		"2, 30", "30,2", "2,", ",2", "2,,2", "2;2", "+2", "-2", "-0", "+0", "0x2", "0b10", "2.0", "2e0", "1_0", "0 2", "two", "\"2\"", "", "2\u00a0",
		"00000000000000000002", "9223372036854775808", "18446744073709551618", "99999999999999999999", "\uff12", "2abc", "abc2", "2/2", "2 ; 2", "NaN", "Infinity",
	} {
		with("the value "+value, refused, cl, value)
	}
	with("digits and one that is empty", refused, cl, "2", cl, "")
	with("an empty one and digits", refused, cl, "", cl, "2")
	with("digits and one with a plus", refused, cl, "2", cl, "+2")
	with("zeros before it", eitherWay, cl, "002")
	with("a name in upper case", refused, "Content-Length", "2")
	with("a name in upper case beside it", refused, cl, "2", "Content-Length", "30")
	with("chunks beside it", refused, cl, "2", "transfer-encoding", "chunked")
	return attacks2("lengths of answers, HTTP/2 backend", append(all, theAnswerOfAnother))
}

// theAnswerOfAnother is that of S1: a proxy that takes the last length reads what comes late as the answer to somebody else.
var theAnswerOfAnother = scripted{name: "two lengths, and an answer of HTTP/1.1 later", fate: refused, replies: []reply{
	{fields: success("content-length", "65", "content-length", "2"), data: "ok", pause: time.Second}, {data: smuggledAnswer, end: true},
}}

// Bodies that are not what their length says, and ends of streams.
func answerBodies() []*attack {
	const cl = "content-length"
	rst := func(code http2.ErrCode) func(f *http2.Framer, stream uint32) error {
		return func(f *http2.Framer, stream uint32) error { return f.WriteRSTStream(stream, code) }
	}
	short := reply{fields: success(cl, "50"), data: "short"}
	unframed := reply{fields: success(), data: "some of it"}
	all := []scripted{
		{name: "shorter than its length", fate: cutShort, replies: []reply{{fields: success(cl, "50"), data: "short", end: true}}},
		{name: "shorter, the end in a frame of its own", fate: cutShort, replies: []reply{short, {end: true}}},
		{name: "shorter, the end in trailers", fate: cutShort, replies: []reply{short, {fields: []string{"x", "y"}, end: true}}},
		{name: "a length, and the end with the head", fate: refused, replies: []reply{{fields: success(cl, "5"), end: true}}},
		{name: "a length, and the end without a byte", fate: cutShort, replies: []reply{{fields: success(cl, "5"), pause: 20 * time.Millisecond}, {end: true}}},
		{name: "longer than its length", fate: tooLong, replies: []reply{{fields: success(cl, "2"), data: "ok" + smuggledAnswer, end: true}}},
		{name: "longer, in a second frame", fate: tooLong, replies: []reply{{fields: success(cl, "2"), data: "ok"}, {data: smuggledAnswer, end: true}}},
		{name: "longer, later", fate: tooLong, replies: []reply{{fields: success(cl, "2"), data: "ok", pause: 50 * time.Millisecond}, {data: smuggledAnswer, end: true}}},
		{name: "longer by one byte", fate: tooLong, replies: []reply{{fields: success(cl, "2"), data: "ok"}, {data: "\n", end: true}}},
		{name: "a length of 0 and a body", fate: tooLong, replies: []reply{{fields: success(cl, "0"), data: smuggledAnswer, end: true}}},
		{name: "a length of 0 and a body later", fate: tooLong, replies: []reply{{fields: success(cl, "0"), pause: 50 * time.Millisecond}, {data: smuggledAnswer, end: true}}},
		{name: "no end after the length", fate: eitherWay, replies: []reply{{fields: success(cl, "2"), data: "ok", pause: 300 * time.Millisecond}}},
		{name: "no end without a length", fate: cutShort, replies: []reply{{fields: success(), data: "ok", pause: 300 * time.Millisecond}}},
		{name: "reset before the head", fate: refused, mends: true, replies: []reply{{raw: rst(http2.ErrCodeInternal)}}},
		{name: "reset after the head", fate: cutShort, replies: []reply{{fields: success(cl, "5"), pause: 20 * time.Millisecond}, {raw: rst(http2.ErrCodeInternal)}}},
		{name: "reset in the body", fate: cutShort, replies: []reply{short, {raw: rst(http2.ErrCodeCancel)}}},
		{name: "reset in a body without a length", fate: cutShort, replies: []reply{unframed, {raw: rst(http2.ErrCodeCancel)}}},
		{name: "reset without an error in the body", fate: cutShort, replies: []reply{short, {raw: rst(http2.ErrCodeNo)}}},
		{name: "reset without an error in a body without a length", fate: cutShort, replies: []reply{unframed, {raw: rst(http2.ErrCodeNo)}}},
		{name: "reset without an error after the end", fate: harmless, replies: []reply{{fields: success(cl, "5"), data: "body\n", end: true}, {raw: rst(http2.ErrCodeNo)}}},
		{name: "the connection ends in the body", fate: cutShort, replies: []reply{{fields: success(cl, "50"), data: "short", close: true}}},
		{name: "the connection ends in a body without a length", fate: cutShort, replies: []reply{{fields: success(), data: "some of it", close: true}}},
		{name: "many empty frames", fate: eitherWay, replies: []reply{{fields: success(cl, "5")}, {raw: func(f *http2.Framer, stream uint32) error { return f.WriteData(stream, false, nil) }, times: 5000}, {data: "body\n", end: true}}},
		{name: "frames with padding", fate: harmless, replies: []reply{{fields: success(cl, "5"), raw: func(f *http2.Framer, stream uint32) error {
			return f.WriteDataPadded(stream, true, []byte("body\n"), make([]byte, 200))
		}}}},
		{name: "a byte in each frame", fate: harmless, replies: []reply{{fields: success(cl, "500")}, {data: "x", times: 499}, {data: "\n", end: true}}},
		{name: "a body without a length", fate: harmless, replies: []reply{{fields: success(), data: "body\n", end: true}}},
		{name: "a body before the head", fate: refused, replies: []reply{{data: "ok"}, {fields: success(cl, "2"), data: "ok", end: true}}},
		{name: "a body after the end", fate: eitherWay, replies: []reply{{fields: success(cl, "5"), data: "body\n", end: true}, {data: smuggledAnswer}}},
		{name: "a head after the end", fate: eitherWay, replies: []reply{{fields: success(cl, "5"), data: "body\n", end: true}, {fields: success("x-split", "{y}"), data: "split", end: true}}},
	}
	return attacks2("bodies of answers, HTTP/2 backend", all)
}

// Fields after the body.
func answerTrailers() []*attack {
	var all []scripted
	after := func(name string, fate fate, fields ...string) {
		all = append(all,
			scripted{name: name, fate: fate, replies: []reply{{fields: success("trailer", "x"), data: "body\n"}, {fields: fields, end: true}}},
			scripted{name: name + ", after a length", fate: fate, replies: []reply{{fields: success("content-length", "5"), data: "body\n"}, {fields: fields, end: true}}},
			scripted{name: name + ", after no body", fate: fate, replies: []reply{{fields: success()}, {fields: fields, end: true}}})
	}
	for _, name := range neverTrailers {
		after("the trailer "+name, eitherWay, name, "5")
	}
	after("a status", eitherWay, ":status", "200")
	after("another pseudo field", eitherWay, ":path", "/x")
	after("a name in upper case", eitherWay, "X-A", "y")
	after("line ends in a value", eitherWay, "x", "y\r\nX-Split: {y}")
	after("line ends in a name", eitherWay, "x\r\nx-split", "{y}")
	after("a second head", eitherWay, success("x-split", "{y}")...)
	after("a good one", eitherWay, "x", "y")
	all = append(all,
		scripted{name: "two of them", fate: eitherWay, replies: []reply{{fields: success(), data: "body\n"}, {fields: []string{"x", "y"}}, {fields: []string{"x", "z"}, end: true}}},
		scripted{name: "without an end", fate: cutShort, replies: []reply{{fields: success(), data: "body\n"}, {fields: []string{"x", "y"}, pause: 100 * time.Millisecond}}},
		scripted{name: "a body after them", fate: eitherWay, replies: []reply{{fields: success(), data: "body\n"}, {fields: []string{"x", "y"}, end: true}, {data: smuggledAnswer, end: true}}},
		scripted{name: "too many", fate: eitherWay, replies: []reply{{fields: success(), data: "body\n"}, {fields: repeated("x", 20000), end: true}}})
	return attacks2("trailers of answers, HTTP/2 backend", all)
}

func repeated(name string, times int) []string {
	var fields []string
	for range times {
		fields = append(fields, name, "y")
	}
	return fields
}

// Heads with 1xx.
func answerHints() []*attack {
	good := reply{fields: success("content-length", "5"), data: "body\n", end: true}
	early := func(status string, fields ...string) reply {
		return reply{fields: append([]string{":status", status}, fields...)}
	}
	many := early("103", "link", "</x>; rel=preload")
	many.times = 5000
	ended, body := early("103"), early("103")
	ended.end, body.data = true, "ok"
	all := []scripted{
		{name: "5000 times 103", fate: eitherWay, replies: []reply{many, good}},
		{name: "103", fate: harmless, replies: []reply{early("103", "link", "</x>; rel=preload"), good}},
		{name: "100", fate: harmless, replies: []reply{early("100"), good}},
		{name: "103 with a length", fate: eitherWay, replies: []reply{early("103", "content-length", "5"), good}},
		{name: "100 with two lengths", fate: eitherWay, replies: []reply{early("100", "content-length", "5", "content-length", "6"), good}},
		{name: "103 with chunks", fate: eitherWay, replies: []reply{early("103", "transfer-encoding", "chunked"), good}},
		{name: "103 with line ends", fate: eitherWay, replies: []reply{early("103", "link", "x\r\nX-Split: {y}"), good}},
		{name: "103 with the end", fate: refused, replies: []reply{ended}},
		{name: "103 with a body", fate: refused, replies: []reply{body, good}},
		{name: "103 and nothing", fate: refused, replies: []reply{early("103"), {end: true}}},
		{name: "103 after the answer", fate: eitherWay, replies: []reply{{fields: success("content-length", "5"), data: "bo"}, early("103"), {data: "dy\n", end: true}}},
		{name: "101", fate: refused, replies: []reply{early("101", "connection", "upgrade", "upgrade", "x"), {data: smuggledAnswer, end: true}}},
		{name: "101 and an answer", fate: refused, replies: []reply{early("101"), good}},
		{name: "199", fate: eitherWay, replies: []reply{early("199", "x", "y"), good}},
	}
	return attacks2("heads before answers, HTTP/2 backend", all)
}

// Answers that have no body, whatever they say.
func answersWithoutBodies() []*attack {
	const cl = "content-length"
	with := func(status string, fields ...string) []string { return append([]string{":status", status}, fields...) }
	all := []scripted{
		{name: "HEAD with a length", method: "HEAD", fate: harmless, replies: []reply{{fields: success(cl, "90"), end: true}}},
		{name: "HEAD with a body", method: "HEAD", fate: eitherWay, replies: []reply{{fields: success(cl, "90"), data: smuggledAnswer, end: true}}},
		{name: "HEAD with a body later", method: "HEAD", fate: eitherWay, replies: []reply{{fields: success(cl, "90"), pause: 50 * time.Millisecond}, {data: smuggledAnswer, end: true}}},
		{name: "HEAD with a body and no length", method: "HEAD", fate: eitherWay, replies: []reply{{fields: success(), data: smuggledAnswer, end: true}}},
		{name: "HEAD with two lengths", method: "HEAD", fate: refused, replies: []reply{{fields: success(cl, "90", cl, "2"), end: true}}},
		{name: "HEAD with a plus", method: "HEAD", fate: refused, replies: []reply{{fields: success(cl, "+2"), end: true}}},
		{name: "HEAD with a list", method: "HEAD", fate: refused, replies: []reply{{fields: success(cl, "2, 30"), end: true}}},
		{name: "HEAD with an empty length", method: "HEAD", fate: refused, replies: []reply{{fields: success(cl, ""), end: true}}},
	}
	for _, status := range []string{"204", "304"} {
		all = append(all,
			scripted{name: status, fate: eitherWay, replies: []reply{{fields: with(status), end: true}}},
			scripted{name: status + " with a length", fate: eitherWay, replies: []reply{{fields: with(status, cl, "5"), end: true}}},
			scripted{name: status + " with a length of 0", fate: eitherWay, replies: []reply{{fields: with(status, cl, "0"), end: true}}},
			scripted{name: status + " with two lengths", fate: refused, replies: []reply{{fields: with(status, cl, "5", cl, "6"), end: true}}},
			scripted{name: status + " with a plus", fate: refused, replies: []reply{{fields: with(status, cl, "+0"), end: true}}},
			scripted{name: status + " with a body", fate: eitherWay, replies: []reply{{fields: with(status), data: smuggledAnswer, end: true}}},
			scripted{name: status + " with a length and a body", fate: eitherWay, replies: []reply{{fields: with(status, cl, "81"), data: smuggledAnswer, end: true}}},
			scripted{name: status + " with a body later", fate: eitherWay, replies: []reply{{fields: with(status), pause: 50 * time.Millisecond}, {data: smuggledAnswer, end: true}}},
			scripted{name: status + " with trailers", fate: eitherWay, replies: []reply{{fields: with(status)}, {fields: []string{"content-length", "5"}, end: true}}})
	}
	return attacks2("answers without a body, HTTP/2 backend", all)
}

// Statuses, pseudo fields, names and values that are none.
func answerHeads() []*attack {
	const cl = "content-length"
	var all []scripted
	with := func(name string, fate fate, fields ...string) {
		all = append(all, scripted{name: name, fate: fate, replies: []reply{{fields: fields, data: "body\n", end: true}}})
	}
	for _, status := range []string{"", "0", "20", "99", "099", "2000", "-200", "+200", "200 OK", "2OO", "0x200", " 200", "200 ", "two", "\uff12\uff10\uff10", "1000", "2147483848", "4294967496"} {
		with("the status "+status, refused, ":status", status, cl, "5")
	}
	with("no status", refused, cl, "5")
	with("nothing", refused)
	with("two statuses", refused, ":status", "200", ":status", "404", cl, "5")
	with("the same status twice", refused, ":status", "200", ":status", "200", cl, "5")
	with("a status after a field", refused, cl, "5", ":status", "200")
	with("a pseudo field that is none", refused, success(":x", "y", cl, "5")...)
	with("a pseudo field of requests", refused, success(":path", "/x", cl, "5")...)
	with("a method", refused, success(":method", "GET", cl, "5")...)
	for name, field := range map[string]string{
		"upper case": "X-A", "a space": "x a", "a colon": "x:a", "a colon at its end": "x:", "nothing": "", "line ends": "x\r\nx-split: {y}\r\nx", "a line end": "x\nx-split: {y}\nx", "NUL": "x\x00", "a control character": "x\x01", "DEL": "x\x7f", "a letter of two bytes": "x\u00e4", "a tab": "x\t",
	} {
		with("a name with "+name, refused, success(field, "{y}", cl, "5")...)
	}
	for name, value := range map[string]string{
		"line ends": "y\r\nX-Split: {y}", "a line end": "y\nX-Split: {y}", "CR": "y\rX-Split: {y}", "NUL": "y\x00", "a head of its own": "y\r\nContent-Length: 0\r\n\r\n" + smuggledAnswer, "a control character": "y\x01", "DEL": "y\x7f", "a line end at its end": "y\r\n",
	} {
		with("a value with "+name, refused, success("x", value, cl, "5")...)
	}
	with("a value with a space before it", eitherWay, success("x", " y", cl, "5")...)
	with("a value with a tab after it", eitherWay, success("x", "y\t", cl, "5")...)
	with("a value that is not ASCII", harmless, success("x", "\u00e4", cl, "5")...)
	for name, value := range map[string]string{"connection": "close", "keep-alive": "5", "proxy-connection": "keep-alive", "upgrade": "h2c", "transfer-encoding": "chunked", "te": "trailers"} {
		with("the field "+name, eitherWay, success(name, value, cl, "5")...)
		with("the field "+name+" without a length", eitherWay, success(name, value)...)
	}
	with("transfer-encoding gzip", eitherWay, success("transfer-encoding", "gzip, chunked")...)
	with("connection that names the length", eitherWay, success("connection", "content-length", cl, "5")...)
	with("a head that is too large", refused, success("x", strings.Repeat("y", 300000), cl, "5")...)
	with("a head with too many fields", refused, success(append(repeated("x", 20000), cl, "5")...)...)
	return attacks2("heads of answers, HTTP/2 backend", all)
}

// Frames that do not belong there.
func answerFrames() []*attack {
	good := reply{fields: success("content-length", "5"), data: "body\n", end: true}
	raw := func(write func(f *http2.Framer, stream uint32) error) reply { return reply{raw: write} }
	goAway := func(last func(stream uint32) uint32, code http2.ErrCode) reply {
		return raw(func(f *http2.Framer, stream uint32) error { return f.WriteGoAway(last(stream), code, nil) })
	}
	same := func(stream uint32) uint32 { return stream }
	none := func(uint32) uint32 { return 0 }
	half := reply{fields: success("content-length", "5"), data: "bo"}
	rest := reply{data: "dy\n", end: true}
	refuse := raw(func(f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
	})
	next := func(stream uint32) uint32 { return stream + 2 }
	all := []scripted{
		{name: "a refusal, for ever", fate: refused, mends: true, unprocessed: true, replies: []reply{refuse}},
		{name: "a refusal of a change, for ever", method: "POST", fate: refused, mends: true, unprocessed: true, replies: []reply{refuse}},
		{name: "a refusal after hints", fate: refused, mends: true, unprocessed: true, replies: []reply{{fields: []string{":status", "103", "link", "</x>"}}, refuse}},
		{name: "a refusal after the head", fate: cutShort, replies: []reply{{fields: success("content-length", "5"), pause: 20 * time.Millisecond}, refuse}},
		{name: "a refusal of a change after the head", method: "POST", fate: cutShort, replies: []reply{{fields: success("content-length", "5"), pause: 20 * time.Millisecond}, refuse}},
		{name: "a refusal in the body", fate: cutShort, replies: []reply{half, refuse}},
		{name: "a refusal after the answer", fate: eitherWay, replies: []reply{good, refuse}},
		{name: "a change, and the connection ends", method: "POST", fate: refused, replies: []reply{{close: true}}},
		{name: "a change, and GOAWAY without it, for ever", method: "POST", fate: refused, mends: true, unprocessed: true, replies: []reply{goAway(none, http2.ErrCodeNo), {close: true}}},
		{name: "a change, and GOAWAY with it", method: "POST", fate: refused, replies: []reply{goAway(same, http2.ErrCodeNo), {close: true}}},
		{name: "a change, and GOAWAY with later ones", method: "POST", fate: refused, replies: []reply{goAway(next, http2.ErrCodeNo), {close: true}}},
		{name: "GOAWAY that takes more back later", fate: eitherWay, unprocessed: true, replies: []reply{goAway(next, http2.ErrCodeNo), goAway(none, http2.ErrCodeNo), {close: true}}},
		{name: "GOAWAY that takes more in later", fate: eitherWay, unprocessed: true, replies: []reply{goAway(none, http2.ErrCodeNo), goAway(next, http2.ErrCodeNo), good}},
		{name: "GOAWAY without this stream in the body, and the rest", fate: eitherWay, replies: []reply{half, goAway(none, http2.ErrCodeNo), rest}},
		{name: "GOAWAY, and the answer goes on", fate: harmless, replies: []reply{half, goAway(same, http2.ErrCodeNo), rest}},
		{name: "GOAWAY in the body, and the connection ends", fate: cutShort, replies: []reply{half, goAway(same, http2.ErrCodeNo), {close: true}}},
		{name: "GOAWAY before the head", fate: eitherWay, replies: []reply{goAway(same, http2.ErrCodeNo), good}},
		{name: "GOAWAY without this stream", fate: eitherWay, unprocessed: true, replies: []reply{goAway(none, http2.ErrCodeNo), {close: true}}},
		{name: "GOAWAY with an error in the body", fate: cutShort, replies: []reply{half, goAway(none, http2.ErrCodeInternal), {close: true}}},
		{name: "PUSH_PROMISE", fate: refused, replies: []reply{raw(func(f *http2.Framer, stream uint32) error {
			return f.WritePushPromise(http2.PushPromiseParam{StreamID: stream, PromiseID: 2, BlockFragment: headBlock(head2("/open/{h}", "x")), EndHeaders: true})
		}), good}},
		{name: "PUSH_PROMISE in the body", fate: cutShort, replies: []reply{half, raw(func(f *http2.Framer, stream uint32) error {
			return f.WritePushPromise(http2.PushPromiseParam{StreamID: stream, PromiseID: 2, BlockFragment: headBlock(head2("/open/{h}", "x")), EndHeaders: true})
		}), rest}},
		{name: "an answer to the next stream", fate: eitherWay, forVictim: true, replies: []reply{good, raw(func(f *http2.Framer, stream uint32) error {
			return writeHead(f, stream+2, success("x-split", "hy000000y"), true)
		})}},
		{name: "an answer to a stream of its own", fate: eitherWay, replies: []reply{good, raw(func(f *http2.Framer, _ uint32) error {
			return writeHead(f, 2, success("x-split", "hy000000y"), true)
		})}},
		{name: "a head without its end", fate: refused, replies: []reply{raw(func(f *http2.Framer, stream uint32) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headBlock(success())})
		}), {data: "body\n", end: true}}},
		{name: "a head that cannot be decoded", fate: refused, replies: []reply{raw(func(f *http2.Framer, stream uint32) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		})}},
		{name: "CONTINUATION without a head", fate: refused, replies: []reply{raw(func(f *http2.Framer, stream uint32) error {
			return f.WriteContinuation(stream, true, headBlock(success()))
		})}},
		{name: "a frame of an unknown kind", fate: harmless, replies: []reply{raw(func(f *http2.Framer, stream uint32) error {
			return f.WriteRawFrame(0xbe, 0, stream, []byte("what"))
		}), good}},
		{name: "a frame that is too large", fate: refused, replies: []reply{raw(func(f *http2.Framer, stream uint32) error {
			return f.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, stream, make([]byte, 1<<21))
		})}},
		{name: "a window of 0 more", fate: eitherWay, replies: []reply{raw(func(f *http2.Framer, stream uint32) error { return f.WriteWindowUpdate(stream, 0) }), good}},
		{name: "a window beyond all bounds", fate: eitherWay, replies: []reply{{raw: func(f *http2.Framer, stream uint32) error { return f.WriteWindowUpdate(stream, 1<<31-1) }, times: 3}, good}},
		{name: "settings that are none", fate: eitherWay, replies: []reply{raw(func(f *http2.Framer, _ uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		}), good}},
		{name: "an answer of HTTP/1.1", fate: refused, replies: []reply{{plain: smuggledAnswer}}},
		{name: "an answer of HTTP/1.1 in the body", fate: cutShort, replies: []reply{half, {plain: smuggledAnswer}, rest}},
	}
	return attacks2("frames of answers, HTTP/2 backend", all)
}

// backendAnswers are the attacks of all families of answers over HTTP/2.
func backendAnswers() []*attack {
	return inOrder(slices.Concat(answerLengths(), answerBodies(), answerTrailers(), answerHints(), answersWithoutBodies(), answerHeads(), answerFrames()))
}
