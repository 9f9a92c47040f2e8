package gatewayattack

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// lane is a backend of the gateway, with a host of its own: the recording backend itself, or a real server with the
// recording backend behind it.
type lane struct {
	name, host string
	// address is where the gateway sends requests, and records what the backend saw.
	address string
	// protocol is its appProtocol: what the gateway speaks to it. "" is HTTP/1.1.
	protocol string
	records  *recorder
	// real: a server of somebody else's reads the gateway's bytes.
	real bool
	// over is the protocol of one that does not behave.
	over string
	// authority is who has issued its certificate, and certified the name in it. Nil: it does not speak TLS.
	authority []byte
	certified string
	// hostile is held by the attack that has the backend to itself; nil where everybody shares it.
	hostile *sync.Mutex
}

// recorder is a backend that keeps every byte that it gets.
type recorder struct {
	listener net.Listener

	mu          sync.Mutex
	connections []*recorded
	behaviours  map[string]behaviour
	last        time.Time // when the last byte came
	wait        sync.WaitGroup
}

// recorded is what came on a connection.
type recorded struct {
	conn net.Conn
	out  *bufio.Writer // to conn
	in   []byte
}

func newRecorder(t testing.TB) *recorder {
	t.Helper()
	return record(t, loopback, (*recorder).serve)
}

// loopback is where everything listens, but what a cluster knows as an endpoint.
const loopback = "127.0.0.1"

// record keeps every byte of the connections to an address that serve reads.
func record(t testing.TB, address string, serve func(r *recorder, one *recorded)) *recorder {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return recordOn(t, listener, serve)
}

// recordOn is record for a listener.
func recordOn(t testing.TB, listener net.Listener, serve func(r *recorder, one *recorded)) *recorder {
	t.Helper()
	r := &recorder{listener: listener, behaviours: map[string]behaviour{}, last: time.Now()}
	r.wait.Go(func() { r.accept(serve) })
	t.Cleanup(r.close)
	return r
}

func (r *recorder) address() string { return r.listener.Addr().String() }

func (r *recorder) accept(serve func(r *recorder, one *recorded)) {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		one := &recorded{conn: conn, out: bufio.NewWriter(conn)}
		r.mu.Lock()
		r.connections = append(r.connections, one)
		r.mu.Unlock()
		r.wait.Go(func() {
			defer conn.Close()
			serve(r, one)
		})
	}
}

// close ends the backend. What it has recorded can be read on.
func (r *recorder) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for _, one := range r.connections {
		if one.conn != nil {
			_ = one.conn.Close()
		}
	}
	r.mu.Unlock()
	r.wait.Wait()
}

// behave says what is done about the requests with these ids.
func (r *recorder) behave(p *played) {
	if p.behind == (behaviour{}) {
		return
	}
	b := p.behind
	b.answer, b.late, b.replies = p.expand(b.answer), p.expand(b.late), p.expandReplies(b.replies)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behaviours[p.id('a')] = b
}

func (r *recorder) behaviour(id string) behaviour {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.behaviours[id]
}

// read takes more bytes from the connection, and notes them.
func (r *recorder) read(one *recorded, buffer []byte) ([]byte, error) {
	piece := make([]byte, 32<<10)
	_ = one.out.Flush()
	n, err := one.conn.Read(piece)
	r.mu.Lock()
	one.in = append(one.in, piece[:n]...)
	r.last = time.Now()
	r.mu.Unlock()
	return append(buffer, piece[:n]...), err
}

// serve answers what comes. Answers go out when it has nothing left to read: so that of a backend which takes a body for the next
// request comes with the answer before it. No gateway could know of it, if it came once the connection is used again.
func (r *recorder) serve(one *recorded) {
	defer one.out.Flush()
	var buffer []byte
	for {
		m, n, state, rest := r.await(one, buffer, false)
		buffer = rest
		if state == nought {
			return
		}
		if state == broken {
			_, _ = io.WriteString(one.out, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			return
		}
		id, _ := findID(string(m.head))
		b := r.behaviour(id)
		b.early = b.early || strings.HasPrefix(m.target, "/early/")
		if b.ignore {
			if _, _, state, buffer = r.await(one, buffer, true); state != whole {
				return
			}
		}
		if b.early {
			r.answer(one, m, id, b)
		}
		switch {
		case b.ignore:
			n = len(m.head)
		case state == part:
			if m.value("expect") != "" && b == (behaviour{}) {
				_, _ = io.WriteString(one.out, "HTTP/1.1 100 Continue\r\n\r\n")
			}
			if m, n, state, buffer = r.await(one, buffer, true); state != whole {
				return
			}
		}
		if !b.early {
			r.answer(one, m, id, b)
		}
		if b.close {
			return
		}
		buffer = buffer[n:]
	}
}

// await reads until there is a head, or a whole request.
func (r *recorder) await(one *recorded, buffer []byte, complete bool) (*message, int, progress, []byte) {
	for {
		m, n, state := strictly.next(buffer)
		if state == broken || state == whole || (state == part && !complete) {
			return m, n, state, buffer
		}
		var err error
		if buffer, err = r.read(one, buffer); err != nil {
			return nil, 0, nought, buffer
		}
	}
}

func (r *recorder) answer(one *recorded, m *message, id string, b behaviour) {
	text := b.answer
	if text == "" {
		body := "seen " + id + "\n"
		text = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
		if strings.HasPrefix(m.target, "/kept/") {
			text += "Cache-Control: max-age=60\r\n"
		}
		text += "\r\n"
		if m.method != "HEAD" {
			text += body
		}
	}
	_, _ = io.WriteString(one.out, text)
	if b.late != "" {
		_ = one.out.Flush()
		<-time.After(b.pause)
		_, _ = io.WriteString(one.out, b.late)
	}
}

// streams are the bytes of each connection.
func (r *recorder) streams() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all [][]byte
	for _, one := range r.connections {
		all = append(all, bytes.Clone(one.in))
	}
	return all
}

// settle waits until nothing has come for a while.
func (r *recorder) settle(quiet time.Duration) {
	for {
		r.mu.Lock()
		left := quiet - time.Since(r.last)
		r.mu.Unlock()
		if left <= 0 {
			return
		}
		<-time.After(left)
	}
}

// seen is a request as the backend saw it.
type seen struct {
	id     string
	letter byte
	lane   *lane
	// connection is the number of the connection that it came on.
	connection int
	*message
	// zone is the protected path that a real server served it as; "" for none, or where the server is the recorder.
	zone string
}

func (s *seen) String() string {
	text := fmt.Sprintf("%s saw %q", s.lane.name, s.head)
	if len(s.body) > 0 {
		text += fmt.Sprintf(" and a body of %d bytes", len(s.body))
	}
	return text
}

// Fields in which a real server tells the recorder what it saw itself.
const (
	zoneField   = "x-seen-zone"
	targetField = "x-seen-target"
	methodField = "x-seen-method"
)

// requests are what the backend saw, as it reads it itself.
func (l *lane) requests() []*seen {
	var all []*seen
	for number, stream := range l.records.streams() {
		messages, _ := strictly.all(stream)
		for _, m := range messages {
			s := &seen{lane: l, connection: number, message: m, zone: m.value(zoneField)}
			if target := m.value(targetField); target != "" {
				s.target = target
			}
			if method := m.value(methodField); method != "" {
				s.method = method
			}
			s.id, s.letter = findID(s.target)
			if s.id == "" {
				s.id, s.letter = findID(strings.Join(m.values("x-id"), " "))
			}
			all = append(all, s)
		}
	}
	return all
}
