package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// scriptedAnswer is what a hostile backend answers, over any protocol.
type scriptedAnswer struct {
	hints    [][]string // informational heads: the status, then names and values
	status   string
	fields   []string // names and values
	body     string
	trailers []string
	// endsWithHead ends the stream with the head over HTTP/2. A body is not sent then.
	endsWithHead bool
}

// http1 is the answer as HTTP/1.1 has it. The body ends with the connection unless a field says otherwise.
func (a *scriptedAnswer) http1() string {
	var b strings.Builder
	section := func(fields []string) {
		for i := 0; i+1 < len(fields); i += 2 {
			b.WriteString(fields[i] + ": " + fields[i+1] + "\r\n")
		}
		b.WriteString("\r\n")
	}
	for _, hint := range a.hints {
		b.WriteString("HTTP/1.1 " + hint[0] + " Hint\r\n")
		section(hint[1:])
	}
	b.WriteString("HTTP/1.1 " + a.status + " Status\r\n")
	if len(a.trailers) > 0 {
		b.WriteString("Transfer-Encoding: chunked\r\n")
	}
	section(a.fields)
	switch {
	case len(a.trailers) > 0:
		b.WriteString(strconv.FormatInt(int64(len(a.body)), 16) + "\r\n" + a.body + "\r\n0\r\n")
		section(a.trailers)
	case !a.endsWithHead:
		b.WriteString(a.body)
	}
	return b.String()
}

// http2 sends the answer on a stream.
func (a *scriptedAnswer) http2(f *http2.Framer, encode func(fields ...string) []byte, stream uint32) {
	head := func(end bool, fields ...string) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: encode(fields...), EndHeaders: true, EndStream: end})
	}
	for _, hint := range a.hints {
		head(false, append([]string{":status", hint[0]}, hint[1:]...)...)
	}
	head(a.endsWithHead, append([]string{":status", a.status}, a.fields...)...)
	if a.endsWithHead {
		return
	}
	_ = f.WriteData(stream, len(a.trailers) == 0, []byte(a.body))
	if len(a.trailers) > 0 {
		head(true, a.trailers...)
	}
}

// hostileHTTP2 speaks HTTP/2 as a backend.
func hostileHTTP2(conn net.Conn, answer *scriptedAnswer) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	f.AllowIllegalWrites = true
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encode := func(fields ...string) []byte {
		block.Reset()
		for i := 0; i+1 < len(fields); i += 2 {
			_ = encoder.WriteField(hpack.HeaderField{Name: strings.ToLower(fields[i]), Value: fields[i+1]})
		}
		return bytes.Clone(block.Bytes())
	}
	_ = f.WriteSettings()
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
		case *http2.PingFrame:
			if !frame.IsAck() {
				_ = f.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			answer.http2(f, encode, frame.StreamID)
		}
	}
}

// hostileBackend answers every request the same, over HTTP/1.1, h2c or HTTP/2 over TLS. Over HTTP/1.1 it closes after an answer.
func hostileBackend(t *testing.T, protocol string, config *tls.Config, answer *scriptedAnswer) (address string, conns func() int) {
	accepted := make(chan struct{}, 1000)
	address = listen(t, func(conn net.Conn) {
		accepted <- struct{}{}
		switch protocol {
		case "HTTP/1.1":
			if request, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, request.Body)
				_, _ = io.WriteString(conn, answer.http1())
			}
			return
		case "HTTP/2 over TLS":
			secure := tls.Server(conn, config)
			if secure.Handshake() != nil {
				return
			}
			conn = secure
		}
		hostileHTTP2(conn, answer)
	})
	return address, func() int { return len(accepted) }
}

// readStrictly reads one response as the strictest client does. It returns the status and the body, or "cut" if less came than was
// declared.
func readStrictly(t *testing.T, in *bufio.Reader, method string) string {
	t.Helper()
	var status string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "cut"
		}
		if status = strings.Fields(line)[1]; !strings.HasPrefix(line, "HTTP/1.1 ") || !strings.HasSuffix(line, "\r\n") {
			t.Fatalf("no head follows, but %q", line)
		}
		lengths, chunked := readFields(t, in)
		informational := status[0] == '1'
		switch {
		case len(lengths) > 1 || (len(lengths) == 1 && chunked):
			t.Fatalf("%s: lengths %q, chunked %t", status, lengths, chunked)
		case (informational || status == "204") && (len(lengths) > 0 || chunked):
			t.Fatalf("%s has a length", status)
		case informational:
			continue
		}
		body, whole := readBody(t, in, lengths, chunked, method == http.MethodHead || status == "204" || status == "304")
		if !whole {
			return "cut"
		}
		return strings.TrimSpace(status + " " + body)
	}
}

