package gatewayattack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Parts of requests.
const (
	host    = "Host: {host}\r\n"
	chunked = "Transfer-Encoding: chunked\r\n"
	// smuggled is a request that hides in another: nobody may see it as one.
	smuggled = "GET /open/{h} HTTP/1.1\r\nHost: {host}\r\n\r\n"
	// afterwards is one that follows on the same connection, and is as it should be.
	afterwards = "GET /open/{b} HTTP/1.1\r\nHost: {host}\r\n\r\n"
)

// allAttacks are the attacks of all families.
func allAttacks() []*attack {
	var all []*attack
	for _, family := range [][]*attack{
		lengthAndChunks(), codings(), lengths(), bodiesOfNoBody(), chunks(), versions(),
		earlyAnswers(), pauses(), expectations(), folds(), names(), controls(), requestLines(), methods(),
		upgrades(), trailers(), connections(), splits(), hosts(), serverNames(), addresses(), sessions(), paths(), expressions(),
		downgrades(), streamsOfBodies(), protocols(), compressions(), caches(), halfCloses(),
	} {
		all = append(all, family...)
	}
	return inOrder(all)
}

// inOrder sorts attacks by family and name: some tables are maps.
func inOrder(attacks []*attack) []*attack {
	slices.SortStableFunc(attacks, func(a, b *attack) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.name, b.name))
	})
	return attacks
}

// Content-Length beside Transfer-Encoding: RFC 9112, 6.1 and 6.3; PortSwigger's CL.TE and TE.CL.
func lengthAndChunks() []*attack {
	body := "0\r\n\r\n" + smuggled
	inChunk := "{size}\r\n" + smuggled + "\r\n0\r\n\r\n"
	var all []*attack
	for name, head := range map[string]string{
		"length first":                "Content-Length: {length}\r\n" + chunked,
		"chunks first":                chunked + "Content-Length: {length}\r\n",
		"with keep-alive":             "Connection: keep-alive\r\nContent-Length: {length}\r\n" + chunked,
		"with Connection naming both": "Connection: Content-Length, Transfer-Encoding\r\nContent-Length: {length}\r\n" + chunked,
		"with Connection naming TE":   "Connection: Transfer-Encoding\r\nContent-Length: {length}\r\n" + chunked,
		"in lower case":               "content-length: {length}\r\ntransfer-encoding: chunked\r\n",
	} {
		for _, version := range []string{"1.1", "1.0"} {
			all = append(all,
				request("CL.TE", name+", HTTP/"+version, "a", framed("POST /open/{a} HTTP/"+version+"\r\n"+host+head+"\r\n", body, 0)),
				request("TE.CL", name+", HTTP/"+version, "a", framed("POST /open/{a} HTTP/"+version+"\r\n"+host+head+"\r\n", inChunk, 4)),
				request("CL.TE", name+", a length too short, HTTP/"+version, "a", framed("POST /open/{a} HTTP/"+version+"\r\n"+host+head+"\r\n", body, 6)))
		}
	}
	return all
}

// framed puts a length into a head; 0 is that of the body, once it is known.
func framed(head, body string, length int) string {
	if length == 0 {
		return head + "{body}" + body
	}
	return strings.ReplaceAll(head, "{length}", fmt.Sprint(length)) + body
}

