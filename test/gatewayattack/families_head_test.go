package gatewayattack

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Expect, with games about who waits for whom.
func expectations() []*attack {
	post := "POST /open/{a} HTTP/1.1\r\n" + host
	var all []*attack
	for name, expect := range map[string]string{
		"plain": "Expect: 100-continue\r\n", "upper case": "Expect: 100-CONTINUE\r\n", "unknown": "Expect: x\r\n", "a list": "Expect: 100-continue, x\r\n", "twice": "Expect: 100-continue\r\nExpect: 100-continue\r\n",
		"before a value": "Expect: y 100-continue\r\n", "vertical tab": "Expect: \x0b100-continue\r\n", "200-ok": "Expect: 200-ok\r\n", "empty": "Expect:\r\n", "folded": "Expect:\r\n 100-continue\r\n", "space before the colon": "Expect : 100-continue\r\n", "underscore": "Ex_pect: 100-continue\r\n",
	} {
		all = append(all,
			request("Expect", name+", the body at once", "a", framed(post+expect+"Content-Length: {length}\r\n\r\n", smuggled, 0)),
			request("Expect", name+", a chunk at once", "a", framed(post+expect+chunked+"\r\n", "{size}\r\n"+smuggled+"\r\n0\r\n\r\n", 1)),
			request("Expect", name+", GET", "a", framed("GET /open/{a} HTTP/1.1\r\n"+host+expect+"Content-Length: {length}\r\n\r\n", smuggled, 0)),
			request("Expect", name+", HTTP/1.0", "a", framed("POST /open/{a} HTTP/1.0\r\n"+host+expect+"Content-Length: {length}\r\n\r\n", smuggled, 0)),
			&attack{family: "Expect", name: name + ", an early answer", sends: "a", h1: []step{
				{send: "POST /early/{a} HTTP/1.1\r\n" + host + expect + "Content-Length: 20000\r\n\r\n", await: 1}, {send: smuggled + smuggled},
			}},
			&attack{family: "Expect", name: name + ", an early answer to few bytes", sends: "a", h1: []step{
				{send: "POST /early/{a} HTTP/1.1\r\n" + host + expect + "Content-Length: 500\r\n\r\n", await: 1}, {send: smuggled + smuggled},
			}})
	}
	all = append(all,
		request("Expect", "without a body", "ab", "GET /open/{a} HTTP/1.1\r\n"+host+"Expect: 100-continue\r\n\r\n"+afterwards),
		&attack{family: "Expect", name: "refused by the backend", sends: "a", recorderOnly: true, behind: behaviour{early: true, answer: "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"}, h1: []step{
			{send: post + "Expect: 100-continue\r\nContent-Length: 500\r\n\r\n", await: 1}, {send: smuggled},
		}},
		&attack{family: "Expect", name: "100 and refused", sends: "a", recorderOnly: true, behind: behaviour{early: true, answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"}, h1: []step{
			{send: post + "Expect: 100-continue\r\nContent-Length: 500\r\n\r\n", await: 1}, {send: smuggled},
		}},
		&attack{family: "Expect", name: "100 without being asked, early", sends: "a", recorderOnly: true, behind: behaviour{early: true, answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}, h1: []step{
			{send: post + "Content-Length: 20000\r\n\r\n", await: 1}, {send: smuggled},
		}},
		&attack{family: "Expect", name: "as it should be", sends: "ab", reaches: "ab", h1: []step{
			{send: post + "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n", pause: 200 * time.Millisecond}, {send: "body", await: 1}, {send: afterwards},
		}})
	return all
}

