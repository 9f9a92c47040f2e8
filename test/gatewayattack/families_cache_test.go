package gatewayattack

import "strings"

const cacheFamily = "cache"

// Requests and answers with which a cache could take one for another, or a part for the whole.
func caches() []*attack {
	var all []*attack
	for name, fields := range map[string]string{
		"many directives": "Cache-Control: " + strings.Repeat("max-age=1,", 6000) + "\r\n", "open quotes": "Cache-Control: x=\"\r\n", "only commas": "Cache-Control: " + strings.Repeat(",", 60000) + "\r\n",
		"many conditions": "If-None-Match: " + strings.Repeat(`"a",`, 15000) + "\r\n", "an open tag": "If-None-Match: \"\r\n", "a long time": "If-Modified-Since: " + strings.Repeat("9", 60000) + "\r\n",
		"another target": "X-Original-Url: /private/{a}\r\nX-Rewrite-Url: /private/{a}\r\n", "another method": "X-Http-Method-Override: POST\r\n", "a part": "Range: bytes=0-0\r\n",
	} {
		all = append(all, request(cacheFamily, name, "ab", "GET /kept/{a} HTTP/1.1\r\n"+host+fields+"\r\n"+afterwards))
	}
	all = append(all, request(cacheFamily, "a body in a GET", "ab", "GET /kept/{a} HTTP/1.1\r\n"+host+"Content-Length: 5\r\n\r\nhello"+afterwards))
	const page = "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\n"
	second := "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nContent-Length: 5\r\nX-Split: {y}\r\n\r\nsplit"
	for name, response := range map[string]string{
		"body shorter than its length": page + "Content-Length: 50\r\n\r\nshort", "no last chunk": page + "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", "half a chunk": page + "Transfer-Encoding: chunked\r\n\r\nff\r\nshort",
		"half a trailer": page + "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\nX: y",
	} {
		all = append(all, keptAnswers(name, true, behaviour{answer: response, close: true})...)
	}
	for name, response := range map[string]string{
		"more than the length": page + "Content-Length: 2\r\n\r\nok" + second, "length and chunks": page + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second,
		"a 304 that nobody asked for": "HTTP/1.1 304 Not Modified\r\nCache-Control: public, max-age=60\r\nETag: \"a\"\r\n\r\n" + second,
		"trailers about time":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nCache-Control: public, max-age=60\r\n\r\n",
	} {
		all = append(all, keptAnswers(name, false, behaviour{answer: response})...)
	}
	return all
}

// keptAnswers asks twice for what a backend that misbehaves answers.
func keptAnswers(name string, cut bool, behind behaviour) []*attack {
	return []*attack{
		{family: cacheFamily, name: name, sends: "a", cut: cut, recorderOnly: true, behind: behind, h1: []step{{send: "GET /kept/{a} HTTP/1.1\r\n" + host + "\r\n"}}},
		{family: cacheFamily, name: name + ", over HTTP/2", sends: "a", cut: cut, recorderOnly: true, behind: behind, h2: []frame{{stream: 1, fields: head2("/kept/{a}", ""), end: true}}},
	}
}
