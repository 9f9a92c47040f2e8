package gatewayattack

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// The protocols of lanes, as a backend policy of the gateway names them. "" is HTTP/1.1.
const (
	overH2C = "h2c"
	overTLS = "h2 over TLS"
)

// reply is a part of what a backend over HTTP/2 answers on the stream of a request: a head, a piece of the body, or both.
type reply struct {
	// fields are names and values by turns, :status among them, put into HEADERS as they are, and into CONTINUATION what has
	// no room there.
	fields []string
	data   string
	// end ends the stream, with what else there is.
	end bool
	// raw writes whatever it likes.
	raw func(f *http2.Framer, stream uint32) error
	// plain is put on the connection without a frame.
	plain string
	// times repeats the part. 0: once.
	times int
	// pause waits afterwards, and close then ends the connection.
	pause time.Duration
	close bool
}

func (r reply) String() string {
	return fmt.Sprintf("%.200q, HEADERS %.200q, DATA %.200q, END_STREAM %t, raw %t, %d times, wait %v, close %t", r.plain, r.fields, r.data, r.end, r.raw != nil, max(1, r.times), r.pause, r.close)
}

// write puts it on the connection.
func (r reply) write(f *http2.Framer, stream uint32) error {
	for range max(1, r.times) {
		if r.fields != nil {
			if err := writeHead(f, stream, r.fields, r.end && r.data == ""); err != nil {
				return err
			}
		}
		if r.data != "" || (r.fields == nil && r.end) {
			if err := f.WriteData(stream, r.end, []byte(r.data)); err != nil {
				return err
			}
		}
		if r.raw != nil {
			if err := r.raw(f, stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// headBlock encodes fields without the table that encoder and decoder share.
func headBlock(fields []string) []byte {
	block := &bytes.Buffer{}
	encoder := hpack.NewEncoder(block)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true}) // never indexed
	}
	return block.Bytes()
}

func writeHead(f *http2.Framer, stream uint32, fields []string, end bool) error {
	const largest = 16 << 10 // every endpoint takes frames of this size
	block := headBlock(fields)
	first := block[:min(len(block), largest)]
	block = block[len(first):]
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndStream: end, EndHeaders: len(block) == 0}); err != nil {
		return err
	}
	for len(block) > 0 {
		piece := block[:min(len(block), largest)]
		block = block[len(piece):]
		if err := f.WriteContinuation(stream, len(block) == 0, piece); err != nil {
			return err
		}
	}
	return nil
}

// connection2 is a connection of the gateway to a backend over HTTP/2.
type connection2 struct {
	*recorder
	*recorded

	writing sync.Mutex
	framer  *http2.Framer
	// bodies are of the requests that have not ended, heads what came before.
	heads  map[uint32]*http2.MetaHeadersFrame
	bodies map[uint32]*bytes.Buffer
}

// serve2 answers a connection over HTTP/2 as the attacks want.
func (r *recorder) serve2(one *recorded) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(one.conn, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	c := &connection2{recorder: r, recorded: one, framer: http2.NewFramer(one.conn, one.conn), heads: map[uint32]*http2.MetaHeadersFrame{}, bodies: map[uint32]*bytes.Buffer{}}
	c.framer.AllowIllegalWrites = true
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100})
	var answering sync.WaitGroup
	defer answering.Wait()
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		stream, ended := frame.Header().StreamID, false
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = c.locked(c.framer.WriteSettingsAck)
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = c.locked(func() error { return c.framer.WritePing(true, f.Data) })
			}
		case *http2.MetaHeadersFrame:
			if c.heads[stream] == nil { // else trailers
				c.heads[stream], c.bodies[stream] = f, &bytes.Buffer{}
			}
			ended = f.StreamEnded()
		case *http2.DataFrame:
			if c.heads[stream] == nil {
				continue
			}
			c.bodies[stream].Write(f.Data())
			c.refill(stream, len(f.Data()))
			ended = f.StreamEnded()
		}
		if ended {
			target, method := c.request(stream)
			answering.Go(func() { c.answer2(stream, target, method) })
		}
	}
}