// Ways to write chunked that are none, or that not everybody understands: TE.TE.
func codings() []*attack {
	const te = "Transfer-Encoding"
	fields := map[string]string{
		"xchunked": te + ": xchunked\r\n", "chunkedx": te + ": chunkedx\r\n", "chunk": te + ": chunk\r\n", "identity": te + ": identity\r\n", "empty": te + ":\r\n",
		"vertical tab before": te + ": \x0bchunked\r\n", "vertical tab after": te + ": chunked\x0b\r\n", "form feed": te + ": \x0cchunked\r\n",
		"NBSP before": te + ": \xa0chunked\r\n", "NBSP after": te + ": chunked\xa0\r\n", "NEL": te + ": \x85chunked\r\n", "NUL": te + ": chunked\x00\r\n", "NUL inside": te + ": chun\x00ked\r\n",
		"quoted": te + ": \"chunked\"\r\n", "parameter": te + ": chunked;q=1\r\n", "parameter without value": te + ": chunked;\r\n", "comma after": te + ": chunked,\r\n", "comma before": te + ": ,chunked\r\n",
		"chunked, identity": te + ": chunked, identity\r\n", "identity, chunked": te + ": identity, chunked\r\n", "gzip, chunked": te + ": gzip, chunked\r\n", "chunked, gzip": te + ": chunked, gzip\r\n",
		"chunked, chunked": te + ": chunked, chunked\r\n", "twice": te + ": chunked\r\n" + te + ": chunked\r\n", "chunked and cow": te + ": chunked\r\n" + te + ": cow\r\n", "cow and chunked": te + ": cow\r\n" + te + ": chunked\r\n",
		"chunked and identity": te + ": chunked\r\n" + te + ": identity\r\n", "chunked and empty": te + ": chunked\r\n" + te + ":\r\n",
		"space before the colon": te + " : chunked\r\n", "tab before the colon": te + "\t: chunked\r\n", "vertical tab before the colon": te + "\x0b: chunked\r\n", "NUL before the colon": te + "\x00: chunked\r\n",
		"no colon": te + " chunked\r\n", "space before the name": "X: y\r\n " + te + ": chunked\r\n", "tab before the name": "X: y\r\n\t" + te + ": chunked\r\n", "vertical tab before the name": "\x0b" + te + ": chunked\r\n",
		"bare LF before": "X: y\n" + te + ": chunked\r\n", "bare CR before": "X: y\r" + te + ": chunked\r\n", "bare LF after": te + ": chunked\n", "bare CR after": te + ": chunked\r" + "X: y\r\n",
		"folded value": te + ":\r\n chunked\r\n", "folded name": te + "\r\n : chunked\r\n", "folded in the middle": te + ": chun\r\n ked\r\n", "quoted name": "\"" + te + "\": chunked\r\n",
		"tab in the value": te + ":\tchunked\r\n", "upper case": "TRANSFER-ENCODING: CHUNKED\r\n", "long s": "Tran\xc5\xbffer-Encoding: chunked\r\n", "Kelvin sign": te + ": chun\xe2\x84\xaaed\r\n",
		"very long": te + ": " + strings.Repeat("x,", 2000) + "chunked\r\n",
	}
	var all []*attack
	for name, field := range fields {
		sends := "a"
		if strings.HasSuffix(name, "before the name") && field[0] == 'X' { // where the gateway joins the lines, that is a value, and what follows a request and garbage
			sends = "ahg"
		}
		all = append(all,
			request("TE.TE", name+", read as chunks or by length", "a", framed("POST /open/{a} HTTP/1.1\r\n"+host+"Content-Length: {length}\r\n"+field+"\r\n", "0\r\n\r\n"+smuggled, 0)),
			request("TE.TE", name+", a chunk longer than the length", sends, framed("POST /open/{a} HTTP/1.1\r\n"+host+field+"Content-Length: 4\r\n\r\n", "{size}\r\n"+smuggled+"\r\n0\r\n\r\n", 4)),
			request("TE.TE", name+", in HTTP/1.0", "a", framed("POST /open/{a} HTTP/1.0\r\nConnection: keep-alive\r\n"+host+field+"\r\n", "0\r\n\r\n"+smuggled, 0)))
	}
	// By the standard the second one is a request; that nobody takes the field for another is up to the gateway.
	for _, name := range []string{"Transfer_Encoding", "X-Transfer-Encoding", "Transfer-Encoding_", "Transfer-Encodin"} {
		all = append(all, request("TE.TE", "look-alike "+name, "ab", "POST /open/{a} HTTP/1.1\r\n"+host+name+": chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"+afterwards))
	}
	return all
}

