package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// frames is an HTTP/2 connection on which a test can send any frame.
type frames struct {
	*http2.Framer

	t      testing.TB
	conn   net.Conn
	block  bytes.Buffer
	fields *hpack.Encoder
	first  map[http2.SettingID]uint32 // the gateway's settings
}

// frames opens an HTTP/2 connection to the gateway.
func (g *gateway) frames(settings ...http2.Setting) *frames {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.framesOn(conn, settings...)
}

// framesOn starts HTTP/2 to the gateway on a connection.
func (g *gateway) framesOn(conn net.Conn, settings ...http2.Setting) *frames {
	g.t.Helper()
	g.t.Cleanup(func() { conn.Close() })
	f := newFrames(g.t, conn, settings...)
	if settings, ok := f.next().(*http2.SettingsFrame); ok {
		_ = settings.ForeachSetting(func(s http2.Setting) error {
			f.first[s.ID] = s.Val
			return nil
		})
	}
	_ = f.WriteSettingsAck()
	return f
}

// newFrames starts HTTP/2 on a connection.
func newFrames(t testing.TB, conn net.Conn, settings ...http2.Setting) *frames {
	f := &frames{Framer: http2.NewFramer(conn, conn), t: t, conn: conn, first: map[http2.SettingID]uint32{}}
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.AllowIllegalWrites = true
	f.fields = hpack.NewEncoder(&f.block)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = f.WriteSettings(settings...)
	return f
}

// encode returns names and values as an encoded field block.
func (f *frames) encode(fields ...string) []byte {
	f.block.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = f.fields.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(f.block.Bytes())
}

var good = []string{":method", "POST", ":scheme", "http", ":authority", "a", ":path", "/"}

// open begins a request. If end is set, it also ends it.
func (f *frames) open(stream uint32, end bool, fields ...string) {
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.encode(fields...), EndHeaders: true, EndStream: end})
}

// next returns the next frame, nil at the end of the connection.
func (f *frames) next() http2.Frame {
	f.t.Helper()
	_ = f.conn.SetReadDeadline(time.Now().Add(hang))
	frame, err := f.ReadFrame()
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		f.t.Fatal("nothing comes")
	}
	if err != nil {
		return nil
	}
	return frame
}

