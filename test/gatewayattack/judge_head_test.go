package gatewayattack

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// head judges the head of an answer, and whether what follows is what it says.
func (j *judge) head(p *played, a *answer) {
	message := message{fields: a.fields}
	lengths, codings := message.values("content-length"), message.values("transfer-encoding")
	switch {
	case len(lengths) > 1:
		j.add(p, oracleHead, "the client got %d lengths: %q", len(lengths), a.fields)
	case len(lengths) == 1 && !isNumber(lengths[0]):
		j.add(p, oracleHead, "the client got a length that is no number: %q", a.fields)
	case len(lengths)+len(codings) > 1:
		j.add(p, oracleHead, "the client got a length and chunks: %q", a.fields)
	case len(lengths)+len(codings) > 0 && (a.status < 200 || a.status == 204):
		j.add(p, oracleHead, "the client got %d with a body: %q", a.status, a.fields)
	case len(p.h2) > 0 && a.whole && len(lengths) == 1 && !p.head && a.status != 304 && lengths[0] != strconv.Itoa(len(a.body)):
		j.add(p, oracleHead, "the client got %d bytes after the length %s", len(a.body), lengths[0])
	case a.body != "" && (p.head || a.status == 204 || a.status == 304):
		j.add(p, oracleHead, "the client got a body with %d, HEAD: %t: %q", a.status, p.head, a.body)
	}
	if len(p.h2) > 0 {
		for _, name := range []string{"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te"} {
			if len(message.values(name)) > 0 {
				j.add(p, oracleHead, "the client got %s over HTTP/2: %q", name, a.fields)
			}
		}
	}
	for _, field := range a.trailers {
		if slices.Contains(neverTrailers, strings.ToLower(field[0])) {
			j.add(p, oracleHead, "the client got the trailer %q", field)
		}
	}
}

// neverTrailers are names of fields that say how a message is framed, where it goes, or who may read it: RFC 9110, 6.5.1.
var neverTrailers = []string{
	"content-length", "transfer-encoding", "connection", "keep-alive", "trailer", "te", "upgrade", "host", "set-cookie",
	"authorization", "www-authenticate", "content-encoding", "content-type", "content-range", "cache-control", "location",
}

func isNumber(text string) bool {
	return text != "" && len(text) < 19 && strings.Trim(text, "0123456789") == ""
}

// reused looks for requests that come on the connection of an answer that spoils it. Who has a whole answer may ask again before
// the backend sends what is too much: a proxy in front does. Then nothing is spoiled yet.
func (j *judge) reused(requests []*seen) {
	spoiled := map[int]*played{}
	for _, s := range requests {
		if p := spoiled[s.connection]; p != nil {
			j.add(p, oracleReused, "%s, on the connection of this answer", s)
			delete(spoiled, s.connection) // once is enough
		}
		if p := j.owner(s.id); p != nil && p.spoils && s.letter == 'a' && (j.relayed == nil || p.gets == http.StatusBadGateway) {
			spoiled[s.connection] = p
		}
	}
}