// Lines that go on: RFC 9112, 5.2.
func folds() []*attack {
	var all []*attack
	for name, fields := range map[string]string{
		"space": "X: a\r\n {x}\r\n", "tab": "X: a\r\n\t{x}\r\n", "first field": " X: {x}\r\n" + host, "first field, tab": "\tX: {x}\r\n" + host, "a length": "X: a\r\n Content-Length: {length}\r\n", "empty value": "X:\r\n \r\n b\r\n",
		"host": "Host:\r\n admin.test\r\n", "only white space": "X: a\r\n \r\n" + "Content-Length: {length}\r\n", "after a length": "Content-Length: {length}\r\n 0\r\n", "chunked": "Transfer-Encoding:\r\n\tchunked\r\n",
	} {
		sends := "a"
		if name == "a length" { // where the gateway joins the lines, that is a value
			sends = "ah"
		}
		all = append(all, request("folded lines", name, sends, framed("POST /open/{a} HTTP/1.1\r\n"+host+fields+"\r\n", smuggled, 0)))
		// A length that no reader sees makes the rest a request of its own: only what both may mean is wrong.
		switch name {
		case "space", "tab", "empty value":
			last := all[len(all)-1]
			last.sends, last.h1[0].send = "ab", "POST /open/{a} HTTP/1.1\r\n"+host+strings.ReplaceAll(fields, "{x}", "c")+"Content-Length: 0\r\n\r\n"+afterwards
		}
	}
	return all
}

// Names of fields that are none: RFC 9112, 5.1.
func names() []*attack {
	var all []*attack
	for name, line := range map[string]string{
		"space before the colon": "X-A : {x}", "tab before the colon": "X-A\t: {x}", "no name": ": {x}", "no colon": "X-A {x}", "empty line with a space": " ", "space inside": "X A: {x}", "brackets": "X[A]: {x}", "comma": "X,A: {x}", "slash": "X/A: {x}", "quotes": "\"X\": {x}",
		"at": "X@A: {x}", "NUL": "X\x00A: {x}", "DEL": "X\x7fA: {x}", "above ASCII": "X\xff: {x}", "NBSP": "X\xa0: {x}", "vertical tab": "X\x0b: {x}", "CR": "X\rA: {x}", "second request line": "GET /open/{h} HTTP/1.1", "pseudo header": ":path: /open/{x}",
		"host with a space before the colon": "Host : admin.test", "second host": "Host: admin.test", "second host in lower case": "host: {host}", "host underscore": "Ho_st: x",
	} {
		a := request("field names", name, "a", "GET /open/{a} HTTP/1.1\r\n"+host+line+"\r\n\r\n"+smuggled)
		if name != "host underscore" {
			a.never = "a"
		} else {
			a.sends, a.h1[0].send = "ab", "GET /open/{a} HTTP/1.1\r\n"+host+line+"\r\n\r\n"+afterwards
		}
		all = append(all, a)
	}
	return append(all,
		request("field names", "no host", "a", "GET /open/{a} HTTP/1.1\r\n\r\n"+smuggled),
		request("field names", "a name of 60000 bytes", "a", "GET /open/{a} HTTP/1.1\r\n"+host+strings.Repeat("x", 60000)+": y\r\n\r\n"),
		request("field names", "fields without an end", "a", "GET /open/{a} HTTP/1.1\r\n"+host+strings.Repeat("x: y\r\n", 30000)+"\r\n"))
}