// Lengths that are none, several, or signed: RFC 9112, 6.3.
func lengths() []*attack {
	const cl = "Content-Length"
	var all []*attack
	for name, fields := range map[string]string{
		"two that differ": cl + ": 0\r\n" + cl + ": {length}\r\n", "two that differ, the long one first": cl + ": {length}\r\n" + cl + ": 0\r\n",
		"a list that differs": cl + ": 0, {length}\r\n", "a list": cl + ": {length}, {length}\r\n", "a list with an empty element": cl + ": {length},\r\n", "a list that begins empty": cl + ": ,{length}\r\n",
		"plus": cl + ": +{length}\r\n", "minus": cl + ": -{length}\r\n", "minus zero": cl + ": -0\r\n", "hexadecimal": cl + ": 0x{length}\r\n", "underscore": cl + ": 0_{length}\r\n", "with a point": cl + ": {length}.0\r\n", "exponent": cl + ": {length}e0\r\n",
		"space inside": cl + ": 0 {length}\r\n", "vertical tab before": cl + ": \x0b{length}\r\n", "vertical tab after": cl + ": {length}\x0b\r\n", "NBSP": cl + ": \xa0{length}\r\n", "NUL after": cl + ": {length}\x00\r\n", "letters after": cl + ": {length}abc\r\n",
		"empty": cl + ":\r\n", "quoted": cl + ": \"{length}\"\r\n", "2^64 more": cl + ": 18446744073709551616\r\n", "2^63": cl + ": 9223372036854775808\r\n", "many digits": cl + ": 000000000000000000000000000000000000{length}x\r\n",
		"space before the colon": cl + " : {length}\r\n", "tab before the colon": cl + "\t: {length}\r\n", "vertical tab before the name": "\x0b" + cl + ": {length}\r\n", "NUL in the name": "Content\x00-Length: {length}\r\n",
		"folded": cl + ":\r\n {length}\r\n", "hidden in a fold": "X: y\r\n " + cl + ": {length}\r\n", "after a bare LF": "X: y\n" + cl + ": {length}\r\n", "after a bare CR": "X: y\r" + cl + ": {length}\r\n",
		"full-width digits": cl + ": \xef\xbc\x91\xef\xbc\x90\r\n", "semicolon": cl + ": {length};x\r\n", "chunked": cl + ": chunked\r\n",
	} {
		sends := "a"
		if name == "hidden in a fold" { // where the gateway joins the lines, that is a value
			sends = "ah"
		}
		all = append(all,
			request("duplicate and odd lengths", name+", POST", sends, framed("POST /open/{a} HTTP/1.1\r\n"+host+fields+"\r\n", smuggled, 0)),
			request("duplicate and odd lengths", name+", GET", sends, framed("GET /open/{a} HTTP/1.1\r\n"+host+fields+"\r\n", smuggled, 0)))
	}
	for _, name := range []string{"Content_Length", "X-Content-Length", "Content-Length_"} {
		all = append(all, request("duplicate and odd lengths", "look-alike "+name, "ab", framed("POST /open/{a} HTTP/1.1\r\n"+host+name+": {length}\r\nContent-Length: 0\r\n\r\n", afterwards, 0)))
	}
	return all
}

// Bodies where somebody may expect none: 0.CL and CL.0.
func bodiesOfNoBody() []*attack {
	var all []*attack
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE", "PROPFIND", "TRACE"} {
		for _, version := range []string{"1.1", "1.0"} {
			a := request("0.CL", method+" with a length, HTTP/"+version, "a", framed(method+" /open/{a} HTTP/"+version+"\r\n"+host+"Content-Length: {length}\r\n\r\n", smuggled, 0))
			b := request("0.CL", method+" with a chunk, HTTP/"+version, "a", framed(method+" /open/{a} HTTP/"+version+"\r\n"+host+chunked+"\r\n", "{size}\r\n"+smuggled+"\r\n0\r\n\r\n", 1))
			a.head, b.head = method == "HEAD", method == "HEAD"
			all = append(all, a, b)
		}
	}
	// A backend that takes a body for the next request: the gateway cannot know, but others must not pay for it.
	for _, method := range []string{"GET", "POST", "PUT", "OPTIONS", "DELETE"} {
		for _, framing := range []string{"length", "chunks"} {
			head, body := "Content-Length: {length}\r\n\r\n", smuggled
			if framing == "chunks" {
				head, body = chunked+"\r\n", "{size}\r\n"+smuggled+"\r\n0\r\n\r\n"
			}
			all = append(all, &attack{
				family: "CL.0", name: method + " to a backend that ignores bodies, " + framing, sends: "a", recorderOnly: true,
				behind: behaviour{ignore: true, early: true},
				h1:     []step{{send: framed(method+" /open/{a} HTTP/1.1\r\n"+host+head, body, lengthIf(framing == "chunks"))}},
			})
		}
	}
	return all
}

// lengthIf is a length that nobody uses where there are chunks.
func lengthIf(chunks bool) int {
	if chunks {
		return 1
	}
	return 0
}