// outcome reads until a stream has its answer, or the connection ends.
func (f *frames) outcome(stream uint32) string {
	f.t.Helper()
	for {
		switch frame := f.next().(type) {
		case nil:
			return "closed"
		case *http2.GoAwayFrame:
			if frame.ErrCode != http2.ErrCodeNo {
				return "GOAWAY " + frame.ErrCode.String()
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream {
				return "RST " + frame.ErrCode.String()
			}
		case *http2.MetaHeadersFrame:
			if frame.StreamID == stream {
				return frame.PseudoValue("status")
			}
		}
	}
}

// with returns a valid request with more fields at the end.
func with(fields ...string) []string { return append(append([]string{}, good...), fields...) }

func TestHTTP2RequestsThatAreMalformed(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, toApp, backend)
	for name, test := range map[string]struct {
		fields []string
		want   []string // any of these
	}{
		"good":                      {good, []string{"200"}},
		"upper case name":           {with("X-A", "b"), []string{"RST PROTOCOL_ERROR"}},
		"space in a name":           {with("x a", "b"), []string{"RST PROTOCOL_ERROR"}},
		"line feed in a value":      {with("x-a", "b\nx-b: c"), []string{"RST PROTOCOL_ERROR", "400"}},
		"carriage return":           {with("x-a", "b\rx-b: c"), []string{"RST PROTOCOL_ERROR", "400"}},
		"NUL in a value":            {with("x-a", "b\x00"), []string{"RST PROTOCOL_ERROR", "400"}},
		"connection":                {with("connection", "close"), []string{"RST PROTOCOL_ERROR", "400"}},
		"keep-alive":                {with("keep-alive", "1"), []string{"RST PROTOCOL_ERROR", "400"}},
		"proxy-connection":          {with("proxy-connection", "close"), []string{"RST PROTOCOL_ERROR", "400"}},
		"transfer-encoding":         {with("transfer-encoding", "chunked"), []string{"RST PROTOCOL_ERROR", "400"}},
		"upgrade":                   {with("upgrade", "x"), []string{"RST PROTOCOL_ERROR", "400"}},
		"te other than trailers":    {with("te", "gzip"), []string{"RST PROTOCOL_ERROR", "400"}},
		"length of another body":    {with("content-length", "5"), []string{"RST PROTOCOL_ERROR", "400"}},
		"length that is none":       {with("content-length", "+2"), []string{"RST PROTOCOL_ERROR", "400"}},
		"unknown pseudo field":      {with(":x", "y"), []string{"RST PROTOCOL_ERROR"}},
		"pseudo field at the end":   {append([]string{"x-a", "b"}, good...), []string{"RST PROTOCOL_ERROR"}},
		"pseudo field of a reply":   {append([]string{":status", "200"}, good...), []string{"RST PROTOCOL_ERROR"}},
		"pseudo field twice":        {append([]string{":path", "/x"}, good...), []string{"RST PROTOCOL_ERROR"}},
		"no method":                 {good[2:], []string{"RST PROTOCOL_ERROR"}},
		"no path":                   {good[:6], []string{"RST PROTOCOL_ERROR"}},
		"no scheme":                 {append([]string{":method", "GET"}, good[4:]...), []string{"RST PROTOCOL_ERROR"}},
		"empty path":                {append([]string{":path", ""}, good[:6]...), []string{"RST PROTOCOL_ERROR"}},
		"path of another form":      {append([]string{":path", "http://b/"}, good[:6]...), []string{"RST PROTOCOL_ERROR", "400"}},
		"space in the path":         {append([]string{":path", "/a b"}, good[:6]...), []string{"RST PROTOCOL_ERROR", "400"}},
		"line feed in the path":     {append([]string{":path", "/a\r\nx: y"}, good[:6]...), []string{"RST PROTOCOL_ERROR", "400"}},
		"line feed in the method":   {append([]string{":method", "GET\r\nx: y"}, good[2:]...), []string{"RST PROTOCOL_ERROR", "400"}},
		"space in the authority":    {[]string{":method", "GET", ":scheme", "http", ":authority", "a b", ":path", "/"}, []string{"RST PROTOCOL_ERROR", "400"}},
		"path in the authority":     {[]string{":method", "GET", ":scheme", "http", ":authority", "a/b", ":path", "/"}, []string{"RST PROTOCOL_ERROR", "400"}},
		"CONNECT":                   {[]string{":method", "CONNECT", ":authority", "a:443"}, []string{"501"}},
		"CONNECT with a path":       {[]string{":method", "CONNECT", ":scheme", "http", ":authority", "a", ":path", "/"}, []string{"RST PROTOCOL_ERROR"}},
		"CONNECT of a protocol":     {[]string{":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", "a", ":path", "/"}, []string{"RST PROTOCOL_ERROR"}},
		"fields that are too large": {with("x-a", strings.Repeat("!", 22<<10), "x-b", strings.Repeat("!", 22<<10), "x-c", strings.Repeat("!", 22<<10)), []string{"431"}},
		"a field that is too large": {with("x-a", strings.Repeat("a", 90<<10)), []string{"GOAWAY COMPRESSION_ERROR"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gateway{t: t, address: g.address}
			f := g.frames()
			block := f.encode(test.fields...)
			for at := 0; at < len(block); at += 16 << 10 { // a large block needs more than one frame
				end := min(at+16<<10, len(block))
				if at == 0 {
					_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:end], EndHeaders: end == len(block), EndStream: true})
					continue
				}
				_ = f.WriteContinuation(1, end == len(block), block[at:end])
			}
			got := f.outcome(1)
			if !strings.Contains(strings.Join(test.want, ","), got) {
				t.Errorf("got %s, want %v", got, test.want)
			}
			if f.first[http2.SettingEnableConnectProtocol] != 0 || f.first[http2.SettingMaxConcurrentStreams] != 250 {
				t.Errorf("settings: %v", f.first)
			}
		})
	}
	want(t, "requests at the backend", len(requests), 1)
}

