package gatewayattack

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience is how long a client waits at most for an answer, and how long nothing has to come before it believes that
// nothing will.
type patience struct {
	answer, quiet time.Duration
}

var patient = patience{answer: 3 * time.Second, quiet: 250 * time.Millisecond}

// answer is a response as the client reads it.
type answer struct {
	status int
	fields [][2]string
	// trailers are the fields after the body.
	trailers [][2]string
	body     string
	whole    bool // as far as its framing tells
}

// client is a connection to what is attacked.
type client struct {
	conn net.Conn

	mu   sync.Mutex
	in   []byte
	last time.Time
	done chan struct{} // closed when the other end has closed
}

func (g *target) connect(secure string, http2 bool) (*client, error) {
	conn, err := g.dial(secure, http2)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, last: time.Now(), done: make(chan struct{})}, nil
}

func (g *target) dial(secure string, http2 bool) (net.Conn, error) {
	if secure == "" {
		return net.Dial("tcp", g.plain)
	}
	config := &tls.Config{ServerName: secure, RootCAs: g.roots}
	if http2 {
		config.NextProtos = []string{"h2"}
	}
	return tls.Dial("tcp", g.secure, config)
}

// collect reads until the other end closes.
func (c *client) collect() {
	defer close(c.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.conn.Read(buffer)
		c.mu.Lock()
		c.in = append(c.in, buffer[:n]...)
		c.last = time.Now()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *client) got() ([]byte, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.in), c.last
}

// await waits until the condition holds for what came, the other end has closed, or the time is over.
func (c *client) await(limit time.Duration, met func(in []byte, quiet time.Duration) bool) {
	end := time.After(limit)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		in, last := c.got()
		if met(in, time.Since(last)) {
			return
		}
		select {
		case <-c.done:
			return
		case <-end:
			return
		case <-look.C:
		}
	}
}

// pause waits for a while, unless the other end closes.
func (c *client) pause(d time.Duration) {
	select {
	case <-c.done:
	case <-time.After(d):
	}
}

// play plays the attack and notes what came back.
func (p *played) play(g *target) {
	p.lane.records.behave(p)
	c, err := g.connect(p.secure, len(p.h2) > 0)
	if err != nil {
		p.trouble = err.Error()
		return
	}
	if len(p.h2) > 0 {
		p.playHTTP2(c, g.patience)
		return
	}
	answerWait, quietWait := g.answer, g.quiet
	defer c.conn.Close()
	go c.collect()
	for _, s := range p.h1 {
		if s.send != "" {
			_ = c.conn.SetWriteDeadline(time.Now().Add(answerWait))
			if _, err := c.conn.Write([]byte(s.send)); err != nil {
				break // it was told to go, which is fine
			}
		}
		if s.await > 0 {
			c.await(answerWait, func(in []byte, _ time.Duration) bool {
				answers, _ := readAnswers(in, p.head)
				return len(finals(answers)) >= s.await
			})
		}
		if s.pause > 0 {
			c.pause(s.pause)
		}
		if s.halfClose {
			closeWrite(c.conn)
		}
		if s.cut {
			closeWrite(belowTLS(c.conn))
		}
		if s.reset {
			reset(c.conn)
		}
	}
	began := time.Now()
	c.await(answerWait, func(in []byte, quiet time.Duration) bool {
		answers, err := readAnswers(in, p.head)
		wait := 3 * quietWait
		if err == nil && len(finals(answers)) >= len(p.sends) {
			wait = quietWait
			if p.noVictim { // nothing can follow
				wait /= 10
			}
		}
		return min(quiet, time.Since(began)) > wait
	})
	p.got, _ = c.got()
	answers, err := readAnswers(p.got, p.head)
	p.answers = answers
	if err != nil {
		p.trouble = err.Error()
	}
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// belowTLS is the connection without TLS.
func belowTLS(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}

func reset(conn net.Conn) {
	conn = belowTLS(conn)
	if plain, ok := conn.(*net.TCPConn); ok {
		_ = plain.SetLinger(0)
	}
	_ = conn.Close()
}

// finals are the answers without the informational ones.
func finals(answers []answer) []answer {
	var out []answer
	for _, a := range answers {
		if a.status >= 200 || a.status == 101 {
			out = append(out, a)
		}
	}
	return out
}

var errAnswer = errors.New("the answer is none")

// readAnswers reads the answers of a connection strictly. A last one that is cut short counts.
func readAnswers(in []byte, head bool) ([]answer, error) {
	var answers []answer
	for len(in) > 0 {
		end := bytes.Index(in, []byte("\r\n\r\n"))
		if end < 0 {
			if bytes.HasPrefix(in, []byte("HTTP/1.")) || len(in) < 7 {
				return answers, nil
			}
			return answers, fmt.Errorf("%w: %q", errAnswer, in[:min(len(in), 200)])
		}
		statusLine, rest, _ := strings.Cut(string(in[:end+2]), "\r\n")
		words := strings.SplitN(statusLine, " ", 3)
		status, err := strconv.Atoi(words[min(1, len(words)-1)])
		if err != nil || len(words) != 3 || (words[0] != "HTTP/1.1" && words[0] != "HTTP/1.0") || status < 100 || status > 599 {
			return answers, fmt.Errorf("%w: %q", errAnswer, in[:min(len(in), 200)])
		}
		fields, ok := strictly.fields([]byte(rest))
		if !ok {
			return answers, fmt.Errorf("%w: %q", errAnswer, in[:min(len(in), 200)])
		}
		a := answer{status: status, fields: fields}
		in = in[end+4:]
		if status == 101 {
			return append(answers, a), nil // another protocol from here on
		}
		if status >= 200 && status != 204 && status != 304 && !head {
			n := answerBody(&a, in)
			in = in[n:]
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// answerBody reads the body of an answer, as far as it came.
func answerBody(a *answer, in []byte) int {
	framing := message{fields: a.fields}
	if len(framing.values("transfer-encoding")) == 0 && len(framing.values("content-length")) == 0 {
		a.body = string(in)
		return len(in)
	}
	n, state := strictly.body(&framing, in)
	a.body, a.trailers, a.whole = string(framing.body), framing.trailers, state == whole
	if state == broken {
		a.body += fmt.Sprintf(" and %q", in)
		return len(in)
	}
	return n
}

// victim asks for something of its own, and says what was wrong with what it got.
func (g *target) victim(l *lane, number int64) string {
	conn, err := g.dial("", false)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(4 * g.answer))
	id := fmt.Sprintf("zq%06dv", number)
	var in []byte
	for round := range 2 {
		text := fmt.Sprintf("GET /open/%s?%d HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", id, round, l.host, id)
		if _, err := conn.Write([]byte(text)); err != nil {
			return "cannot send: " + err.Error()
		}
		buffer := make([]byte, 16<<10)
		for {
			answers, err := readAnswers(in, false)
			if last := finals(answers); err == nil && len(last) == round+1 && strings.HasSuffix(last[round].body, "\n") {
				break
			}
			n, readErr := conn.Read(buffer)
			in = append(in, buffer[:n]...)
			if readErr != nil {
				return fmt.Sprintf("got %q, then %v", in, readErr)
			}
		}
		answers, _ := readAnswers(in, false)
		last := finals(answers)[round]
		if got, _ := findID(last.body); got != id || last.status != 200 {
			return fmt.Sprintf("got %q as answer to %q", in, text)
		}
	}
	return ""
}