// What chunks may not look like: RFC 9112, 7.1; extensions that end where they should not.
func chunks() []*attack {
	var all []*attack
	post := "POST /open/{a} HTTP/1.1\r\n" + host + chunked + "\r\n"
	for name, body := range map[string]string{
		"bare LF after the size": "{size}\n" + smuggled + "\r\n0\r\n\r\n", "bare LF in an extension": "2;x\n" + "xx\r\n{size}\r\n" + smuggled + "\r\n0\r\n\r\n", "bare CR in an extension": "2;x\r" + "xx\r\n{size}\r\n" + smuggled + "\r\n0\r\n\r\n",
		"CR and LF in quotes": "2;x=\"\r\nok\r\n0\r\n\r\n" + smuggled + "\"\r\nok\r\n0\r\n\r\n", "LF in quotes": "2;x=\"\nok\n0\n\n" + smuggled + "\"\r\nok\r\n0\r\n\r\n", "quote that does not end": "2;x=\"\r\nok\r\n0\r\n\r\n" + smuggled,
		"NUL in an extension": "2;\x00\r\nok\r\n0\r\n\r\n" + smuggled, "long extension": "2;" + strings.Repeat("x", 20000) + "\r\nok\r\n0\r\n\r\n" + smuggled, "many extensions": strings.Repeat("1;"+strings.Repeat("x", 200)+"\r\na\r\n", 400) + "0\r\n\r\n",
		"prefix 0x": "0x{size}\r\n" + smuggled + "\r\n0\r\n\r\n", "plus": "+{size}\r\n" + smuggled + "\r\n0\r\n\r\n", "minus": "-1\r\n" + smuggled, "underscore": "0_{size}\r\n" + smuggled + "\r\n0\r\n\r\n", "space before": " {size}\r\n" + smuggled + "\r\n0\r\n\r\n",
		"space inside": "0 {size}\r\n" + smuggled + "\r\n0\r\n\r\n", "tab before": "\t{size}\r\n" + smuggled + "\r\n0\r\n\r\n", "quoted": "\"{size}\"\r\n" + smuggled + "\r\n0\r\n\r\n", "comma": "0,{size}\r\n" + smuggled + "\r\n0\r\n\r\n", "letters": "{size}g\r\n" + smuggled + "\r\n0\r\n\r\n",
		"empty size": "\r\n" + smuggled, "no size but an extension": ";x\r\n" + smuggled, "2^64": "10000000000000000\r\n" + smuggled, "2^64 + 2": "10000000000000002\r\nok\r\n0\r\n\r\n" + smuggled, "2^63": "8000000000000000\r\n" + smuggled, "2^32": "100000000\r\n" + smuggled + "\r\n0\r\n\r\n",
		"size of 17 digits that is small": "00000000000000002\r\nok\r\n0\r\n\r\n", "thousands of zeros": strings.Repeat("0", 5000) + "2\r\nok\r\n0\r\n\r\n" + smuggled,
		"no line end after the data": "2\r\nok0\r\n\r\n" + smuggled, "bare LF after the data": "2\r\nok\n0\r\n\r\n" + smuggled, "bare CR after the data": "2\r\nok\r0\r\n\r\n" + smuggled, "two bytes instead of a line end": "2\r\nokXX0\r\n\r\n" + smuggled, "data longer than its size": "2\r\nokok\r\n0\r\n\r\n" + smuggled,
		"bare LF at the end": "2\r\nok\r\n0\n\n" + smuggled, "bare CR at the end": "2\r\nok\r\n0\r\r" + smuggled, "no last line end": "2\r\nok\r\n0\r\n" + smuggled, "LF after the last chunk": "2\r\nok\r\n0\r\n\n" + smuggled, "last chunk with letters": "2\r\nok\r\n0x\r\n\r\n" + smuggled,
		"last chunk minus zero": "2\r\nok\r\n-0\r\n\r\n" + smuggled, "full-width digit": "\xef\xbc\x92\r\nok\r\n0\r\n\r\n" + smuggled, "space after": "2 \r\nok\r\n0\r\n\r\n", "vertical tab after": "2\x0b\r\nok\r\n0\r\n\r\n" + smuggled,
	} {
		sends := "a"
		if name == "no last line end" {
			body = strings.TrimSuffix(body, smuggled) + "X: y\r\n" + "Y: GET /open/{h} HTTP/1.1\r\n\r\n"
		}
		all = append(all, request("chunks and their extensions", name, sends, framed(post, body, 1)))
	}
	ok := request("chunks and their extensions", "extensions that are fine", "ab", post+"2;x=y;z=\"q;\"\r\nok\r\n0;last\r\n\r\n"+afterwards)
	ok.reaches = "a"
	return append(all, ok)
}

