package gatewayattack

import (
	"fmt"
	"strings"
)

// Hosts that are none, or another's: RFC 9112, 3.2; RFC 9110, 7.2.
func hosts() []*attack {
	var all []*attack
	for _, text := range []string{
		"admin.test:80:80", "admin.test.", "admin.test..", "admin.test,x", "x,admin.test", "admin.test;x", "admin.test x", "[admin.test]", "[admin.test", "admin.test]", "admin.test/", "admin.test?x", "admin.test#x", "x@admin.test", "admin.test@x", "admin.test\\x", "admin.test:", "admin.test:x", "admin.test:-1",
		"admin.test:99999", "ADMIN.TEST", "Admin.Test.", "admin%2etest", "%61dmin.test", "admin.test%00", ".admin.test", "admin..test", "admin_.test", "\"admin.test\"", "<admin.test>", "admin.test\x00", "admin.test\xff", "\xef\xbd\x81dmin.test", "admin\xe3\x80\x82test", "admin.test:80,x",
		"http://admin.test", "admin.test&x", "admin.test*", "*.test", "-admin.test", "admin.test-", "[::1]:80:80", "[::1]x", "[::1%25x]", "[v1.x]", "1.2.3", "0x7f.1", "127.0.0.1.", strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 150) + "test", "admin.test:80:", "admin.test::80", "admin.test:+80", "admin.test:0x50", "{host},admin.test", "{host} admin.test",
	} {
		name := fmt.Sprintf("%.60q", text)
		a := request("hosts", name, "a", "GET /host/{a} HTTP/1.1\r\nHost: "+text+"\r\n\r\n")
		two := &attack{family: "hosts", name: name + " over HTTP/2", sends: "a", h2: []frame{{stream: 1, end: true, fields: []string{":method", "GET", ":scheme", "http", ":path", "/host/{a}", ":authority", text}}}}
		target := request("hosts", name+" in the target", "a", "GET http://"+text+"/host/{a} HTTP/1.1\r\nHost: "+text+"\r\n\r\n")
		for _, each := range []*attack{a, two, target} {
			// Only addresses and names that are such may be for a route without a host. The others are none.
			if text != "1.2.3" && text != "0x7f.1" && text != "127.0.0.1." {
				each.never = "a"
			}
			each.recorderOnly = true
			all = append(all, each)
		}
	}
	two := request("hosts", "two hosts", "a", "GET /host/{a} HTTP/1.1\r\nHost: x.test\r\nHost: admin.test\r\n\r\n")
	empty := request("hosts", "an empty host", "a", "GET /host/{a} HTTP/1.1\r\nHost:\r\n\r\n")
	differs := &attack{family: "hosts", name: ":authority and host differ", sends: "a", h2: []frame{{stream: 1, end: true, fields: []string{":method", "GET", ":scheme", "http", ":path", "/host/{a}", ":authority", "{host}", "host", "admin.test"}}}}
	without := &attack{family: "hosts", name: "host without :authority", sends: "a", never: "a", h2: []frame{{stream: 1, end: true, fields: []string{":method", "GET", ":scheme", "http", ":path", "/host/{a}", "host", "admin.test"}}}}
	for _, a := range []*attack{two, without} {
		a.never = "a"
	}
	all = append(all, two, empty, differs, without)
	for _, text := range []string{"{host}", "{host}:80", "x.test", "[::1]", "[::1]:8080", "127.0.0.1", "xn--nxasmq6b.test", "a-b.test", "X.TEST"} {
		a := request("hosts", "as it should be: "+text, "a", "GET /open/{a} HTTP/1.1\r\nHost: "+text+"\r\n\r\n")
		a.reaches, a.recorderOnly = "a", text != "{host}"
		all = append(all, a)
	}
	return all
}