// readFields reads a header section.
func readFields(t *testing.T, in *bufio.Reader) (lengths []string, chunked bool) {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("the head is cut: %v", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\r\n"), ":")
		switch strings.ToLower(name) {
		case "":
			return lengths, chunked
		case "content-length":
			lengths = append(lengths, strings.TrimPrefix(value, " "))
		case "transfer-encoding":
			chunked = true
		case "keep-alive", "proxy-connection", "upgrade", "te":
			t.Errorf("passed on: %q", line)
		}
	}
}

// readBody reads a body to its end. none says that there is none, whatever the head declares.
func readBody(t *testing.T, in *bufio.Reader, lengths []string, chunked, none bool) (body string, whole bool) {
	t.Helper()
	switch {
	case chunked && !none:
		return readChunks(t, in)
	case len(lengths) == 0:
		return "", true
	}
	if strings.Trim(lengths[0], "0123456789") != "" {
		t.Fatalf("length %q", lengths[0])
	}
	length, err := strconv.Atoi(lengths[0])
	if err != nil || none {
		return "", err == nil
	}
	text := make([]byte, length)
	_, err = io.ReadFull(in, text)
	return string(text), err == nil
}

func readChunks(t *testing.T, in *bufio.Reader) (body string, whole bool) {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return body, false
		}
		size, err := strconv.ParseInt(strings.TrimSuffix(line, "\r\n"), 16, 32)
		if err != nil {
			t.Fatalf("chunk %q", line)
		}
		if size == 0 {
			if lengths, _ := readFields(t, in); len(lengths) > 0 {
				t.Fatalf("a trailer is a length: %q", lengths)
			}
			return body, true
		}
		piece := make([]byte, size+2)
		if _, err := io.ReadFull(in, piece); err != nil {
			return body, false
		}
		body += string(piece[:size])
	}
}

