package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

const (
	// floodConnections is how many connections attack at the same time. Each sends
	// floodFrames frames.
	floodConnections = 4
	floodFrames      = 5000
	// deafFrames are more frames than the server queues answers for.
	deafFrames = 12000
	// floodHeap is how much heap an attack may cost, in bytes: some MiB per connection,
	// whatever is sent.
	floodHeap = 24 << 20
)

// flood is what an attacker does on a connection.
type flood struct {
	do    func(f *frames) error
	deaf  bool  // the attacker reads no answers
	ended bool  // the gateway must close the connection
	heap  int64 // how much heap it may cost; floodHeap if 0
}

// repeat calls do with increasing stream numbers until it fails.
func repeat(times int, do func(stream uint32) error) error {
	for i := range times {
		if err := do(uint32(2*i + 1)); err != nil {
			return err
		}
	}
	return nil
}

func headers(stream uint32, block []byte, endStream, endHeaders bool) http2.HeadersFrameParam {
	return http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndStream: endStream, EndHeaders: endHeaders}
}

// slow is a request that is reset before its answer comes.
var slow = []string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/slow"}

func resets(f *frames) error {
	return repeat(floodFrames, func(stream uint32) error {
		if err := f.WriteHeaders(headers(stream, f.encode(slow...), true, true)); err != nil {
			return err
		}
		return f.WriteRSTStream(stream, http2.ErrCodeCancel)
	})
}

var floods = map[string]flood{
	"streams that are taken back at once": {do: resets, ended: true},
	// This is 1000 requests at a time. The test's own backend is in the same process.
	"streams that nobody ends": {heap: 160 << 20, do: func(f *frames) error {
		return repeat(floodFrames, func(stream uint32) error { return f.WriteHeaders(headers(stream, f.encode(good...), false, true)) })
	}},
	"CONTINUATION without end": {ended: true, do: func(f *frames) error {
		if err := f.WriteHeaders(headers(1, f.encode(good...), false, false)); err != nil {
			return err
		}
		fragment := bytes.Repeat([]byte{0x10, 1, 'a', 1, 'b'}, 1000)
		return repeat(floodFrames, func(uint32) error { return f.WriteContinuation(1, false, fragment) })
	}},
	"empty CONTINUATION without end": {do: func(f *frames) error {
		if err := f.WriteHeaders(headers(1, f.encode(good...), false, false)); err != nil {
			return err
		}
		return repeat(floodFrames, func(uint32) error { return f.WriteContinuation(1, false, nil) })
	}},
	"HPACK that grows": {do: func(f *frames) error {
		value := strings.Repeat("x", 4000)
		if err := f.WriteHeaders(headers(1, f.encode(with("x-bomb", value)...), true, true)); err != nil {
			return err
		}
		reference := f.encode("x-bomb", value) // one byte stands for 4000 by now
		block := append(f.encode(good...), bytes.Repeat(reference, 15<<10)...)
		return repeat(20, func(stream uint32) error { return f.WriteHeaders(headers(stream+2, block, true, true)) })
	}},
	"SETTINGS":                     {do: settings},
	"SETTINGS, and no ear":         {do: settings, deaf: true},
	"PING":                         {do: pings(floodFrames)},
	"PING, and no ear":             {do: pings(deafFrames), deaf: true, ended: true},
	"answers that nobody hears":    {do: resetsOfNothing, deaf: true},
	"empty DATA":                   {do: emptyData},
	"HEADERS with nothing in them": {do: emptyHeaders},
	"PRIORITY": {do: func(f *frames) error {
		return repeat(floodFrames, func(stream uint32) error {
			return f.WritePriority(stream, http2.PriorityParam{StreamDep: stream + 2, Weight: uint8(stream)})
		})
	}},
	"WINDOW_UPDATE": {do: func(f *frames) error {
		f.open(1, false, good...)
		return repeat(floodFrames, func(stream uint32) error { return f.WriteWindowUpdate(stream&1, 1) })
	}},
}

func settings(f *frames) error {
	return repeat(floodFrames, func(stream uint32) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: stream})
	})
}

func pings(times int) func(f *frames) error {
	return func(f *frames) error {
		return repeat(times, func(uint32) error { return f.WritePing(false, [8]byte{}) })
	}
}

// resetsOfNothing makes the gateway answer each frame with RST_STREAM.
func resetsOfNothing(f *frames) error {
	f.open(1, true, good...)
	return repeat(floodFrames, func(uint32) error { return f.WriteWindowUpdate(1, 0) })
}

