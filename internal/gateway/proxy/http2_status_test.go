package proxy

import (
	"net"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// statusBackend answers every request over HTTP/2 with a head that is nothing but a status.
func statusBackend(t testing.TB, status string) string {
	return listen(t, func(conn net.Conn) {
		hostileHTTP2(conn, &scriptedAnswer{status: status, endsWithHead: status != "101"})
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