func TestHTTP2FramesThatAreNotExpected(t *testing.T) {
	backend, _ := recording(t)
	g := start(t, Options{}, toApp, backend)
	const protocol, calm, size, flow = "GOAWAY PROTOCOL_ERROR", "GOAWAY ENHANCE_YOUR_CALM", "GOAWAY FRAME_SIZE_ERROR", "GOAWAY FLOW_CONTROL_ERROR"
	for name, test := range map[string]struct {
		say  func(f *frames)
		want string // any of these
	}{
		"a stream of the server":  {func(f *frames) { f.open(2, true, good...) }, protocol},
		"a stream that is behind": {func(f *frames) { f.open(5, true, good...); f.open(3, true, good...) }, protocol},
		"a request twice":         {func(f *frames) { f.open(1, true, good...); f.open(1, true, good...) }, "GOAWAY STREAM_CLOSED,RST STREAM_CLOSED,200," + protocol},
		"data before a request":   {func(f *frames) { _ = f.WriteData(1, true, []byte("x")) }, protocol},
		"data after the end":      {func(f *frames) { f.open(1, true, good...); _ = f.WriteData(1, true, []byte("x")) }, "RST STREAM_CLOSED,GOAWAY STREAM_CLOSED,200"},
		"data on no stream":       {func(f *frames) { _ = f.WriteData(0, true, []byte("x")) }, protocol},
		"less data than said": {func(f *frames) {
			f.open(1, false, with("content-length", "5")...)
			_ = f.WriteData(1, true, []byte("x"))
		}, "RST PROTOCOL_ERROR,400"},
		"more data than said": {func(f *frames) {
			f.open(1, false, with("content-length", "1")...)
			_ = f.WriteData(1, true, []byte("xyz"))
		}, "RST PROTOCOL_ERROR,400"},
		"a reset before a request":       {func(f *frames) { _ = f.WriteRSTStream(1, http2.ErrCodeCancel) }, protocol},
		"a window that grows by nothing": {func(f *frames) { _ = f.WriteWindowUpdate(0, 0) }, protocol},
		"a window that overflows":        {func(f *frames) { _ = f.WriteWindowUpdate(0, 1<<31-1) }, flow},
		"a stream's window overflows":    {func(f *frames) { f.open(1, false, good...); _ = f.WriteWindowUpdate(1, 1<<31-1) }, "RST FLOW_CONTROL_ERROR"},
		"a window before a request":      {func(f *frames) { _ = f.WriteWindowUpdate(1, 1) }, protocol},
		"a window in the settings":       {func(f *frames) { _ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}) }, flow},
		"a push": {func(f *frames) {
			_ = f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, protocol},
		"more of no fields": {func(f *frames) { _ = f.WriteContinuation(1, true, []byte("x")) }, protocol},
		"something amid the fields": {func(f *frames) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.encode(good...)})
			_ = f.WritePing(false, [8]byte{})
		}, protocol},
		"fields that cannot be read": {func(f *frames) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		}, "GOAWAY COMPRESSION_ERROR"},
		"a frame that is too large": {func(f *frames) { f.open(1, false, good...); _ = f.WriteData(1, true, make([]byte, 2<<20)) }, size},
		"a ping of another size":    {func(f *frames) { _ = f.WriteRawFrame(http2.FramePing, 0, 0, []byte("x")) }, size},
		"settings of another size":  {func(f *frames) { _ = f.WriteRawFrame(http2.FrameSettings, 0, 0, []byte("x")) }, size},
		"pseudo fields in trailers": {func(f *frames) { f.open(1, false, good...); f.open(1, true, ":path", "/x") }, "RST PROTOCOL_ERROR,400"},
		"trailers before the end":   {func(f *frames) { f.open(1, false, good...); f.open(1, false, "x-a", "b") }, protocol + ",RST PROTOCOL_ERROR"},
		"fields without an end": {func(f *frames) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.encode(with("x-a", strings.Repeat("a", 10<<10))...)})
			for f.WriteContinuation(1, false, f.encode("x-a", strings.Repeat("a", 10<<10))) == nil {
			}
		}, protocol + "," + calm + ",closed"},
		"a kind that nobody knows": {func(f *frames) { _ = f.WriteRawFrame(0xee, 0xff, 0, []byte("x")); f.open(1, true, good...) }, "200"},
		"a priority":               {func(f *frames) { _ = f.WritePriority(1, http2.PriorityParam{StreamDep: 3}); f.open(1, true, good...) }, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gateway{t: t, address: g.address}
			f := g.frames()
			test.say(f)
			if got := f.outcome(1); !strings.Contains(test.want, got) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			response, _ := g.get("/")
			want(t, "another connection", response.StatusCode, 200)
		})
	}
}

