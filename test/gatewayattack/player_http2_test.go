package gatewayattack

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frame is a part of an attack over HTTP/2: the head of a request, a piece of its body, or both.
type frame struct {
	stream uint32
	// fields are names and values by turns, put into HEADERS as they are. Split puts half of them into CONTINUATION.
	fields []string
	split  bool
	// data is put into DATA.
	data string
	// end ends the stream.
	end bool
	// reset ends it with RST_STREAM.
	reset bool
	// raw writes whatever it likes.
	raw func(f *http2.Framer) error
	// pause waits afterwards.
	pause time.Duration
}

func (f frame) String() string {
	data := f.data
	if len(data) > 600 {
		data = data[:600] + "..."
	}
	return fmt.Sprintf("stream %d: HEADERS %q, DATA %q, END_STREAM %t, RST_STREAM %t, raw %t", f.stream, f.fields, data, f.end, f.reset, f.raw != nil)
}

// streamAnswer is what came on a stream.
type streamAnswer struct {
	answer
	finals int
	// early are the heads before that of the answer.
	early []answer
}

func (p *played) playHTTP2(c *client, wait patience) {
	defer c.conn.Close()
	_ = c.conn.SetWriteDeadline(time.Now().Add(2 * wait.answer))
	out := &bytes.Buffer{}
	framer := http2.NewFramer(out, nil)
	framer.AllowIllegalWrites = true
	out.WriteString(http2.ClientPreface)
	_ = framer.WriteSettings()
	_, _ = c.conn.Write(out.Bytes())
	type collected struct {
		streams map[uint32]*streamAnswer
		trouble string
	}
	all := make(chan collected, 1)
	go func() {
		streams, trouble := c.collectStreams(p.streams(), wait)
		all <- collected{streams, trouble}
	}()
	for _, f := range p.h2 {
		out.Reset()
		f.write(framer)
		if _, err := c.conn.Write(out.Bytes()); err != nil {
			break
		}
		if f.pause > 0 {
			c.pause(f.pause)
		}
	}
	got := <-all
	p.trouble = got.trouble
	for _, on := range got.streams {
		p.answers = append(p.answers, on.early...)
		for range on.finals {
			p.answers = append(p.answers, on.answer)
		}
	}
	p.got, _ = c.got()
}

// streams counts the streams that are opened.
func (p *played) streams() int {
	opened := map[uint32]bool{}
	for _, f := range p.h2 {
		if f.fields != nil {
			opened[f.stream] = true
		}
	}
	return len(opened)
}

func (f *frame) write(framer *http2.Framer) {
	if f.fields != nil {
		block := &bytes.Buffer{}
		encoder := hpack.NewEncoder(block)
		for i := 0; i+1 < len(f.fields); i += 2 {
			_ = encoder.WriteField(hpack.HeaderField{Name: f.fields[i], Value: f.fields[i+1], Sensitive: true}) // never indexed
		}
		first := block.Bytes()
		if f.split {
			first = first[:len(first)/2]
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: f.stream, BlockFragment: first, EndStream: f.end && f.data == "", EndHeaders: !f.split,
		})
		if f.split {
			_ = framer.WriteContinuation(f.stream, true, block.Bytes()[len(first):])
		}
	}
	if f.data != "" || (f.fields == nil && f.end) {
		_ = framer.WriteData(f.stream, f.end, []byte(f.data))
	}
	if f.reset {
		_ = framer.WriteRSTStream(f.stream, http2.ErrCodeCancel)
	}
	if f.raw != nil {
		_ = f.raw(framer)
	}
}

// collectStreams reads until every stream has ended, the connection has, or nothing comes any more. It returns what came on
// each, and what no client would take.
func (c *client) collectStreams(opened int, wait patience) (streams map[uint32]*streamAnswer, trouble string) {
	defer close(c.done)
	streams = map[uint32]*streamAnswer{}
	framer := http2.NewFramer(nil, c.conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	ended := 0
	for begun := time.Now(); ended < opened && time.Since(begun) < wait.answer; {
		_ = c.conn.SetReadDeadline(time.Now().Add(4 * wait.quiet))
		f, err := framer.ReadFrame()
		if failure, wrong := errors.AsType[http2.StreamError](err); wrong {
			return streams, fmt.Sprintf("a client of HTTP/2 takes no such frame: %v", failure)
		}
		if err != nil {
			return streams, ""
		}
		switch f := f.(type) {
		case *http2.SettingsFrame, *http2.PingFrame: // not acknowledged: nobody waits for it so long
		case *http2.MetaHeadersFrame:
			got := streams[f.StreamID]
			if got == nil {
				got = &streamAnswer{}
				streams[f.StreamID] = got
			}
			var fields [][2]string
			for _, field := range f.RegularFields() {
				fields = append(fields, [2]string{field.Name, field.Value})
			}
			switch status, _ := strconv.Atoi(f.PseudoValue("status")); {
			case status >= 200:
				got.status, got.fields = status, fields
				got.finals++
			case got.finals > 0:
				got.trailers = fields
			default:
				got.early = append(got.early, answer{status: status, fields: fields})
			}
			got.whole = f.StreamEnded()
			ended += count(f.StreamEnded())
		case *http2.DataFrame:
			if got := streams[f.StreamID]; got != nil {
				got.body += string(f.Data())
				got.whole = f.StreamEnded()
			}
			ended += count(f.StreamEnded())
		case *http2.RSTStreamFrame:
			ended++
		}
	}
	return streams, ""
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
