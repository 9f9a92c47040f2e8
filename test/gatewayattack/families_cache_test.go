package gatewayattack

import "strings"

const cacheFamily = "cache"

// Requests and answers with which a cache could take one for another, or a part for the whole. After each, another client asks for
// the same page.
func caches() []*attack {
	var all []*attack
	for name, fields := range map[string]string{
		"many directives": "Cache-Control: " + strings.Repeat("max-age=1,", 6000) + "\r\n", "open quotes": "Cache-Control: x=\"\r\n", "only commas": "Cache-Control: " + strings.Repeat(",", 60000) + "\r\n",
		"many conditions": "If-None-Match: " + strings.Repeat(`"a",`, 15000) + "\r\n", "an open tag": "If-None-Match: \"\r\n", "a long time": "If-Modified-Since: " + strings.Repeat("9", 60000) + "\r\n",
		"a part": "Range: bytes=0-0\r\n", "another browser": "User-Agent: other\r\n", "nothing odd": "",
	} {
		all = append(all, request(cacheFamily, name, "ab", "GET /kept/{a} HTTP/1.1\r\n"+host+fields+"\r\n"+afterwards))
	}
	for name, fields := range map[string]string{
		"another target": "X-Original-Url: /private/{a}\r\nX-Rewrite-Url: /private/{a}\r\n", "another method": "X-Http-Method-Override: POST\r\n", "another host": "X-Host: evil.test\r\n",
		"somebody": "Cookie: session=1\r\n", "another origin": "Origin: https://evil.test\r\n", "a name with an underscore": "X_Original_Url: /private/{a}\r\n",
		"another kind": "Accept: application/x-evil\r\n", "an unknown field of a browser": "Sec-Evil: 1\r\n", "many of them": strings.Repeat("X-Original-Url: /private/{a}\r\n", 200),
	} {
		a := request(cacheFamily, name, "ab", "GET /kept/{a} HTTP/1.1\r\n"+host+fields+"\r\n"+afterwards)
		a.apart = true
		all = append(all, a)
	}
	for name, text := range map[string]string{
		"a body in a GET": "GET /kept/{a} HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello", "an empty query": "GET /kept/{a}? HTTP/1.1\r\n" + host + "\r\n",
		"a doubled slash": "GET //kept/{a} HTTP/1.1\r\n" + host + "\r\n", "an escaped letter": "GET /%6bept/{a} HTTP/1.1\r\n" + host + "\r\n", "a parameter": "GET /kept/{a};a=b HTTP/1.1\r\n" + host + "\r\n",
	} {
		a := request(cacheFamily, name, "ab", text+afterwards)
		a.apart = true
		all = append(all, a)
	}
	for _, a := range all {
		a.asksAgain, a.recorderOnly = true, true
	}
	const page = "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\n"
	second := "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nContent-Length: 5\r\nX-Split: {y}\r\n\r\nsplit"
	for name, response := range map[string]string{
		"body shorter than its length": page + "Content-Length: 50\r\n\r\nshort", "no last chunk": page + "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", "half a chunk": page + "Transfer-Encoding: chunked\r\n\r\nff\r\nshort",
		"half a trailer": page + "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\nX: y",
	} {
		all = append(all, keptAnswers(name, true, behaviour{answer: response, close: true})...)
	}
	for name, response := range map[string]string{
		"more than the length": page + "Content-Length: 10\r\n\r\n{a}\n" + second, "length and chunks": page + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second,
		"a 304 that nobody asked for": "HTTP/1.1 304 Not Modified\r\nCache-Control: public, max-age=60\r\nETag: \"a\"\r\n\r\n" + second,
		"trailers about time":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nCache-Control: public, max-age=60\r\n\r\n",
	} {
		all = append(all, keptAnswers(name, false, behaviour{answer: response})...)
	}
	for _, a := range keptAnswers("an end that is that of the connection", false, behaviour{answer: page + "\r\nhalf a pa", close: true}) {
		a.apart = true // it may be half a page
		all = append(all, a)
	}
	return all
}

// keptAnswers ask for what a backend that misbehaves answers.
func keptAnswers(name string, cut bool, behind behaviour) []*attack {
	all := []*attack{
		{name: name, h1: []step{{send: "GET /kept/{a} HTTP/1.1\r\n" + host + "\r\n"}}},
		{name: name + ", over HTTP/2", h2: []frame{{stream: 1, fields: head2("/kept/{a}", ""), end: true}}},
	}
	for _, a := range all {
		a.family, a.sends, a.cut, a.recorderOnly, a.asksAgain, a.behind = cacheFamily, "a", cut, true, true, behind
	}
	return all
}