// Bytes that end lines or texts for somebody: bare CR, bare LF, NUL and other controls.
func controls() []*attack {
	var all []*attack
	for name, c := range map[string]string{
		"bare CR": "\r", "bare LF": "\n", "NUL": "\x00", "LF CR": "\n\r", "two CR": "\r\r", "vertical tab": "\x0b", "form feed": "\x0c", "escape": "\x1b", "DEL": "\x7f", "backspace": "\x08", "unit separator": "\x1f",
	} {
		line := "X: a" + c + "Transfer-Encoding: chunked\r\n"
		value, sends := "{x}", "a"
		if c[0] == '\n' { // which may end a line (RFC 9112, 2.2)
			value, sends = "y", "ah"
		}
		all = append(all,
			request("control characters", name+" in a value", "a", framed("POST /open/{a} HTTP/1.1\r\n"+host+line+"Content-Length: {length}\r\n\r\n", "0\r\n\r\n"+smuggled, 0)),
			request("control characters", name+" and a field behind it", "a", "GET /open/{a} HTTP/1.1\r\n"+host+"X: a"+c+"X-Forwarded-For: {x}\r\n\r\n"),
			request("control characters", name+" in the host", "a", "GET /open/{a} HTTP/1.1\r\nHost: {host}"+c+"X: "+value+"\r\n\r\n"),
			request("control characters", name+" in the target", "a", "GET /open/{a}"+c+"b HTTP/1.1\r\n"+host+"\r\n"),
			request("control characters", name+" in the query", "a", "GET /open/{a}?"+c+"b HTTP/1.1\r\n"+host+"\r\n"),
			request("control characters", name+" in the method", "a", "GE"+c+"T /open/{a} HTTP/1.1\r\n"+host+"\r\n"),
			request("control characters", name+" after the version", "a", "GET /open/{a} HTTP/1.1"+c+"X: "+value+"\r\n"+host+"\r\n"),
			request("control characters", name+" before the empty line", sends, "GET /open/{a} HTTP/1.1\r\n"+host+c+"\r\n"+smuggled),
			request("control characters", name+" instead of the last line end", sends, "GET /open/{a} HTTP/1.1\r\n"+host+"X: y\r\n"+c+smuggled))
	}
	escaped := request("escaped control characters", "line end in the target", "a", "GET /open/{a}%0d%0aX:%20y HTTP/1.1\r\n"+host+"\r\n")
	escaped.never = "a" // there are routes with a key, and nobody knows which one a backend takes it for
	return append(all, escaped)
}

