package gatewayattack

import (
	"fmt"
	"strings"
)

// Cookies of session affinity that the gateway has not set, on a route that has it. Each request is served as one without a
// cookie: what a client makes up leads nowhere, and keeps nobody out.
func sessions() []*attack {
	valid := strings.Repeat("AbCdEfGh", 4)
	var all []*attack
	for name, cookie := range map[string]string{
		"none":                   "a=b",
		"empty":                  "lb=",
		"without =":              "lb",
		"an address":             "lb=127.0.0.1:80",
		"zeros":                  "lb=" + strings.Repeat("A", 32),
		"of the right form":      "lb=" + valid,
		"one character too long": "lb=" + valid + "A",
		"one of 20 KiB":          "lb=" + strings.Repeat("A", 20<<10),
		"thousands":              strings.Repeat("lb="+valid+"; ", 500),
		"no end":                 "lb=" + valid + ";;;;; ;",
		"quoted":                 `lb="` + valid + `"`,
		"an attribute":           "lb=" + valid + "; Path=/; Domain=two.test",
		"another host":           "lb=" + hostTwo,
		"a path":                 "lb=../../private",
		"not ASCII":              "lb=\xff\xfe" + valid[2:],
		"$Version":               `$Version=1; lb="` + valid + `"; $Path=/`,
	} {
		h1 := request("sessions", name, "a", "GET /sticky/{a} HTTP/1.1\r\n"+host+"Cookie: "+cookie+"\r\n\r\n")
		two := request("sessions", name+", twice", "a", "GET /sticky/{a} HTTP/1.1\r\n"+host+"Cookie: "+cookie+"\r\nCookie: "+cookie+"\r\n\r\n")
		h2 := &attack{family: "sessions", name: name + " over HTTP/2", sends: "a", h2: []frame{{stream: 1, end: true, fields: []string{
			":method", "GET", ":scheme", "http", ":path", "/sticky/{a}", ":authority", "{host}", "cookie", cookie, "cookie", "x=y",
		}}}}
		for _, each := range []*attack{h1, two, h2} {
			each.reaches, each.recorderOnly = "a", true
			all = append(all, each)
		}
	}
	for _, line := range []string{"\r", "\n", "\x00"} {
		a := request("sessions", fmt.Sprintf("%q in it", line), "a", "GET /sticky/{a} HTTP/1.1\r\n"+host+"Cookie: lb="+valid+line+"X: y\r\n\r\n")
		a.recorderOnly = true
		all = append(all, a)
	}
	return all
}