func emptyData(f *frames) error {
	f.open(1, false, good...)
	return repeat(floodFrames, func(uint32) error { return f.WriteData(1, false, nil) })
}

func emptyHeaders(f *frames) error {
	return repeat(floodFrames, func(stream uint32) error { return f.WriteHeaders(headers(stream, nil, true, true)) })
}

// heapInUse is the heap in use after garbage collection.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // sync.Pool keeps unused items for one more collection
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapInuse)
}

// attacker is an attacking connection.
type attacker struct {
	*frames

	out   *bufio.Writer
	ended chan struct{} // closed when the gateway has closed the connection
}

func (f *flooding) attack(test flood) *attacker {
	f.t.Helper()
	a := &attacker{ended: make(chan struct{})}
	if test.deaf {
		a.frames = f.framesOn(f.pipes.dial())
	} else {
		a.frames = f.frames()
	}
	a.out = bufio.NewWriterSize(a.conn, 64<<10)
	a.Framer = http2.NewFramer(a.out, a.conn)
	a.AllowIllegalWrites = true
	_ = a.conn.SetDeadline(time.Now().Add(30 * time.Second))
	return a
}

// pipes are in-process connections without a kernel buffer. So an answer that is not read
// stays in the gateway.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (a *attacker) listen() {
	_, _ = io.Copy(io.Discard, a.conn)
	close(a.ended)
}

// flooding is a gateway under attack, with another client that sends requests.
type flooding struct {
	*gateway

	client *http.Client
	pipes  *pipes
}

// ask sends a request as the other client.
func (f *flooding) ask() error {
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.address+"/", nil)
	if err != nil {
		return err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}

// askUntil calls ask until the channel is closed. It returns the number of requests.
func (f *flooding) askUntil(over chan struct{}) (int, error) {
	for asked := 1; ; asked++ {
		if err := f.ask(); err != nil {
			return asked, err
		}
		select {
		case <-over:
			return asked, nil
		default:
		}
	}
}

// An attack over HTTP/2 costs a bounded amount of memory, leaves nothing behind, and does
// not stop the service for other clients.
func TestHTTP2Floods(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	})
	options := Options{}
	options.Upstream.MaxIdle = 1 // so that the same amount stays each time
	g := start(t, options, toApp, backend)
	client, pipes := http2Client(t), newPipes()
	g.server.mu.Lock()
	g.server.startPort(t.Context(), g.server.newPort(pipes, PortHTTP), 0) // until the gateway is shut down
	g.server.mu.Unlock()
	for name, test := range floods {
		t.Run(name, func(t *testing.T) {
			f := &flooding{gateway: &gateway{t: t, address: g.address}, client: client, pipes: pipes}
			if err := f.ask(); err != nil { // opens the other client's connections
				t.Fatal(err)
			}
			f.play(test)
		})
	}
}

func (f *flooding) play(test flood) {
	f.t.Helper()
	if test.heap == 0 {
		test.heap = floodHeap
	}
	goroutines, before := runtime.NumGoroutine(), heapInUse()
	var sending, others sync.WaitGroup
	attackers := make([]*attacker, floodConnections)
	for i := range attackers {
		a := f.attack(test)
		attackers[i] = a
		if !test.deaf {
			others.Go(a.listen)
		}
		sending.Go(func() {
			if test.do(a.frames) == nil {
				_ = a.out.Flush()
			}
		})
	}
	over := make(chan struct{})
	others.Go(func() {
		asked, err := f.askUntil(over)
		if err != nil {
			f.t.Errorf("somebody else's request: %v", err)
		}
		f.t.Logf("%d requests of others", asked)
	})
	sending.Wait()
	cost := heapInUse() - before
	close(over)
	f.end(test, attackers, &others)
	f.t.Logf("%d KiB", cost>>10)
	if cost > test.heap {
		f.t.Errorf("the flood costs %d bytes", cost)
	}
	if !poll(func() bool { return runtime.NumGoroutine() <= goroutines }) {
		stacks := make([]byte, 1<<20)
		f.t.Errorf("%d goroutines instead of %d:\n%s", runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks, true)])
	}
}

// end closes the connections, except those that the gateway must close itself.
func (f *flooding) end(test flood, attackers []*attacker, others *sync.WaitGroup) {
	f.t.Helper()
	for _, a := range attackers {
		if test.deaf {
			others.Go(a.listen)
		}
		if test.ended {
			select {
			case <-a.ended:
			case <-time.After(5 * time.Second):
				f.t.Error("the connection goes on")
			}
		}
		a.conn.Close()
	}
	others.Wait()
}