// Request lines: RFC 9112, 3.
func requestLines() []*attack {
	var all []*attack
	for name, line := range map[string]string{
		"two spaces": "GET  /open/{a} HTTP/1.1", "two spaces before the version": "GET /open/{a}  HTTP/1.1", "tab": "GET\t/open/{a}\tHTTP/1.1", "tab before the version": "GET /open/{a}\tHTTP/1.1", "vertical tab": "GET /open/{a}\x0bHTTP/1.1", "NBSP": "GET /open/{a}\xa0HTTP/1.1",
		"space before": " GET /open/{a} HTTP/1.1", "space after": "GET /open/{a} HTTP/1.1 ", "space in the target": "GET /open/{a} x HTTP/1.1", "version in the target": "GET /open/{a} HTTP/1.1 HTTP/1.1", "request in the target": "GET /open/{a}?HTTP/1.1 GET /open/{h} HTTP/1.1", "no method": "/open/{a} HTTP/1.1",
		"no target": "GET HTTP/1.1", "relative": "GET open/{a} HTTP/1.1", "fragment": "GET /open/{a}#/private HTTP/1.1", "fragment in the query": "GET /open/{a}?x#/private HTTP/1.1", "authority": "GET {host}:80 HTTP/1.1", "asterisk": "GET * HTTP/1.1", "double slash host": "GET //admin.test/{a} HTTP/1.1",
		"method with brackets": "G[E]T /open/{a} HTTP/1.1", "method with a colon": "GET: /open/{a} HTTP/1.1", "method of 1000 letters": strings.Repeat("A", 1000) + " /open/{a} HTTP/1.1", "bytes above ASCII": "GET /open/{a}/\xff HTTP/1.1", "quote": "GET /open/\"/{a} HTTP/1.1", "braces": "GET /open/%7b{a}%7d HTTP/1.1",
		"backslash first": `GET \open\{a} HTTP/1.1`, "colon first": "GET :/open/{a} HTTP/1.1", "question mark first": "GET ?/open/{a} HTTP/1.1", "scheme only": "GET http: HTTP/1.1", "scheme without host": "GET http:///open/{a} HTTP/1.1", "file": "GET file:///open/{a} HTTP/1.1", "other scheme": "GET gopher://{host}/{a} HTTP/1.1",
		"user in the target": "GET http://x@{host}/open/{a} HTTP/1.1", "absolute with a space": "GET http://{host} /open/{a} HTTP/1.1", "CONNECT": "CONNECT {host}:80 HTTP/1.1", "CONNECT with a path": "CONNECT /open/{a} HTTP/1.1", "PRI": "PRI * HTTP/2.0",
	} {
		all = append(all, request("request lines", name, "ab", line+"\r\n"+host+"\r\n"+afterwards))
	}
	absolute := request("request lines", "absolute form", "a", "GET http://{host}/open/{a} HTTP/1.1\r\n"+host+"\r\n")
	absolute.reaches, absolute.target = "a", "/open/{a}"
	for name, text := range map[string]string{
		"absolute form of the protected host":         "GET http://admin.test/{a} HTTP/1.1\r\n" + host + "\r\n",
		"absolute form of the protected path":         "GET http://{host}/private/{a} HTTP/1.1\r\n" + host + "\r\n",
		"absolute form beside the protected host":     "GET http://admin.test/{a} HTTP/1.1\r\nHost: admin.test\r\n\r\n",
		"absolute form, upper-case scheme":            "GET HTTP://ADMIN.test/{a} HTTP/1.1\r\n" + host + "\r\n",
		"absolute form without a path":                "GET http://admin.test?{a} HTTP/1.1\r\n" + host + "\r\n",
		"absolute form with a backslash":              `GET http://admin.test\{a} HTTP/1.1` + "\r\n" + host + "\r\n",
		"absolute form with a user and the protected": "GET http://{host}@admin.test/{a} HTTP/1.1\r\n" + host + "\r\n",
		"absolute form, https":                        "GET https://admin.test/{a} HTTP/1.1\r\n" + host + "\r\n",
	} {
		a := request("request lines", name, "a", text)
		a.never = "a"
		all = append(all, a)
	}
	for name, before := range map[string]string{"an empty line before": "\r\n", "empty lines before": "\r\n\r\n\r\n", "a bare LF before": "\n", "a bare CR before": "\r", "a NUL before": "\x00", "a byte order mark before": "\xef\xbb\xbf"} {
		all = append(all, request("request lines", name, "ab", before+"GET /open/{a} HTTP/1.1\r\n"+host+"\r\n"+before+afterwards))
	}
	pipelined := request("request lines", "four requests at once", "abcd", "GET /open/{a} HTTP/1.1\r\n"+host+"\r\nPOST /open/{b} HTTP/1.1\r\n"+host+"Content-Length: 4\r\n\r\nbodyHEAD /open/{c} HTTP/1.1\r\n"+host+"Connection: close\r\n\r\nGET /open/{d} HTTP/1.1\r\n"+host+"\r\n")
	pipelined.reaches, pipelined.never = "abc", "d"
	pipelined.h1[0].send = strings.Replace(pipelined.h1[0].send, "HEAD", "GET", 1)
	return append(all, absolute, pipelined)
}

// Spellings of methods, on a path where one method needs the key.
func methods() []*attack {
	var all []*attack
	for _, method := range []string{"post", "Post", "pOST", "POST\x00", " POST", "POST\t", "POST,GET", "POST;", "\"POST\""} {
		a := request("methods", fmt.Sprintf("%q", method), "a", method+" /method/{a} HTTP/1.1\r\n"+host+"Content-Length: 0\r\n\r\n")
		a.never = "a"
		all = append(all, a)
	}
	for _, method := range []string{"post", "get", "Head", "delete"} {
		a := &attack{family: "methods", name: method + " over HTTP/2", sends: "a", never: "a", h2: []frame{{stream: 1, end: true, fields: head2("/method/{a}", "", method)}}}
		all = append(all, a)
	}
	override := request("methods", "override", "a", "GET /open/{a} HTTP/1.1\r\n"+host+"X-HTTP-Method-Override: POST\r\n\r\n")
	without := request("methods", "POST without the key", "a", "POST /method/{a} HTTP/1.1\r\n"+host+"Content-Length: 0\r\n\r\n")
	without.never = "a"
	with := request("methods", "POST with the key", "a", "POST /method/{a} HTTP/1.1\r\n"+host+"X-API-Key: {key}\r\nContent-Length: 0\r\n\r\n")
	with.reaches = "a"
	get := request("methods", "GET", "a", "GET /method/{a} HTTP/1.1\r\n"+host+"\r\n")
	get.reaches = "a"
	extension := request("methods", "of an extension", "a", "PROPFIND /method/{a} HTTP/1.1\r\n"+host+"\r\n")
	extension.reaches, extension.recorderOnly = "a", true
	return append(all, override, without, with, get, extension)
}

