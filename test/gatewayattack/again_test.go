package gatewayattack

import (
	"fmt"
	"strings"
	"time"
)

// oracleKept: another client that asks for the page of an attack gets it from a cache only if it is whole, and that of its request.
const oracleKept = "kept"

// Who asks again. Browsers differ in User-Agent, so that a cache does not tell it from others by that.
const (
	againAgent = "again"
	againField = "User-Agent: " + againAgent + "\r\n"
)

// again is what another client got for the page of an attack.
type again struct {
	answer
	trouble string
	// reached reports whether the backend has seen its request.
	reached bool
}

// askAgain asks for the page of the attack as another client, which sends nothing odd.
func (p *played) askAgain(g *target) {
	conn, err := g.dial("", false)
	if err != nil {
		p.again.trouble = err.Error()
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(g.answer))
	text := p.expand("GET /kept/{a} HTTP/1.1\r\n" + host + againField + "\r\n")
	if _, err := conn.Write([]byte(text)); err != nil {
		p.again.trouble = "cannot send: " + err.Error()
		return
	}
	var in []byte
	for buffer := make([]byte, 16<<10); ; {
		n, readErr := conn.Read(buffer)
		in = append(in, buffer[:n]...)
		answers, err := readAnswers(in, false)
		if last := finals(answers); err == nil && len(last) > 0 {
			p.again.answer = last[0]
		}
		if p.again.whole || readErr != nil {
			return
		}
	}
}

// kept judges what the other client got.
func (j *judge) kept(p *played) {
	if !p.asksAgain || p.again.reached || j.relayed != nil {
		return
	}
	got := fmt.Sprintf("another client got %d %q, whole: %t, %s", p.again.status, p.again.body, p.again.whole, p.again.trouble)
	id, _ := findID(p.again.body)
	switch {
	case p.cut:
		j.add(p, oracleKept, "%s: what the backend has cut was kept", got)
	case p.apart:
		j.add(p, oracleKept, "%s: it was kept for another request", got)
	case p.again.status != 200 || !p.again.whole || id != p.id('a') || !strings.HasSuffix(p.again.body, "\n"):
		j.add(p, oracleKept, "%s: it is not what the backend says", got)
	}
}

// fromCache counts the attacks after which another client got its answer from a cache.
func (s *suite) fromCache() int {
	hits := 0
	for _, p := range s.played {
		if p.asksAgain && !p.again.reached && p.again.status == 200 {
			hits++
		}
	}
	return hits
}