// Versions: HTTP/1.0 with what it does not have, HTTP/0.9, and none.
func versions() []*attack {
	var all []*attack
	for _, keep := range []string{"", "Connection: keep-alive\r\n", "Keep-Alive: timeout=5\r\nConnection: Keep-Alive\r\n", "Proxy-Connection: keep-alive\r\n"} {
		all = append(all,
			request("HTTP/1.0 and others", "1.0 with chunks, "+keep, "a", framed("POST /open/{a} HTTP/1.0\r\n"+host+keep+chunked+"\r\n", "0\r\n\r\n"+smuggled, 1)),
			request("HTTP/1.0 and others", "1.0 with a chunk, "+keep, "a", framed("POST /open/{a} HTTP/1.0\r\n"+host+keep+chunked+"\r\n", "{size}\r\n"+smuggled+"\r\n0\r\n\r\n", 1)),
			request("HTTP/1.0 and others", "1.0 without a length, "+keep, "ab", "POST /open/{a} HTTP/1.0\r\n"+host+keep+"\r\n"+afterwards),
			request("HTTP/1.0 and others", "1.0 with a length, "+keep, "a", framed("POST /open/{a} HTTP/1.0\r\n"+host+keep+"Content-Length: {length}\r\n\r\n", smuggled, 0)))
	}
	for _, version := range []string{"HTTP/0.9", "HTTP/1.10", "HTTP/01.1", "HTTP/1.01", "HTTP/1.2", "HTTP/2.0", "HTTP/3.0", "HTTP/1", "HTTP/1.", "http/1.1", "HTTP/1.1x", "HTTP/1,1", "HTTP/ 1.1", "HTP/1.1", "HTTPS/1.1", "HTTP/1.\xc2\xb9"} {
		a := request("HTTP/1.0 and others", version, "a", "GET /open/{a} "+version+"\r\n"+host+"\r\n"+smuggled)
		if version == "HTTP/1.2" { // the standard has it answered like 1.1
			a.sends, a.h1[0].send = "ab", "GET /open/{a} "+version+"\r\n"+host+"\r\n"+afterwards
		}
		all = append(all, a)
	}
	return append(all,
		request("HTTP/1.0 and others", "0.9", "a", "GET /open/{a}\r\n"),
		request("HTTP/1.0 and others", "0.9 with fields", "a", "GET /open/{a}\r\n"+host+"\r\n"+smuggled))
}

// Answers that come before the end of a body: what follows is still the body.
func earlyAnswers() []*attack {
	var all []*attack
	junk := strings.Repeat("x", 100)
	for _, length := range []int{5000, 16384, 16385, 20000, 262144, 300000} {
		for _, sent := range []string{"", junk[:40], junk} {
			if len(sent) >= length {
				continue
			}
			all = append(all, &attack{family: "early answer", name: fmt.Sprintf("%d announced, %d sent", length, len(sent)), sends: "a", h1: []step{
				{send: fmt.Sprintf("POST /early/{a} HTTP/1.1\r\n"+host+"Content-Length: %d\r\n\r\n", length) + sent, await: 1},
				{send: smuggled + smuggled[:4]},
			}})
		}
	}
	for _, sent := range []string{"", "5\r\nab", "5\r\nabcde\r\n", "ffff\r\n" + junk} {
		all = append(all, &attack{family: "early answer", name: fmt.Sprintf("chunks, %d sent", len(sent)), sends: "a", h1: []step{
			{send: "POST /early/{a} HTTP/1.1\r\n" + host + chunked + "\r\n" + sent, await: 1}, {send: smuggled},
		}})
	}
	for name, head := range map[string]string{
		"that the gateway refuses, no key": "POST /private/{a} HTTP/1.1\r\n" + host, "that the gateway refuses, path": "POST /%00{a} HTTP/1.1\r\n" + host, "that the gateway refuses, host": "POST /{a} HTTP/1.1\r\nHost: admin.test\r\n",
		"that the gateway refuses, loop": "POST /{a} HTTP/1.1\r\nVia: " + strings.Repeat("1.1 slipway,", 12) + "1.1 x\r\n" + host, "OPTIONS that goes no further": "OPTIONS /{a} HTTP/1.1\r\nMax-Forwards: 0\r\n" + host,
	} {
		for _, framing := range []string{"Content-Length: 100\r\n\r\n", "Content-Length: 20000\r\n\r\n", "Content-Length: 1000000\r\n\r\n", chunked + "\r\nffff\r\n", chunked + "\r\n"} {
			all = append(all, &attack{family: "early answer", name: name + ", " + framing, sends: "a", never: "a", h1: []step{
				{send: head + framing + junk[:40], await: 1}, {send: smuggled},
			}})
		}
	}
	for _, status := range []string{"200 OK", "204 No Content", "301 Moved", "304 Not Modified", "401 No", "413 Too Large", "500 Oops"} {
		for _, closes := range []bool{false, true} {
			length := "Content-Length: 0\r\n"
			if status[:3] == "204" || status[:3] == "304" {
				length = ""
			}
			for _, size := range []int{600, 20000} {
				all = append(all, &attack{
					family: "early answer", name: fmt.Sprintf("%s to %d bytes, the backend closes: %t", status, size, closes), sends: "a", recorderOnly: true,
					behind: behaviour{early: true, close: closes, answer: "HTTP/1.1 " + status + "\r\n" + length + "\r\n"},
					h1: []step{
						{send: fmt.Sprintf("POST /open/{a} HTTP/1.1\r\n"+host+"Content-Length: %d\r\n\r\n", size) + junk[:40], await: 1}, {send: smuggled},
					},
				})
			}
		}
	}
	return all
}

