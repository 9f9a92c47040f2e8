package upstream

import (
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A stream that ends with a fault of the endpoint ends the use of its connection, also after the head. One that the endpoint resets
// does not.
func TestAFaultAfterTheHeadEndsTheUseOfItsConnection(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(s *streamsOf, stream uint32)
		conns int64
	}{
		"a trailer in upper case": {func(s *streamsOf, stream uint32) { s.trailer(stream, "X-Upper") }, 2},
		"a trailer":               {func(s *streamsOf, stream uint32) { s.trailer(stream, "x-lower") }, 1},
		"a reset":                 {func(s *streamsOf, stream uint32) { _ = s.WriteRSTStream(stream, http2.ErrCodeInternal) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := framesBackend(t, func(s *streamsOf, stream uint32, path string) {
				s.head(stream, path != "/fault", "200")
				if path == "/fault" {
					_ = s.WriteData(stream, false, []byte("begun"))
					test.end(s, stream)
				}
			})
			s := serving(t, Options{}, b.address())
			req := getHTTP2()
			req.Target = "/fault"
			response, err := s.Do(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := readAll(response); (name == "a trailer") != (err == nil) {
				t.Errorf("got %q, %v", body, err)
			}
			if status, _ := fetch(t, s, getHTTP2()); status != 200 {
				t.Errorf("got %d", status)
			}
			if n := b.accepted.Load(); n != test.conns {
				t.Errorf("%d connections, want %d", n, test.conns)
			}
		})
	}
}

// trailer ends a response with a trailer.
func (s *streamsOf) trailer(stream uint32, name string) {
	s.block.Reset()
	_ = s.fields.WriteField(hpack.HeaderField{Name: name, Value: "x"})
	_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: s.block.Bytes(), EndHeaders: true, EndStream: true})
}