func (c *connection2) locked(write func() error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return write()
}

// refill gives the gateway room for as many bytes more.
func (c *connection2) refill(stream uint32, n int) {
	if n == 0 {
		return
	}
	_ = c.locked(func() error {
		if err := c.framer.WriteWindowUpdate(0, uint32(n)); err != nil {
			return err
		}
		return c.framer.WriteWindowUpdate(stream, uint32(n))
	})
}

// request notes a request as one of HTTP/1, which is what the judge reads, and forgets its stream.
func (c *connection2) request(stream uint32) (target, method string) {
	head, body := c.heads[stream], c.bodies[stream]
	delete(c.heads, stream)
	delete(c.bodies, stream)
	target, method = head.PseudoValue("path"), head.PseudoValue("method")
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nhost: %s\r\n", method, target, head.PseudoValue("authority"))
	for _, field := range head.RegularFields() {
		if field.Name != "content-length" {
			fmt.Fprintf(&text, "%s: %s\r\n", field.Name, field.Value)
		}
	}
	fmt.Fprintf(&text, "content-length: %d\r\n\r\n%s", body.Len(), body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in = append(c.in, text.String()...)
	c.last = time.Now()
	return target, method
}

// answer2 answers a request as its attack wants, or as it should be.
func (c *connection2) answer2(stream uint32, target, method string) {
	id, _ := findID(target)
	replies := c.behaviour(id).replies
	if replies == nil {
		body := "seen " + id + "\n"
		usual := reply{fields: []string{":status", "200", "content-type", "text/plain", "content-length", fmt.Sprint(len(body))}, data: body, end: true}
		if method == "HEAD" {
			usual.data = ""
		}
		replies = &[]reply{usual}
	}
	for _, part := range *replies {
		if c.locked(func() error { return c.put(part, stream) }) != nil {
			return
		}
		if part.pause > 0 {
			<-time.After(part.pause)
		}
		if part.close {
			_ = c.conn.Close()
			return
		}
	}
}

func (c *connection2) put(part reply, stream uint32) error {
	if _, err := io.WriteString(c.conn, part.plain); err != nil {
		return err
	}
	return part.write(c.framer, stream)
}

// expandReplies puts ids into the texts of an answer.
func (p *played) expandReplies(replies *[]reply) *[]reply {
	if replies == nil {
		return nil
	}
	var all []reply
	for _, part := range *replies {
		part.data, part.plain = p.expand(part.data), p.expand(part.plain)
		part.fields = append([]string(nil), part.fields...)
		for i := range part.fields {
			part.fields[i] = p.expand(part.fields[i])
		}
		all = append(all, part)
	}
	return &all
}

// nameOfBackends is what the certificates of backends over TLS are for.
const nameOfBackends = "backends.internal"

// hostileLanes2 are backends over HTTP/2 that do not behave, at an address of this machine: without TLS, and if there is an
// authority, with a certificate of it.
func hostileLanes2(t testing.TB, address string, by *authority.Authority) []*lane {
	t.Helper()
	var lanes []*lane
	for i := range 12 {
		lanes = append(lanes, hostileLane2(t, fmt.Sprintf("h2c-%d", i), address, nil))
		if by != nil {
			lanes = append(lanes, hostileLane2(t, fmt.Sprintf("h2-%d", i), address, by))
		}
	}
	return lanes
}

func hostileLane2(t testing.TB, name, address string, by *authority.Authority) *lane {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{name: name, host: name + ".test", protocol: "kubernetes.io/h2c", over: overH2C, hostile: &sync.Mutex{}}
	if by != nil {
		certificate := by.Issue(t, x509.Certificate{DNSNames: []string{nameOfBackends}})
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{http2.NextProtoTLS}})
		l.over, l.authority, l.certified = overTLS, by.PEM(), nameOfBackends
	}
	l.records = recordOn(t, listener, (*recorder).serve2)
	l.address = l.records.address()
	return l
}