// hostileAnswers are the families of answers. want is what the client reads; http1 is that where HTTP/1.1 has to be read in
// another way. The gateway's own answers are "502".
var hostileAnswers = map[string]struct {
	answer      scriptedAnswer
	method      string // default GET
	want, http1 string
}{
	"plain":                       {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2"}, body: "ok"}, want: "200 ok"},
	"no length":                   {answer: scriptedAnswer{status: "200", body: "ok"}, want: "200 ok"},
	"no length and no body":       {answer: scriptedAnswer{status: "200", endsWithHead: true}, want: "200"},
	"two lengths":                 {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "97", "Content-Length", "2"}, body: "ok"}, want: "502"},
	"two lengths, the right one":  {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2", "Content-Length", "97"}, body: "ok"}, want: "502"},
	"the same length twice":       {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2", "Content-Length", "2"}, body: "ok"}, want: "200 ok"},
	"a list of the same":          {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2, 2"}, body: "ok"}, want: "200 ok"},
	"a list of others":            {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2, 3"}, body: "ok"}, want: "502"},
	"a list with a hole":          {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2,"}, body: "ok"}, want: "502"},
	"a sign":                      {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "+2"}, body: "ok"}, want: "502"},
	"a minus":                     {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "-2"}, body: "ok"}, want: "502"},
	"a space":                     {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", " 2"}, body: "ok"}, want: "200 ok"},
	"a space inside":              {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2 3"}, body: "ok"}, want: "502"},
	"zeros first":                 {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "0002"}, body: "ok"}, want: "200 ok"},
	"hexadecimal":                 {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "0x2"}, body: "ok"}, want: "502"},
	"an underscore":               {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "0_2"}, body: "ok"}, want: "502"},
	"a fraction":                  {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2.0"}, body: "ok"}, want: "502"},
	"other digits":                {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "\u0662"}, body: "ok"}, want: "502"},
	"empty":                       {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", ""}, body: "ok"}, want: "502"},
	"19 digits":                   {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "9223372036854775807"}, body: "ok"}, want: "502"},
	"20 digits, 2 modulo 2^64":    {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "18446744073709551618"}, body: "ok"}, want: "502"},
	"shorter":                     {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "97"}, body: "ok"}, want: "cut"},
	"longer":                      {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2"}, body: "okHTTP/1.1 200 OK\r\n\r\n"}, want: "cut", http1: "200 ok"},
	"longer, of nothing":          {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "0"}, body: "ok"}, want: "cut", http1: "200"},
	"twice, and longer":           {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2", "Content-Length", "2"}, body: "okHTTP/1.1 200 OK\r\n\r\n"}, want: "cut", http1: "200 ok"},
	"twice, and shorter":          {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "97", "Content-Length", "97"}, body: "ok"}, want: "cut"},
	"a length and no body":        {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2"}, endsWithHead: true}, want: "502", http1: "cut"},
	"two lengths and no body":     {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "0", "Content-Length", "2"}, endsWithHead: true}, want: "502"},
	"a coding":                    {answer: scriptedAnswer{status: "200", fields: []string{"Transfer-Encoding", "gzip"}, body: "ok"}, want: "502"},
	"chunked":                     {answer: scriptedAnswer{status: "200", fields: []string{"Transfer-Encoding", "chunked"}, body: "2\r\nok\r\n0\r\n\r\n"}, want: "502", http1: "200 ok"},
	"chunked and a length":        {answer: scriptedAnswer{status: "200", fields: []string{"Transfer-Encoding", "chunked", "Content-Length", "2"}, body: "ok"}, want: "502"},
	"fields of the connection":    {answer: scriptedAnswer{status: "200", fields: []string{"Keep-Alive", "timeout=5", "Proxy-Connection", "keep-alive", "Upgrade", "h2c", "TE", "gzip", "Content-Length", "2"}, body: "ok"}, want: "200 ok"},
	"the length is an option":     {answer: scriptedAnswer{status: "200", fields: []string{"Connection", "Content-Length", "Content-Length", "2"}, body: "ok"}, want: "200 ok"},
	"204":                         {answer: scriptedAnswer{status: "204", endsWithHead: true}, want: "204"},
	"204 with a length":           {answer: scriptedAnswer{status: "204", fields: []string{"Content-Length", "2"}, endsWithHead: true}, want: "204"},
	"204 with two lengths":        {answer: scriptedAnswer{status: "204", fields: []string{"Content-Length", "2", "Content-Length", "97"}, endsWithHead: true}, want: "502"},
	"204 with a body":             {answer: scriptedAnswer{status: "204", body: "ok"}, want: "502", http1: "204"},
	"204 with a length and body":  {answer: scriptedAnswer{status: "204", fields: []string{"Content-Length", "2"}, body: "ok"}, want: "502", http1: "204"},
	"204 that ends later":         {answer: scriptedAnswer{status: "204"}, want: "204"},
	"304":                         {answer: scriptedAnswer{status: "304", endsWithHead: true}, want: "304"},
	"304 with a length":           {answer: scriptedAnswer{status: "304", fields: []string{"Content-Length", "97"}, endsWithHead: true}, want: "304"},
	"304 with a length, later":    {answer: scriptedAnswer{status: "304", fields: []string{"Content-Length", "97"}}, want: "304"},
	"304 with two lengths":        {answer: scriptedAnswer{status: "304", fields: []string{"Content-Length", "97", "Content-Length", "2"}, endsWithHead: true}, want: "502"},
	"304 with a body":             {answer: scriptedAnswer{status: "304", body: "ok"}, want: "502", http1: "304"},
	"HEAD":                        {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "97"}, endsWithHead: true}, method: "HEAD", want: "200"},
	"HEAD with two lengths":       {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "97", "Content-Length", "2"}, endsWithHead: true}, method: "HEAD", want: "502"},
	"HEAD with a sign":            {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "+97"}, endsWithHead: true}, method: "HEAD", want: "502"},
	"HEAD with a body":            {answer: scriptedAnswer{status: "200", fields: []string{"Content-Length", "2"}, body: "ok"}, method: "HEAD", want: "200"},
	"hint with a length":          {answer: scriptedAnswer{hints: [][]string{{"103", "Content-Length", "97", "Link", "</a>"}}, status: "200", fields: []string{"Content-Length", "2"}, body: "ok"}, want: "200 ok"},
	"hint with two lengths":       {answer: scriptedAnswer{hints: [][]string{{"103", "Content-Length", "97", "Content-Length", "2"}}, status: "200", fields: []string{"Content-Length", "2"}, body: "ok"}, want: "502"},
	"hint with a coding":          {answer: scriptedAnswer{hints: [][]string{{"103", "Transfer-Encoding", "gzip"}}, status: "200", fields: []string{"Content-Length", "2"}, body: "ok"}, want: "502"},
	"100 with two lengths":        {answer: scriptedAnswer{hints: [][]string{{"100", "Content-Length", "97", "Content-Length", "2"}}, status: "200", fields: []string{"Content-Length", "2"}, body: "ok"}, want: "502"},
	"trailers":                    {answer: scriptedAnswer{status: "200", body: "ok", trailers: []string{"Digest", "x"}}, want: "200 ok"},
	"a length as a trailer":       {answer: scriptedAnswer{status: "200", body: "ok", trailers: []string{"Content-Length", "97", "Transfer-Encoding", "chunked"}}, want: "200 ok"},
	"gRPC without a message":      {answer: scriptedAnswer{status: "200", fields: []string{"Content-Type", "application/grpc", "Grpc-Status", "5"}, endsWithHead: true}, want: "200"},
	"a sign in the status":        {answer: scriptedAnswer{status: "+200", fields: []string{"Content-Length", "2"}, body: "ok"}, want: "502"},
	"zeros before the status":     {answer: scriptedAnswer{status: "0200", fields: []string{"Content-Length", "2"}, body: "ok"}, want: "502"},
	"more fields than are needed": {answer: scriptedAnswer{status: "200", fields: times(600, "A", "b")}, want: "502"},
	"more trailers":               {answer: scriptedAnswer{status: "200", body: "ok", trailers: times(600, "A", "b")}, want: "cut"},
}