func TestHTTP2ResponsesWaitForTheWindow(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100)) })
	g := start(t, Options{}, toApp, backend)
	f := g.frames(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	f.open(1, true, good...)
	total, ended := 0, false
	for !ended {
		switch frame := f.next().(type) {
		case nil:
			t.Fatal("closed")
		case *http2.DataFrame:
			total += len(frame.Data())
			if total%10 != 0 || len(frame.Data()) > 10 {
				t.Errorf("got %d bytes at once", len(frame.Data()))
			}
			ended = frame.StreamEnded()
			_ = f.WriteWindowUpdate(1, 10)
		}
	}
	want(t, "bytes", total, 100)
}

// counted counts the connections to backends. Each has a request in flight here.
type counted struct {
	net.Conn

	close func()
}

func (c counted) Close() error {
	c.close()
	return c.Conn.Close()
}

func TestHTTP2StreamsAreBounded(t *testing.T) {
	var under, connections, most atomic.Int64
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		if now := connections.Add(1); now > most.Load() {
			most.Store(now)
		}
		return counted{conn, sync.OnceFunc(func() { connections.Add(-1) })}, nil
	}
	backend := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/alive" {
			return
		}
		under.Add(1)
		defer under.Add(-1)
		<-r.Context().Done()
	})
	g := start(t, Options{Upstream: upstream.Options{Dial: dial}}, toApp, backend)
	f := g.frames()
	for i := range uint32(251) {
		f.open(2*i+1, true, good...)
	}
	want(t, "one too many", f.outcome(501), "RST PROTOCOL_ERROR") // it knows the settings
	eventually(t, "the others are served", func() bool { return under.Load() == 250 })
	f.conn.Close()
	eventually(t, "a client that leaves ends its requests", func() bool { return under.Load() == 0 })

	// Requests that are reset at once cost the backend no more than others.
	f = g.frames()
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, f.conn) })
	for i := range uint32(5000) {
		f.open(2*i+1, true, good...)
		if f.WriteRSTStream(2*i+1, http2.ErrCodeCancel) != nil {
			break // the gateway has closed the connection
		}
	}
	response, _ := g.get("/alive")
	want(t, "another client", response.StatusCode, 200)
	f.conn.Close()
	reading.Wait()
	eventually(t, "nothing is left", func() bool { return under.Load() == 0 })
	if most.Load() > 255 { // some may be reserved for others
		t.Errorf("%d connections to the backend at a time", most.Load())
	}
}

func TestHTTP2ResetEndsTheWorkOfTheBackend(t *testing.T) {
	var under atomic.Int64
	backend := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		under.Add(1)
		defer under.Add(-1)
		<-r.Context().Done()
	})
	for _, service := range []string{"app", "h2"} {
		g := start(t, Options{}, `[{backendService: {name: `+service+`, port: 80}}]`, backend)
		f := g.frames()
		f.open(1, true, good...)
		eventually(t, "the backend works", func() bool { return under.Load() == 1 })
		_ = f.WriteRSTStream(1, http2.ErrCodeCancel)
		eventually(t, "the backend has stopped", func() bool { return under.Load() == 0 })
		_ = f.WritePing(false, [8]byte{1})
		for ping, ok := f.next().(*http2.PingFrame); !ok || !ping.IsAck(); ping, ok = f.next().(*http2.PingFrame) {
		}
	}
}

func TestHTTP2DrainEndsWithTheLastStream(t *testing.T) {
	held, hold := make(chan struct{}), make(chan struct{})
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		close(held)
		<-hold
		_, _ = io.WriteString(w, "ok")
	})
	g := start(t, Options{}, toApp, backend)
	f := g.frames()
	f.open(1, true, good...)
	var wait sync.WaitGroup
	<-held
	var once sync.Once
	wait.Go(func() { _ = g.server.Shutdown(t.Context()) })
	var got []string
	for {
		frame := f.next()
		if frame == nil {
			break
		}
		switch frame := frame.(type) {
		case *http2.GoAwayFrame:
			got = append(got, "GOAWAY "+frame.ErrCode.String()+" "+strconv.FormatBool(frame.LastStreamID >= 1))
			once.Do(func() { close(hold) })
		case *http2.MetaHeadersFrame:
			got = append(got, frame.PseudoValue("status"))
		case *http2.DataFrame:
			got = append(got, string(frame.Data()))
		}
	}
	wait.Wait()
	text := strings.Join(got, ", ")
	if !strings.HasPrefix(text, "GOAWAY NO_ERROR true") || !strings.Contains(text, "200, ok") {
		t.Errorf("got %s", text)
	}
}
