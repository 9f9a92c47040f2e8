package gatewayattack

import (
	"strings"
	"time"
)

// Clients that end their side while they wait for answers (RFC 9112, 9.6): a request that is whole without the end is answered, and
// one that is not never looks whole. Over TLS, step.halfClose is the message that ends it, and step.cut the end of the connection
// below without one, which whoever is on the way can make.
func halfCloses() []*attack {
	const family = "half-close"
	const short = 50 * time.Millisecond
	const at = "Host: {at}\r\n" // the host of the way in
	get := func(id string) string { return "GET /open/{" + id + "} HTTP/1.1\r\n" + at + "\r\n" }
	post := "POST /open/{a} HTTP/1.1\r\n" + at
	tail := "POST /open/{b} HTTP/1.1\r\n" + at
	type shape struct {
		text                    string
		sends, reaches, partial string
		never                   string
	}
	var all []*attack
	for name, s := range map[string]shape{
		"a whole request":                   {text: get("a"), sends: "a", reaches: "a"},
		"a whole request with a length":     {text: post + "Content-Length: {length}\r\n\r\n{body}" + smuggled, sends: "a", reaches: "a"},
		"a whole request in chunks":         {text: post + "Transfer-Encoding: chunked\r\n\r\n{size}\r\n" + smuggled + "\r\n0\r\n\r\n", sends: "a", reaches: "a"},
		"nothing":                           {},
		"a line end":                        {text: "\r\n", sends: "a"},
		"half a request line":               {text: "GET /open/{a}", never: "a", sends: "a"},
		"half a head":                       {text: "GET /open/{a} HTTP/1.1\r\n" + at, never: "a", sends: "a"},
		"half a line end":                   {text: "GET /open/{a} HTTP/1.1\r\n" + at + "\r", never: "a", sends: "a"},
		"a head without its body":           {text: post + "Content-Length: 5\r\n\r\n", sends: "a", partial: "a"},
		"half a body":                       {text: post + "Content-Length: 20000\r\n\r\n" + smuggled, sends: "a", partial: "a"},
		"half a body that is kept":          {text: post + "Content-Length: 300\r\n\r\n" + smuggled, sends: "a", partial: "a"},
		"half a chunk":                      {text: post + "Transfer-Encoding: chunked\r\n\r\nffff\r\n" + smuggled, sends: "a", partial: "a"},
		"chunks without the last":           {text: post + "Transfer-Encoding: chunked\r\n\r\n{size}\r\n" + smuggled + "\r\n", sends: "a", partial: "a"},
		"chunks without the end":            {text: post + "Transfer-Encoding: chunked\r\n\r\n{size}\r\n" + smuggled + "\r\n0\r\n", sends: "a", partial: "a"},
		"half a trailer":                    {text: post + "Transfer-Encoding: chunked\r\n\r\n{size}\r\n" + smuggled + "\r\n0\r\nX: y\r\n", sends: "a", partial: "a"},
		"a body that is expected":           {text: post + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", sends: "a", partial: "a"},
		"three requests":                    {text: get("a") + get("b") + get("c"), sends: "abc", reaches: "abc"},
		"a request and half a head":         {text: get("a") + "GET /open/{b} HTTP/1.1\r\n" + at, sends: "ab", reaches: "a", never: "b"},
		"a request and half a body":         {text: get("a") + tail + "Content-Length: 200\r\n\r\n" + smuggled, sends: "ab", reaches: "a", partial: "b"},
		"a request and a preface of HTTP/2": {text: get("a") + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", sends: "ab", reaches: "a"},
	} {
		for way, steps := range map[string][]step{
			"its end with it":           {{send: s.text, halfClose: true}},
			"its end later":             {{send: s.text, pause: short}, {halfClose: true}},
			"the end of the connection": {{send: s.text, cut: true}},
			"its end, then a reset":     {{send: s.text, halfClose: true, pause: short}, {reset: true}},
			"its end, and more is sent": {{send: s.text, halfClose: true, pause: short}, {send: get("h")}},
		} {
			for _, secure := range []string{"", hostOne} {
				a := &attack{family: family, name: name + ", " + way, sends: s.sends, reaches: s.reaches, partial: s.partial, never: s.never, secure: secure}
				to := "{host}"
				if secure != "" {
					a.name, a.recorderOnly, to = a.name+", over TLS", true, secure
				}
				for _, part := range steps {
					part.send = strings.ReplaceAll(part.send, "{at}", to)
					a.h1 = append(a.h1, part)
				}
				if strings.HasSuffix(way, "a reset") || secure != "" && way == "the end of the connection" {
					a.reaches = "" // who has left need not be served
				}
				if a.recorderOnly && a.reaches != "" {
					a.gets = 200
				}
				all = append(all, a)
			}
		}
	}
	return all
}