// A server name of TLS that is not the host of the request.
func serverNames() []*attack {
	get := func(path, host string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	}
	var all []*attack
	for name, test := range map[string]struct{ server, host, never, reaches string }{
		"the same":              {hostOne, hostOne, "", "a"},
		"another one's":         {hostOne, hostTwo, "a", ""},
		"in upper case":         {hostOne, "TWO.test", "a", ""},
		"with a port":           {hostOne, hostTwo + ":443", "a", ""},
		"with a dot at the end": {hostOne, hostTwo + ".", "a", ""},
		"the protected one's":   {hostOne, hostAdmin, "a", ""},
	} {
		h1 := request("server names", name, "a", get("/open/{a}", test.host))
		second := request("server names", name+", the second request", "ab", get("/open/{a}", test.server)+get("/open/{b}", test.host))
		second.never = strings.ReplaceAll(test.never, "a", "b")
		h2 := &attack{family: "server names", name: name + " over HTTP/2", sends: "a", h2: []frame{{stream: 1, end: true, fields: []string{":method", "GET", ":scheme", "https", ":path", "/open/{a}", ":authority", test.host}}}}
		target := request("server names", name+" in the target", "a", "GET https://"+test.host+"/open/{a} HTTP/1.1\r\nHost: "+test.server+"\r\n\r\n")
		for _, a := range []*attack{h1, h2, target} {
			a.never, a.reaches = test.never, test.reaches
		}
		for _, a := range []*attack{h1, second, h2, target} {
			a.secure, a.recorderOnly = test.server, true
			all = append(all, a)
		}
	}
	return all
}

// Fields that name a client, and lines of the PROXY protocol, from somebody whose word does not count. /inside is for others.
func addresses() []*attack {
	var all []*attack
	for _, field := range []string{
		"X-Forwarded-For", "x-forwarded-for", "X_Forwarded_For", "X-Forwarded_For", "Forwarded", "X-Real-IP", "X-Real-Ip", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "X-Cluster-Client-IP", "X-Envoy-External-Address", "X-Original-Forwarded-For", "Via", "Fastly-Client-IP", "X-ProxyUser-Ip", "Client-IP", "Remote-Addr",
	} {
		for _, value := range []string{"192.0.2.1", "192.0.2.1, 192.0.2.1", "for=192.0.2.1", "127.0.0.1, 192.0.2.1", "192.0.2.1:80", "::ffff:192.0.2.1", "[2001:db8::1]:80", "\"192.0.2.1\""} {
			name := field + ": " + value
			all = append(all,
				request("addresses", name, "a", "GET /inside/{a} HTTP/1.1\r\n"+host+field+": "+value+"\r\n\r\n"),
				request("addresses", name+", in Connection", "a", "GET /inside/{a} HTTP/1.1\r\n"+host+"Connection: "+field+"\r\n"+field+": "+value+"\r\n\r\n"),
				&attack{family: "addresses", name: name + " over HTTP/2", sends: "a", h2: []frame{{stream: 1, end: true, fields: []string{":method", "GET", ":scheme", "http", ":path", "/inside/{a}", ":authority", "{host}", strings.ToLower(field), value}}}})
		}
	}
	for name, before := range map[string]string{
		"PROXY, version 1":           "PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n",
		"PROXY, version 1, IPv6":     "PROXY TCP6 2001:db8::1 2001:db8::2 1 80\r\n",
		"PROXY, version 2":           "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x01\x00\x50",
		"PROXY, in lower case":       "proxy tcp4 192.0.2.1 192.0.2.2 1 80\r\n",
		"PROXY, after an empty line": "\r\nPROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n",
	} {
		all = append(all, request("addresses", name, "a", before+"GET /inside/{a} HTTP/1.1\r\n"+host+"\r\n"))
	}
	for _, target := range []string{"/inside/{a}", "/open/..;/inside/{a}", "/%69nside/{a}", "//inside/{a}", "/open/..%2Finside/{a}", "/;%2Fx/inside/{a}"} {
		all = append(all, request("addresses", "the path "+target, "a", "GET "+target+" HTTP/1.1\r\n"+host+"\r\n"))
	}
	for _, a := range all {
		a.never = "a"
	}
	return all
}

