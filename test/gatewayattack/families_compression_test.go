package gatewayattack

import (
	"strings"
)

const compressionFamily = "compression"

// What a client accepts without an end, and bodies that a backend cuts or splits while they are compressed.
func compressions() []*attack {
	const family = compressionFamily
	var all []*attack
	for name, accepted := range map[string]string{
		"many codings": strings.Repeat("gzip;q=0.001,", 4000), "only commas": strings.Repeat(",", 60000), "one long coding": strings.Repeat("z", 60000), "many weights": "gzip" + strings.Repeat(";q=0", 15000),
		"long weight": "gzip;q=0." + strings.Repeat("9", 50000), "control weight": "gzip;q=\t\t1", "quoted": `"gzip"`, "contradictions": "gzip, gzip;q=0, *, *;q=0, identity;q=0",
	} {
		all = append(all,
			request(family, name, "ab", "GET /packed/{a} HTTP/1.1\r\n"+host+"Accept-Encoding: "+accepted+"\r\n\r\n"+afterwards),
			one(family, name+", over HTTP/2", "a", append(head2("/packed/{a}", ""), "accept-encoding", accepted), ""))
	}
	all = append(all, request(family, "many lines", "ab", "GET /packed/{a} HTTP/1.1\r\n"+host+strings.Repeat("Accept-Encoding: gzip\r\n", 300)+"\r\n"+afterwards))
	const page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	second := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Split: {y}\r\n\r\nsplit"
	for _, coding := range []string{"gzip", "zstd"} {
		for name, response := range map[string]string{
			"body shorter than its length": page + "Content-Length: 50\r\n\r\nshort", "no last chunk": page + "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", "half a chunk": page + "Transfer-Encoding: chunked\r\n\r\nff\r\nshort",
			"no line end after the last chunk": page + "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n", "half a trailer": page + "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\nX: y",
		} {
			all = append(all, packed(name+", "+coding, coding, true, behaviour{answer: response, close: true})...)
		}
		for name, response := range map[string]string{
			"more than the length": page + "Content-Length: 2\r\n\r\nok" + second, "length and chunks": page + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second,
			"trailer with a field": page + "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\nContent-Encoding: br\r\nContent-Digest: x\r\n\r\n", "encoded twice": page + "Content-Encoding: gzip\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nok",
		} {
			all = append(all, packed(name+", "+coding, coding, false, behaviour{answer: response})...)
		}
	}
	return all
}

// packed asks for a compressed answer of a backend that misbehaves.
func packed(name, coding string, cut bool, behind behaviour) []*attack {
	return []*attack{
		{family: compressionFamily, name: name, sends: "a", cut: cut, recorderOnly: true, behind: behind, h1: []step{{send: "GET /packed/{a} HTTP/1.1\r\n" + host + "Accept-Encoding: " + coding + "\r\n\r\n"}}},
		{family: compressionFamily, name: name + ", over HTTP/2", sends: "a", cut: cut, recorderOnly: true, behind: behind, h2: []frame{{stream: 1, fields: append(head2("/packed/{a}", ""), "accept-encoding", coding), end: true}}},
	}
}