// Changes of the protocol.
func upgrades() []*attack {
	var all []*attack
	for name, fields := range map[string]string{
		"h2c": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "h2c without settings": "Connection: Upgrade\r\nUpgrade: h2c\r\n", "H2C": "Connection: Upgrade\r\nUpgrade: H2C\r\n", "websocket, h2c": "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", "h2c, websocket": "Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n",
		"two lines": "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n", "h2": "Connection: Upgrade\r\nUpgrade: h2\r\n", "HTTP/2.0": "Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n", "TLS": "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", "tab and h2c": "Connection: Upgrade\r\nUpgrade: \th2c\r\n", "x h2c": "Connection: Upgrade\r\nUpgrade: x/h2c\r\n",
		"h2c with a comma": "Connection: Upgrade\r\nUpgrade: ,h2c\r\n", "not named": "Upgrade: h2c\r\n", "named in another line": "Connection: keep-alive\r\nConnection: upgrade\r\nUpgrade: h2c\r\n",
	} {
		a := request("Upgrade", name, "ab", "GET /open/{a} HTTP/1.1\r\n"+host+fields+"\r\n"+afterwards)
		if !slices.Contains([]string{"x h2c", "h2", "HTTP/2.0", "TLS"}, name) { // h2c is the one that backends know
			a.fields = map[string]string{"upgrade": "", "http2-settings": ""}
		}
		all = append(all, a,
			request("Upgrade", name+" and a body", "a", framed("POST /open/{a} HTTP/1.1\r\n"+host+fields+"Content-Length: {length}\r\n\r\n", smuggled, 0)),
			request("Upgrade", name+" and chunks", "a", framed("POST /open/{a} HTTP/1.1\r\n"+host+fields+chunked+"\r\n", "{size}\r\n"+smuggled+"\r\n0\r\n\r\n", 1)))
	}
	socket := "GET /open/{a} HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	for status, more := range map[string]string{"200 OK": "Content-Length: 0\r\n", "426 No": "Content-Length: 0\r\n", "204 No Content": ""} {
		a := &attack{family: "Upgrade", name: "refused with " + status + ", bytes that came too early", sends: "ab", recorderOnly: true, behind: behaviour{answer: "HTTP/1.1 " + status + "\r\n" + more + "\r\n"}, h1: []step{{send: socket + afterwards}}}
		all = append(all, a)
	}
	// What follows 101 is another protocol: it may hold anything, and the connection serves nobody else afterwards.
	return append(all,
		&attack{family: "Upgrade", name: "accepted, with requests in it", sends: "ah", recorderOnly: true, behind: behaviour{answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"}, h1: []step{{send: socket, await: 1}, {send: smuggled}}},
		&attack{family: "Upgrade", name: "accepted without being asked", sends: "ah", recorderOnly: true, behind: behaviour{answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"}, h1: []step{{send: "GET /open/{a} HTTP/1.1\r\n" + host + "\r\n", await: 1}, {send: smuggled}}},
		&attack{family: "Upgrade", name: "accepted to another protocol", sends: "ah", fields: map[string]string{"via": "1.1 slipway"}, recorderOnly: true, behind: behaviour{answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"}, h1: []step{{send: socket, await: 1}, {send: smuggled}}})
}

// Trailers that say what only a head may.
func trailers() []*attack {
	var all []*attack
	for _, name := range []string{
		"Authorization", "Content-Length", "Transfer-Encoding", "Host", "Connection", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-IP", "TE", "Trailer", "Expect", "Upgrade", "Cache-Control",
		"Content-Type", "Content-Encoding", "Content-Range", "Set-Cookie", "Cookie", "X_Forwarded_For", "x-forwarded-for", "Keep-Alive", "Proxy-Connection", "Content_Length", "Transfer_Encoding",
	} {
		for _, announced := range []string{"", "Trailer: " + name + "\r\n"} {
			for _, path := range []string{"open", "private"} {
				a := request("trailers", fmt.Sprintf("%s, announced: %t, /%s", name, announced != "", path), "a",
					"POST /"+path+"/{a} HTTP/1.1\r\n"+host+"X-API-Key: {key}\r\n"+announced+chunked+"\r\n4\r\nbody\r\n0\r\n"+name+": {x}\r\n\r\n")
				a.keyed = "a"
				all = append(all, a)
			}
		}
	}
	for name, trailer := range map[string]string{
		"the key itself": "X-API-Key: {key}\r\n", "folded": "X: y\r\n z\r\n", "bare LF": "X: y\nContent-Length: {x}\r\n", "space before the colon": "X : y\r\n", "no colon": "GET /open/{h} HTTP/1.1\r\n", "NUL": "X: \x00\r\n", "bare CR": "X: y\r" + "Content-Length: {x}\r\n",
	} {
		all = append(all, request("trailers", name, "a", "POST /open/{a} HTTP/1.1\r\n"+host+chunked+"\r\n4\r\nbody\r\n0\r\n"+trailer+"\r\n"+smuggled))
	}
	unlocked := request("trailers", "the key comes too late", "a", "POST /private/{a} HTTP/1.1\r\n"+host+"Trailer: X-API-Key\r\n"+chunked+"\r\n0\r\nX-API-Key: {key}\r\n\r\n")
	unlocked.never = "a"
	return append(all, unlocked)
}

// Fields that are the gateway's to say, or one connection's.
func connections() []*attack {
	var all []*attack
	vouched := map[string]string{"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http", "x-forwarded-host": "{host}", "host": "{host}"}
	for _, option := range []string{
		"X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Proto, X-Forwarded-Host, X-Forwarded-For", "close, X-Forwarded-For", "Host", "Via", "Content-Length", "Transfer-Encoding", "Authorization", "Cookie", "X-API-Key", "Upgrade", "TE", "Trailer", "\"X-Forwarded-For\"",
		",,,X-Forwarded-For,,", "keep-alive\r\nConnection: X-Forwarded-For", "X-Forwarded-For\x0b", "*", "Connection",
	} {
		a := request("fields of a connection", "Connection: "+option, "ab", framed("POST /open/{a} HTTP/1.1\r\n"+host+"Connection: "+option+"\r\nContent-Length: 4\r\n\r\nbody", afterwards, 4))
		a.fields = vouched
		all = append(all, a)
	}
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "Forwarded", "X-Real-IP", "X_Forwarded_For", "X-Forwarded_For", "x_real_ip", "Proxy-Connection", "Keep-Alive", "HTTP2-Settings"} {
		a := request("fields of a connection", name, "a", "GET /open/{a} HTTP/1.1\r\n"+host+name+": {x}\r\n\r\n")
		a.fields, a.reaches = vouched, "a"
		all = append(all, a)
	}
	named := request("fields of a connection", "a field that Connection names", "a", "GET /open/{a} HTTP/1.1\r\n"+host+"Connection: X-Own\r\nX-Own: {x}\r\n\r\n")
	key := request("fields of a connection", "the key, named", "a", "GET /private/{a} HTTP/1.1\r\n"+host+"Connection: X-API-Key\r\nX-API-Key: {key}\r\n\r\n")
	key.keyed = "a"
	wrong := request("fields of a connection", "two keys", "a", "GET /private/{a} HTTP/1.1\r\n"+host+"X-API-Key: {x}\r\nX-API-Key: wrong\r\n\r\n")
	wrong.never = "a"
	return append(all, named, key, wrong)
}