// Ways into /private that do not look like it. Each is tried as it is, with the key of another route, and over HTTP/2.
func paths() []*attack {
	before := []string{
		"/", "//", "///", "/./", "/.//", "/;/", "/;x/", "/;x=y/", "/;%2Fx/", "/;%2fx/", "/;%5Cx/", "/;%5cx/", `/;\x/`, "/%3B/", "/%3Bx/", "/%3B%2Fx/", "/x/../", "/x/..;/", "/x/..;x=y/", "/x/%2e%2e/", "/x/.%2e/", "/x/%2E./", "/x/..%2f", "/x%2f../", "/x%2F..%2F", "/%2F", "/%2f", "/%5C", "/%5c", `/\`, `\`,
		"/x/..%5C", "/x%5C..%5C", `/x/..\`, "/x/..%5c", "/.;/", "/.;x/", "/%2e/", "/%2e;/", "/%2e%2e/", "/../", "/..;/", "/x;/../", "/x;y/../", "/x;%2F../", "/x;%2F..%2F", "/x;/%2e%2e/", "/x/y/../../", "/x//../", "/x//..//../", "/%252e/", "/x/%252e%252e/", "/%252F", "/x%00/../", "/%00/", "/%0a/", "/%0d/", "/%09/", "/%20/", "/x/..%00/", "/x/..%0a/",
		"/x/..%3B/", "/x/..%3b/", "/x/%2e%2e;/", "/x/%2e%2e%2f", "/x/%2e%2e%5c", "/;%2e%2e/", "/;/../", "/;..;/", "/%c0%af", "/x/%c0%ae%c0%ae/", "/%ef%bc%8f", "/%u002f", "/x/..%u2215", "/open/..%2F", "/open;%2F..%2F", "/open/;%2F../../", "/open/%2e%2e;%2F", "/x/?/../", "/x%3F/../", "/x%23/../", "/x#/../",
	}
	after := []string{"/", ";/", ";x=y/", "%2F", "%2f", "%5C", "//", "/./", "%3B/", ";%2F", ";%5C", `\`, "/x/../", "/.;/", "%20/", "%00/", "%0a/", "%2e/", "./"}
	targets := map[string]bool{}
	for _, b := range before {
		for _, word := range []string{"private", "%70rivate", "priv%61te"} {
			targets[b+word+"/{a}"] = true
		}
		targets[b+"private;%2F{a}"] = true
		targets[b+"private%2F{a}"] = true
	}
	for _, a := range after {
		targets["/private"+a+"{a}"] = true
		targets["/;%2Fx/private"+a+"{a}"] = true
		targets["/open/../private"+a+"{a}"] = true
	}
	for _, more := range []string{"/p%72ivate/{a}", "/PRIVATE/{a}", "/private%3Fx/{a}", "/priv%C4%B1te/{a}", "/%2570rivate/{a}", "/x/..%252fprivate/{a}", "/open;%2Fx/private/{a}", "/open/{a}/../../private/{a}", "/open/{a};%2F..%2F..%2Fprivate/x", "/?/../private/{a}", "/open/..;/private/{a}"} {
		targets[more] = true
	}
	var all []*attack
	for target := range targets {
		a := request("paths", target, "a", "GET "+target+" HTTP/1.1\r\n"+host+"\r\n")
		other := request("paths", target+", with another route's key", "a", "GET "+target+" HTTP/1.1\r\n"+host+"X-API-Key: {otherkey}\r\n\r\n")
		h2 := &attack{family: "paths", name: target + ", over HTTP/2", sends: "a", h2: []frame{{stream: 1, end: true, fields: head2(target, "")}}}
		other.otherKeyed = "a"
		for _, each := range []*attack{a, other, h2} {
			each.noVictim = true
			all = append(all, each)
		}
	}
	return append(all, plainPaths()...)
}

// plainPaths are targets that lead nowhere else however they are read: they go on as they are.
func plainPaths() []*attack {
	var all []*attack
	for _, target := range []string{"/open/{a}", "/open/a%2Fb/{a}", "/open//{a}", "/open/x;v=1/{a}", "/open/{a}?x=/private/", "/open/{a}?q=%2e%2e/private", "/open/%7e/{a}", "/open/a%20b/{a}", "/open/{a}/", "/open/%c3%bc/{a}", "/open/a%5Cb/{a}", "/open/{a}?", "/open/{a}?a;b&c"} {
		a := request("paths", "as it should be: "+target, "a", "GET "+target+" HTTP/1.1\r\n"+host+"\r\n")
		a.reaches, a.target, a.noVictim, a.recorderOnly = "a", target, true, true
		all = append(all, a)
	}
	locked := request("paths", "without the key", "a", "GET /private/{a} HTTP/1.1\r\n"+host+"\r\n")
	locked.never = "a"
	unlocked := request("paths", "with the key", "a", "GET /private/{a} HTTP/1.1\r\n"+host+"X-API-Key: {key}\r\n\r\n")
	unlocked.reaches, unlocked.keyed = "a", "a"
	return append(all, locked, unlocked)
}

// Regular expressions, and what they may stop at.
func expressions() []*attack {
	var all []*attack
	for _, target := range []string{"/secret/%0a{a}", "/secret/{a}%0a", "/secret/x%0d{a}", "/secret/%0d%0a{a}", "/secret/%0a/{a}", "/secret/%c2%85{a}", "/secret/%e2%80%a8{a}", "/secret/%ff{a}", "/secret/%c3%28{a}", "/secret/x/{a}%0ax", "/secret//{a}", "/secret/;%0a/{a}"} {
		a := request("regular expressions", target, "a", "GET "+target+" HTTP/1.1\r\n"+host+"\r\n")
		h2 := &attack{family: "regular expressions", name: target + ", over HTTP/2", sends: "a", h2: []frame{{stream: 1, end: true, fields: head2(target, "")}}}
		a.never, h2.never = "a", "a"
		all = append(all, a, h2)
	}
	for _, query := range []string{"q=secret", "q=%0asecret", "q=x%0asecret", "q=secret%0a", "q=%0d%0asecret%0d%0a", "q=%ffsecret", "q=secret%0a&{a}", "x=1&q=%0asecret"} {
		a := request("regular expressions", query, "a", "GET /query/{a}?"+query+" HTTP/1.1\r\n"+host+"\r\n")
		a.never, a.recorderOnly = "a", true
		all = append(all, a)
	}
	for _, end := range []string{"%0a", "%0A", "%0d", "%0d%0a", "%250a", "%25u000a", "%c0%8a", "%c2%85", "%85", "%e2%80%a8", "%e2%80%a9", "%7f", "%09", "%0a;x", ";x%0a", "%0a/..", "\xc2\x85"} {
		for _, zone := range zones {
			for _, before := range []string{"/", "/%0a/", "/x%0a/", "/open/%0a/../../"} {
				target := before + zone + end + "?{a}"
				a := request("regular expressions", target, "a", "GET "+target+" HTTP/1.1\r\n"+host+"\r\n")
				h2 := &attack{family: "regular expressions", name: target + ", over HTTP/2", sends: "a", h2: []frame{{stream: 1, end: true, fields: head2(target, "")}}}
				for _, each := range []*attack{a, h2} {
					each.never, each.noVictim = "a", true
					all = append(all, each)
				}
			}
		}
	}
	open := request("regular expressions", "another query", "a", "GET /query/{a}?q=x HTTP/1.1\r\n"+host+"\r\n")
	open.reaches = "a"
	return append(all, open)
}
