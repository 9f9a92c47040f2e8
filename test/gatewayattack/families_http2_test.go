package gatewayattack

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// head2 is the head of a GET over HTTP/2, with an :authority other than the host where one is given, and a method.
func head2(path, authority string, method ...string) []string {
	if authority == "" {
		authority = "{host}"
	}
	fields := []string{":method", "GET", ":scheme", "http", ":path", path, ":authority", authority}
	if len(method) > 0 {
		fields[1] = method[0]
	}
	return fields
}

// one is an attack of one request over HTTP/2.
func one(family, name, sends string, fields []string, data string) *attack {
	return &attack{family: family, name: name, sends: sends, h2: []frame{{stream: 1, fields: fields, data: data, end: true}}}
}

// Heads of HTTP/2 that are none of HTTP/1, and become several there: RFC 9113, 8.2 and 8.3.
func downgrades() []*attack {
	const family = "HTTP/2 downgrades"
	inject := "\r\nX: y\r\n\r\nGET /open/{h} HTTP/1.1\r\nHost: {host}\r\n\r\n"
	get, post := head2("/open/{a}", ""), head2("/open/{a}", "", "POST")
	with := func(base []string, more ...string) []string { return append(append([]string{}, base...), more...) }
	var all []*attack
	for name, c := range map[string]string{"CR LF": inject, "LF": strings.ReplaceAll(inject, "\r\n", "\n"), "CR": strings.ReplaceAll(inject, "\r\n", "\r"), "NUL": "\x00x", "CR LF and a length": "\r\nContent-Length: 100", "CR LF and chunks": "\r\nTransfer-Encoding: chunked"} {
		for place, fields := range map[string][]string{
			"a value": with(get, "x-a", "b"+c), "a name": with(get, "x-a: b"+c, "c"), "the path": head2("/open/{a}"+c, ""), "the path, as a request line": head2("/open/{a} HTTP/1.1"+c, ""), "the method": head2("/open/{a}", "", "GET /open/{h} HTTP/1.1"+c), "the authority": head2("/open/{a}", "{host}"+c),
			"the scheme": {":method", "GET", ":scheme", "http" + c, ":path", "/open/{a}", ":authority", "{host}"}, "a cookie": with(get, "cookie", "a=b"+c), "another pseudo header": with(get, ":x", "y"+c), "the end of a value": with(get, "x-a", c),
		} {
			a := one(family, name+" in "+place, "a", fields, "")
			a.never = "a"
			all = append(all, a)
		}
	}
	for name, fields := range map[string][]string{
		"colon in a name": with(get, "x-a: b", "c"), "name with a space": with(get, "x a", "b"), "empty name": with(get, "", "b"), "name in upper case": with(get, "X-A", "b"), "name with a control": with(get, "x\x01a", "b"), "value with a control": with(get, "x-a", "\x01"), "space before a value": with(get, "x-a", " \tb"),
		"path with a space": head2("/open/{a} HTTP/1.1", ""), "path with a tab": head2("/open/{a}\tx", ""), "path without a slash": head2("open/{a}", ""), "path as a whole target": head2("http://admin.test/{a}", ""), "empty path": head2("", ""), "path with a fragment": head2("/open/{a}#x", ""), "path asterisk": head2("*", ""),
		"method with a space": head2("/open/{a}", "", "GET /x"), "empty method": head2("/open/{a}", "", ""), "method of CONNECT": head2("/open/{a}", "", "CONNECT"), "no method": {":scheme", "http", ":path", "/open/{a}", ":authority", "{host}"}, "no path": {":method", "GET", ":scheme", "http", ":authority", "{host}", "x", "{a}"}, "no scheme": {":method", "GET", ":path", "/open/{a}", ":authority", "{host}"},
		"two methods": with(get, ":method", "POST"), "two paths": with(get, ":path", "/private/{a}"), "two paths, the other first": append([]string{":path", "/private/{a}"}, get...), "two authorities": with(get, ":authority", "admin.test"), "two schemes": with(get, ":scheme", "https"),
		"pseudo header after a field": {":method", "GET", ":scheme", "http", "x", "y", ":path", "/open/{a}", ":authority", "{host}"}, "unknown pseudo header": with(get, ":x", "y"), "status": with(get, ":status", "200"), "protocol": with(head2("/open/{a}", "", "CONNECT"), ":protocol", "websocket"),
		"connection": with(get, "connection", "close"), "connection naming": with(get, "connection", "x-forwarded-for"), "keep-alive": with(get, "keep-alive", "5"), "proxy-connection": with(get, "proxy-connection", "x"), "upgrade": with(get, "upgrade", "h2c"), "te": with(get, "te", "gzip"), "te chunked": with(get, "te", "trailers, chunked"),
		"transfer-encoding": with(post, "transfer-encoding", "chunked"), "transfer-encoding identity": with(post, "transfer-encoding", "identity"), "scheme with a space": {":method", "GET", ":scheme", "http /x HTTP/1.1", ":path", "/open/{a}", ":authority", "{host}"},
		"scheme as a url": {":method", "GET", ":scheme", "http://admin.test/{a}?", ":path", "/open/{a}", ":authority", "{host}"}, "two hosts": with(get, "host", "x", "host", "admin.test"), "underscore": with(get, "transfer_encoding", "chunked"),
	} {
		all = append(all, one(family, name, "a", fields, ""))
	}
	for name, more := range map[string][]string{
		"chunked": {"transfer-encoding", "chunked"}, "chunked and a length": {"transfer-encoding", "chunked", "content-length", "5"}, "length 0": {"content-length", "0"}, "shorter length": {"content-length", "5"}, "longer length": {"content-length", "5000"}, "two lengths": {"content-length", "0", "content-length", "68"},
		"list of lengths": {"content-length", "0, 68"}, "plus": {"content-length", "+68"}, "minus": {"content-length", "-1"}, "hexadecimal": {"content-length", "0x44"}, "underscore": {"content_length", "0"}, "empty": {"content-length", ""}, "letters": {"content-length", "0x"}, "2^64": {"content-length", "18446744073709551616"},
	} {
		for _, body := range []string{"0\r\n\r\n" + smuggled, smuggled} {
			all = append(all, one(family, fmt.Sprintf("a body of %d bytes and %s", len(body), name), "a", with(post, more...), body),
				one(family, fmt.Sprintf("a body of %d bytes, GET, and %s", len(body), name), "a", with(get, more...), body))
		}
	}
	long := one(family, "length beyond the end", "a", with(get, "content-length", "200"), "")
	long.partial = "a"
	fine := one(family, "as it should be", "a", with(post, "content-length", "4", "cookie", "a=b", "cookie", "c=d"), "body")
	fine.reaches, fine.target = "a", "/open/{a}"
	split := &attack{family: family, name: "CONTINUATION", sends: "a", reaches: "a", h2: []frame{{stream: 1, fields: get, split: true, end: true}}}
	return append(all, long, fine, split)
}