// Pauses inside of requests, and ends of connections.
func pauses() []*attack {
	short := 300 * time.Millisecond
	post := "POST /open/{a} HTTP/1.1\r\n" + host
	whole := request("pauses", "a body after a pause", "ab", "")
	whole.reaches = "ab"
	whole.h1 = []step{{send: post + "Content-Length: 4\r\n\r\n", pause: short}, {send: "bo", pause: short}, {send: "dy" + afterwards}}
	var all []*attack
	for name, steps := range map[string][]step{
		"after the head":                 {{send: post + "Content-Length: 70\r\n\r\n", pause: short}, {send: smuggled}},
		"in the head":                    {{send: post + "Content-Length: 7", pause: short}, {send: "0\r\n\r\n" + smuggled}},
		"in a line end":                  {{send: post + "Content-Length: 70\r", pause: short}, {send: "\n\r", pause: short}, {send: "\n" + smuggled}},
		"in a chunk's size":              {{send: post + chunked + "\r\n4", pause: short}, {send: "0\r\n" + smuggled}},
		"early answer and pause":         {{send: "POST /early/{a} HTTP/1.1\r\n" + host + "Content-Length: 20000\r\n\r\n", pause: short, await: 1}, {send: "x", pause: short}, {send: smuggled}},
		"half-close in a body":           {{send: post + "Content-Length: 20000\r\n\r\n" + smuggled, halfClose: true}},
		"half-close in a chunk":          {{send: post + chunked + "\r\nffff\r\n" + smuggled, halfClose: true}},
		"half-close in an early answer":  {{send: "POST /early/{a} HTTP/1.1\r\n" + host + "Content-Length: 20000\r\n\r\n" + smuggled, await: 1, halfClose: true}},
		"half-close in a head":           {{send: "GET /open/{a} HTTP/1.1\r\n" + host + "X: " + smuggled, halfClose: true}},
		"reset in a body":                {{send: post + "Content-Length: 20000\r\n\r\n" + smuggled, pause: short, reset: true}},
		"half-close after smuggled text": {{send: post + "Content-Length: 300\r\n\r\n" + smuggled + smuggled, pause: short, halfClose: true}},
	} {
		a := &attack{family: "pauses", name: name, sends: "a", h1: steps}
		if strings.HasPrefix(name, "half-close") || strings.HasPrefix(name, "reset") {
			a.partial = "a"
		}
		all = append(all, a)
	}
	byByte := &attack{family: "pauses", name: "line by line", sends: "ab", reaches: "ab"}
	for _, c := range strings.SplitAfter("POST /open/{a} HTTP/1.1\r\n"+host+"Content-Length: 4\r\n\r\nbody"+afterwards, "\n") {
		byByte.h1 = append(byByte.h1, step{send: c, pause: 20 * time.Millisecond})
	}
	return append(all, whole, byByte)
}