func times(n int, fields ...string) (all []string) {
	for range n {
		all = append(all, fields...)
	}
	return all
}

// Whatever protocol a backend speaks, a client gets heads with at most one length, which is that of the bytes that follow. If they
// do not follow, its connection ends. So nobody who shares the connection gets bytes that a backend has chosen.
func TestHostileAnswersOverEveryProtocol(t *testing.T) {
	ca := authority.New(t, "ca")
	config := &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{"app.internal"}})}, NextProtos: []string{"h2"}}
	with := backendTLS(t, model.BackendTLSInput{Roots: ca.PEM(), ServerName: "app.internal"})
	for name, test := range hostileAnswers {
		for _, protocol := range []string{"HTTP/1.1", "h2c", "HTTP/2 over TLS"} {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				address, conns := hostileBackend(t, protocol, config, &test.answer)
				var g *gateway
				path := "/"
				switch protocol {
				case "HTTP/1.1":
					g = start(t, Options{}, toApp, address)
				case "h2c":
					g = start(t, Options{}, toH2, address)
				default:
					g, path = startTable(t, Options{}, withoutMirrors(withTLS(t, address, with))), "/h2"
				}
				wanted := test.want
				if protocol == "HTTP/1.1" && test.http1 != "" {
					wanted = test.http1
				}
				method := test.method
				if method == "" {
					method = http.MethodGet
				}
				g.judge(method, path, wanted)
				before := conns()
				g.judge(method, path, wanted)
				if refused := wanted == "502" || wanted == "cut"; refused && conns() == before {
					t.Error("the connection to the backend was used again")
				}
			})
		}
	}
}

// withoutMirrors keeps only the requests themselves.
func withoutMirrors(compiled *table.Table) *table.Table {
	for i := range compiled.Routes {
		compiled.Routes[i].Mirrors = nil
	}
	return compiled
}

// judge sends a request, and another one on the same connection, which no route takes. It fails if the client reads anything but
// the first answer as wanted, and then the gateway's 404 or the end of the connection.
func (g *gateway) judge(method, path, wanted string) {
	g.t.Helper()
	t := g.t.(*testing.T)
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	in := bufio.NewReader(conn)
	_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n", method, path)
	got := readStrictly(t, in, method)
	if strings.HasPrefix(got, "502") && wanted == "502" {
		got = "502"
	}
	if got != wanted {
		t.Errorf("the client got %q, want %q", got, wanted)
	}
	if got == "cut" {
		if _, err := in.ReadByte(); err != io.EOF && !isReset(err) {
			t.Errorf("the connection goes on: %v", err)
		}
		return
	}
	_, _ = fmt.Fprint(conn, "get / HTTP/1.1\r\nHost: a\r\n\r\n") // answered with 400 by the gateway itself
	if next := readStrictly(t, in, http.MethodGet); next != "cut" && !strings.HasPrefix(next, "400") {
		t.Errorf("the next answer on the connection is %q", next)
	}
}

func isReset(err error) bool {
	return err != nil && !os.IsTimeout(err)
}