// Bodies, trailers and ends of streams.
func streamsOfBodies() []*attack {
	const family = "HTTP/2 streams"
	post := head2("/open/{a}", "", "POST")
	trailer := func(name string, fields ...string) *attack {
		return &attack{family: family, name: "trailer " + name, sends: "a", h2: []frame{{stream: 1, fields: append(append([]string{}, post...), "trailer", "x")}, {stream: 1, data: "body"}, {stream: 1, fields: fields, end: true}}}
	}
	all := []*attack{
		trailer("authorization", "authorization", "{x}"), trailer("content-length", "content-length", "{x}"), trailer("transfer-encoding", "transfer-encoding", "{x}"), trailer("host", "host", "{x}"), trailer("x-forwarded-for", "x-forwarded-for", "{x}"), trailer("pseudo header", ":path", "/private/{x}"),
		trailer("CR LF in a value", "x", "y\r\n\r\nGET /open/{h} HTTP/1.1\r\nHost: {host}\r\n\r\n"), trailer("CR LF in a name", "x\r\n\r\nGET /open/{h} HTTP/1.1\r\nhost: {host}\r\n\r\n", "y"), trailer("x_forwarded_for", "x_forwarded_for", "{x}"),
		{family: family, name: "early answer, then more", sends: "a", h2: []frame{{stream: 1, fields: head2("/early/{a}", "", "POST"), pause: 300 * time.Millisecond}, {stream: 1, data: smuggled, pause: 200 * time.Millisecond}, {stream: 1, data: smuggled, end: true}}},
		{family: family, name: "early answer with a length, then more", sends: "a", h2: []frame{{stream: 1, fields: append(head2("/early/{a}", "", "POST"), "content-length", "20000"), pause: 300 * time.Millisecond}, {stream: 1, data: smuggled, end: true}}},
		{family: family, name: "reset in a body", sends: "ab", reaches: "b", partial: "a", h2: []frame{{stream: 1, fields: append(append([]string{}, post...), "content-length", "20000"), pause: 200 * time.Millisecond}, {stream: 1, data: smuggled, pause: 200 * time.Millisecond}, {stream: 1, reset: true}, {stream: 3, fields: head2("/open/{b}", ""), end: true}}},
		{family: family, name: "reset at once, many", sends: "a", h2: []frame{{stream: 1, fields: head2("/open/{a}", ""), end: true, reset: true}}},
		{family: family, name: "two streams by turns", sends: "ab", reaches: "ab", h2: []frame{{stream: 1, fields: head2("/open/{a}", "", "POST")}, {stream: 3, fields: head2("/open/{b}", "", "POST")}, {stream: 1, data: "one"}, {stream: 3, data: smuggled, end: true}, {stream: 1, data: smuggled, end: true}}},
		{family: family, name: "data after the end", sends: "a", h2: []frame{{stream: 1, fields: head2("/open/{a}", "", "POST"), data: "body", end: true}, {stream: 1, data: smuggled}}},
		{family: family, name: "head after the end", sends: "a", h2: []frame{{stream: 1, fields: head2("/open/{a}", ""), end: true, pause: 100 * time.Millisecond}, {stream: 1, fields: head2("/open/{h}", ""), end: true}}},
		{family: family, name: "an even stream", sends: "", h2: []frame{{stream: 2, fields: head2("/open/{h}", ""), end: true}}},
		{family: family, name: "PUSH_PROMISE of a client", sends: "a", h2: []frame{{stream: 1, fields: head2("/open/{a}", "", "POST"), raw: func(f *http2.Framer) error {
			return f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}}}},
		{family: family, name: "another frame within a head", sends: "a", h2: []frame{{stream: 1, raw: func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
		}}, {stream: 3, fields: head2("/open/{h}", ""), end: true}}},
		{family: family, name: "100-continue", sends: "a", h2: []frame{{stream: 1, fields: append(head2("/early/{a}", "", "POST"), "expect", "100-continue"), pause: 300 * time.Millisecond}, {stream: 1, data: smuggled, end: true}}},
	}
	return all
}

