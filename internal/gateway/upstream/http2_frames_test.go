package upstream

import (
	"bytes"
	"io"
	"strconv"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// streamsOf is the backend's end of an HTTP/2 connection, on which a test can send any head.
type streamsOf struct {
	*http2.Framer

	block  bytes.Buffer
	fields *hpack.Encoder
}

func newStreams(p *peer) *streamsOf {
	s := &streamsOf{Framer: http2.NewFramer(p, p.in)}
	s.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.fields = hpack.NewEncoder(&s.block)
	return s
}

// head sends the head of a response.
func (s *streamsOf) head(stream uint32, end bool, status string, fields ...string) {
	s.block.Reset()
	_ = s.fields.WriteField(hpack.HeaderField{Name: ":status", Value: status})
	for i := 0; i+1 < len(fields); i += 2 {
		_ = s.fields.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: s.block.Bytes(), EndHeaders: true, EndStream: end})
}

// framesBackend starts an HTTP/2 backend. answer is called for each request, with its path.
func framesBackend(t testing.TB, answer func(s *streamsOf, stream uint32, path string)) *backend {
	return listen(t, func(p *peer, _ int) {
		if _, err := io.ReadFull(p.in, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		s := newStreams(p)
		_ = s.WriteSettings()
		for {
			frame, err := s.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = s.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !frame.IsAck() {
					_ = s.WritePing(true, frame.Data)
				}
			case *http2.MetaHeadersFrame:
				answer(s, frame.StreamID, frame.PseudoValue("path"))
			}
		}
	})
}

func TestHTTP2StatusesThatMustNotBePassedOn(t *testing.T) {
	for status, want := range map[string]Kind{
		"200": 0, "599": 0, "999": 0,
		"42": Malformed, "-1": Malformed, "0": Malformed, "99": Malformed, "1000": Malformed, "+42": Malformed,
	} {
		t.Run(status, func(t *testing.T) {
			b := framesBackend(t, func(s *streamsOf, stream uint32, _ string) { s.head(stream, true, status) })
			response, err := serving(t, Options{}, b.address()).Do(t.Context(), getHTTP2())
			if want != 0 {
				wantKind(t, err, want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer response.Close()
			if got := strconv.Itoa(response.Status); got != status {
				t.Errorf("got %s", got)
			}
		})
	}
}
