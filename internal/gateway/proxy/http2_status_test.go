package proxy

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// statusBackend answers every request over HTTP/2 with a head that is nothing but a status.
func statusBackend(t testing.TB, status string) string {
	return listen(t, func(conn net.Conn) {
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(conn, conn)
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_ = f.WriteSettings()
		var block bytes.Buffer
		fields := hpack.NewEncoder(&block)
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = f.WriteSettingsAck()
				}
			case *http2.MetaHeadersFrame:
				block.Reset()
				_ = fields.WriteField(hpack.HeaderField{Name: ":status", Value: status})
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: frame.StreamID, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: status != "101"})
			}
		}
	})
}

func TestAStatusThatIsNoneIsABadGateway(t *testing.T) {
	for _, test := range []string{"42", "-1", "1000"} {
		t.Run(test, func(t *testing.T) {
			var log lockedbuffer.Buffer
			g := start(t, Options{AccessLog: &log}, toH2, statusBackend(t, test))
			response, _ := g.get("/")
			want(t, "status", response.StatusCode, 502)
			eventually(t, "the request is in the log", func() bool { return strings.Contains(join(log.Lines()), `"status"`) })
			if line := log.Lines()[0]; !strings.Contains(line, `"failure":"malformed"`) || !strings.Contains(line, `"status":502`) {
				t.Errorf("got %s", line)
			}
		})
	}
}