// Splitting of answers by a backend, and of what others get after it.
func splits() []*attack {
	const family = "split answers"
	second := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Split: {y}\r\n\r\nsplit"
	var all []*attack
	for name, response := range map[string]string{
		"CR LF in a value": "HTTP/1.1 200 OK\r\nX: y\rX-Split: {y}\r\nContent-Length: 0\r\n\r\n", "NUL in a value": "HTTP/1.1 200 OK\r\nX: y\x00\r\nContent-Length: 0\r\n\r\n", "space before a colon": "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n" + second,
		"more than the length": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + second, "an answer to nothing": "HTTP/1.1 204 No Content\r\n\r\n" + second, "an answer to nothing after 304": "HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n" + second,
		"two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 90\r\n\r\n" + second, "a list of lengths": "HTTP/1.1 200 OK\r\nContent-Length: 0, 90\r\n\r\n" + second, "length and chunks": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second,
		"xchunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + second, "chunked, identity": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + second, "chunks in HTTP/1.0": "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n" + second,
		"signed length": "HTTP/1.1 200 OK\r\nContent-Length: +0\r\n\r\n" + second, "negative length": "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + second, "chunk that is none": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + second, "bare LF in chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n" + second,
		"trailer with a field": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\nX-Splat: y\r\n\r\n", "folded": "HTTP/1.1 200 OK\r\nX: y\r\n X-Split: {y}\r\nContent-Length: 0\r\n\r\n", "no status": "HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n", "status 99": "HTTP/1.1 99 X\r\nContent-Length: 0\r\n\r\n", "status 1000": "HTTP/1.1 1000 X\r\nContent-Length: 0\r\n\r\n",
		"CR in the reason": "HTTP/1.1 200 OK\rX-Split: {y}\r\nContent-Length: 0\r\n\r\n", "HTTP/2.0": "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "garbage": "garbage\r\n\r\n" + second, "1xx for ever": strings.Repeat("HTTP/1.1 103 Early\r\nLink: x\r\n\r\n", 5000) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"100 with a body": "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "199 and an answer": "HTTP/1.1 199 X\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + second, "head too large": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 300000) + "\r\nContent-Length: 0\r\n\r\n",
		"Connection naming Content-Length": "HTTP/1.1 200 OK\r\nConnection: Content-Length, X-Split\r\nX-Split: {y}\r\nContent-Length: 5\r\n\r\nbody\n", "colon-less line": "HTTP/1.1 200 OK\r\nX-Split\r\nContent-Length: 0\r\n\r\n", "name with a CR": "HTTP/1.1 200 OK\r\nX\r: y\r\nContent-Length: 0\r\n\r\n", "101 without being asked": "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" + second,
	} {
		a := &attack{family: family, name: name, sends: "a", recorderOnly: true, behind: behaviour{answer: response}, h1: []step{{send: "GET /open/{a} HTTP/1.1\r\n" + host + "\r\n"}}}
		h2 := &attack{family: family, name: name + ", over HTTP/2", sends: "a", recorderOnly: true, behind: behaviour{answer: response}, h2: []frame{{stream: 1, fields: head2("/open/{a}", ""), end: true}}}
		all = append(all, a, h2)
	}
	for name, late := range map[string]string{"an answer that nobody asked for": second, "half an answer that nobody asked for": second[:30], "a 408 that nobody asked for": "HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"} {
		for _, pause := range []time.Duration{0, 30 * time.Millisecond} {
			all = append(all, &attack{family: family, name: fmt.Sprintf("%s, %v later", name, pause), sends: "a", recorderOnly: true, behind: behaviour{late: late, pause: pause}, h1: []step{{send: "GET /open/{a} HTTP/1.1\r\n" + host + "\r\n"}}})
		}
	}
	for _, status := range []string{"200 OK", "404 No"} {
		all = append(all, &attack{family: family, name: "HEAD answered with a body, " + status, sends: "a", head: true, recorderOnly: true, behind: behaviour{answer: "HTTP/1.1 " + status + "\r\nContent-Length: 90\r\n\r\n" + second}, h1: []step{{send: "HEAD /open/{a} HTTP/1.1\r\n" + host + "\r\n"}}})
	}
	for name, response := range map[string]string{
		"body shorter than its length": "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "no last chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", "half a chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort",
		"no line end after the last chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n", "half a trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\nX: y",
	} {
		behind := behaviour{answer: response, close: true}
		all = append(all,
			&attack{family: family, name: name, sends: "ab", cut: true, recorderOnly: true, behind: behind, h1: []step{{send: "GET /open/{a} HTTP/1.1\r\n" + host + "\r\n" + afterwards}}},
			&attack{family: family, name: name + ", over HTTP/2", sends: "a", cut: true, recorderOnly: true, behind: behind, h2: []frame{{stream: 1, fields: head2("/open/{a}", ""), end: true}}})
	}
	return all
}

const protocolFamily = "protocol of the backend"

// What only looks like another protocol: which one is spoken to a backend is the backend's word.
func protocols() []*attack {
	const family = protocolFamily
	var all []*attack
	for _, kind := range []string{"application/grpc", "application/grpc+proto", "application/grpc-web", "application/grpc;x"} {
		get := request(family, kind, "a", "POST /open/{a} HTTP/1.1\r\n"+host+"Content-Type: "+kind+"\r\nContent-Length: 5\r\n\r\n\x00\x00\x00\x00\x00")
		h2 := one(family, kind+" over HTTP/2", "a", append(head2("/open/{a}", "", "POST"), "content-type", kind, "te", "trailers"), "\x00\x00\x00\x00\x00")
		all = append(all, get, h2)
	}
	return append(all, request(family, "prior knowledge in the body", "a", framed("POST /open/{a} HTTP/1.1\r\n"+host+"Content-Length: {length}\r\n\r\n", http2.ClientPreface+smuggled, 0)))
}
