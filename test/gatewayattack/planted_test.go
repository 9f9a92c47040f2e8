package gatewayattack

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// naive is a proxy that has faults: it sends on what it read as it came.
type naive struct {
	lanes []*lane
	// reads is how it reads clients' requests.
	reads reader
	// early answers what comes while the rest of a body is missing, and takes that for the next request.
	early bool
	// ends takes the end of the client's side for that of a body.
	ends bool
	// unlocked asks for no keys; path is how it finds out whether it should.
	unlocked bool
	path     pathReading
	// twice sends each request two times.
	twice bool
	// anyHost serves what it does not know from the first backend.
	anyHost bool
	// loose lets each answer be what comes next on the connection to the backend, whatever came before.
	loose bool
	// untrimmed passes on fields that clients may not send.
	untrimmed bool
	// unsplit passes answers on as bytes, as many as there are.
	unsplit bool
	// absolute finds the host in the target first.
	absolute bool
	// polite makes an answer that was cut short look whole.
	polite bool
	// anyMethod compares methods as they are written.
	anyMethod bool
	// preface speaks HTTP/2 to the backend of whoever looks like gRPC.
	preface bool
	// keeps gives what was answered for a target to everybody. Nil: it keeps nothing.
	keeps map[string][]byte

	mu    sync.Mutex
	conns map[*lane]*backendConn
}

// backendConn is a connection to a backend, with what has come over it and was not read.
type backendConn struct {
	net.Conn
	in *bufio.Reader
}

// careful is the proxy without a fault, as far as it goes.
func careful(lanes []*lane) *naive {
	return &naive{lanes: lanes, path: pathReading{merge: true}, conns: map[*lane]*backendConn{}}
}

// start serves until the test ends, to clients that believe after so long a silence that nothing will come.
func (n *naive) start(t *testing.T, quiet time.Duration) *target {
	t.Helper()
	g := &target{name: "a proxy with a fault", patience: patience{answer: max(time.Second, 4*quiet), quiet: quiet}}
	serve := func(listener net.Listener) string {
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go n.serve(conn)
			}
		}()
		return listener.Addr().String()
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.roots = x509.NewCertPool()
	certificate, key := newCertificate(t, g.roots, []string{hostOne, hostTwo})
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	g.plain = serve(plain)
	g.secure = serve(tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}))
	return g
}

func (n *naive) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	var buffer []byte
	piece := make([]byte, 32<<10)
	for {
		if bytes.HasPrefix(buffer, []byte(http2.ClientPreface)) {
			n.serveHTTP2(conn, buffer[len(http2.ClientPreface):])
			return
		}
		m, used, state := n.reads.next(buffer)
		if state == broken {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			return
		}
		if state == whole || (state == part && n.early && strings.Contains(m.target, "/early/")) {
			answer := n.answer(m, buffer[:used], state == whole)
			if _, err := conn.Write(answer); err != nil {
				return
			}
			buffer = buffer[used:]
			continue
		}
		got, err := conn.Read(piece)
		if err != nil {
			if n.ends && m != nil && m.value("content-length") != "" {
				n.answer(m, endedHere(buffer), true)
			}
			return
		}
		buffer = append(buffer, piece[:got]...)
	}
}

// endedHere is a request whose body is as long as what has come of it.
func endedHere(raw []byte) []byte {
	head, body, _ := strings.Cut(string(raw), "\r\n\r\n")
	return []byte(declaredLength.ReplaceAllString(head, fmt.Sprint("Content-Length: ", len(body))) + "\r\n\r\n" + body)
}

var declaredLength = regexp.MustCompile(`(?i)content-length: *\d+`)

// answer is what becomes of a request, or of the part of it that has come.
func (n *naive) answer(m *message, raw []byte, complete bool) []byte {
	l := n.laneOf(m)
	switch {
	case l == nil:
		return []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	case !n.allowed(m):
		return []byte("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.twice {
		_ = n.exchange(l, m, raw)
	}
	if kept := n.keeps[l.name+m.target]; kept != nil {
		return kept
	}
	answer := n.exchange(l, m, raw)
	if n.keeps != nil {
		n.keeps[l.name+m.target] = answer
	}
	if !complete {
		delete(n.conns, l) // what follows has to reach the backend as a request, not as the rest of this one
	}
	return answer
}

func (n *naive) laneOf(m *message) *lane {
	name, _, _ := strings.Cut(strings.ToLower(m.value("host")), ":")
	if _, rest, found := strings.Cut(m.target, "://"); n.absolute && found {
		name, _, _ = strings.Cut(rest, "/")
	}
	for _, l := range n.lanes {
		if l.host == name {
			return l
		}
	}
	if n.anyHost || slices.Contains([]string{hostOne, hostTwo}, name) {
		return n.lanes[0]
	}
	return nil
}

func (n *naive) allowed(m *message) bool {
	if n.unlocked {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(n.path.path(m.target), "/"), "/")
	switch first {
	case "private", "secret":
		return m.value("x-api-key") == clientKey
	case "other":
		return m.value("x-api-key") == otherKey
	case "method":
		return m.method == "GET" || (n.anyMethod && m.method != "POST") || m.value("x-api-key") == clientKey
	case "query":
		return !strings.Contains(m.target, "secret")
	}
	return true
}

// exchange sends a request over the one connection to the backend, and reads the answer.
func (n *naive) exchange(l *lane, m *message, raw []byte) []byte {
	conn := n.conns[l]
	if conn == nil || (conn.in.Buffered() > 0 && !n.loose) {
		dialed, err := net.Dial("tcp", l.address)
		if err != nil {
			return nil
		}
		conn = &backendConn{Conn: dialed, in: bufio.NewReader(dialed)}
		n.conns[l] = conn
	}
	if !n.untrimmed {
		raw = n.trim(m, raw)
	}
	if n.preface && strings.HasPrefix(m.value("content-type"), "application/grpc") {
		raw = []byte(http2.ClientPreface)
	}
	_ = conn.SetDeadline(time.Now().Add(500 * time.Millisecond)) // for this exchange: the connection may be old
	_, _ = conn.Write(raw)
	answer := n.read(conn.in, m)
	if answer == nil {
		n.conns[l] = nil
		return []byte("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
	}
	return answer
}

// trim leaves out what clients may not say.
func (n *naive) trim(m *message, raw []byte) []byte {
	out := &bytes.Buffer{}
	for line := range strings.Lines(string(m.head)) {
		name, _, _ := strings.Cut(strings.ToLower(line), ":")
		if !strings.HasPrefix(strings.ReplaceAll(name, "_", "-"), "x-forwarded-") && name != "forwarded" {
			out.WriteString(line)
		}
	}
	out.Write(raw[len(m.head):])
	return out.Bytes()
}

// read reads the next answer of a backend.
func (n *naive) read(in *bufio.Reader, m *message) []byte {
	if n.unsplit {
		piece := make([]byte, 64<<10)
		got, err := in.Read(piece)
		if err != nil {
			return nil
		}
		return piece[:got]
	}
	response, err := http.ReadResponse(in, &http.Request{Method: m.method})
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil && !n.polite {
		return nil
	}
	return append([]byte("HTTP/1.1 "+strconv.Itoa(response.StatusCode)+" X\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
}

// serveHTTP2 writes what comes over HTTP/2 as HTTP/1, byte for byte.
func (n *naive) serveHTTP2(conn net.Conn, begun []byte) {
	framer := http2.NewFramer(conn, io.MultiReader(bytes.NewReader(begun), conn))
	_ = framer.WriteSettings()
	decoder := hpack.NewDecoder(4096, nil)
	heads, blocks := map[uint32]string{}, []byte{}
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return
		}
		ended, stream := false, f.Header().StreamID
		switch f := f.(type) {
		case *http2.HeadersFrame:
			blocks = append(blocks[:0], f.HeaderBlockFragment()...)
			if !f.HeadersEnded() {
				continue
			}
			heads[stream] += asHTTP1(decoder, blocks)
			ended = f.StreamEnded()
		case *http2.ContinuationFrame:
			heads[stream] += asHTTP1(decoder, append(blocks, f.HeaderBlockFragment()...))
			ended = true
		case *http2.DataFrame:
			heads[stream] += string(f.Data())
			ended = f.StreamEnded()
		}
		if ended {
			n.answerHTTP2(framer, stream, []byte(heads[stream]))
		}
	}
}

func asHTTP1(decoder *hpack.Decoder, block []byte) string {
	fields, err := decoder.DecodeFull(block)
	if err != nil {
		return ""
	}
	pseudo, rest := map[string]string{}, ""
	for _, f := range fields {
		if strings.HasPrefix(f.Name, ":") {
			pseudo[f.Name] = f.Value
			continue
		}
		rest += f.Name + ": " + f.Value + "\r\n"
	}
	return pseudo[":method"] + " " + pseudo[":path"] + " HTTP/1.1\r\nhost: " + pseudo[":authority"] + "\r\n" + rest + "\r\n"
}

func (n *naive) answerHTTP2(framer *http2.Framer, stream uint32, raw []byte) {
	m := strictly.head(raw)
	if m == nil {
		_ = framer.WriteRSTStream(stream, http2.ErrCodeProtocol)
		return
	}
	end := bytes.Index(raw, []byte("\r\n\r\n")) + 4
	m.head = raw[:end]
	answer := n.answer(m, raw, true)
	block := &bytes.Buffer{}
	_ = hpack.NewEncoder(block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
	_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	_ = framer.WriteData(stream, true, []byte(body))
}

// plantedFaults are what the oracles have to find, each by the attacks of its family.
var plantedFaults = []struct {
	family string
	oracle string // one of those that must find it
	plant  func(n *naive)
}{
	{"CL.TE", oracleUnsent, func(n *naive) { n.reads = reader{lengthFirst: true} }},
	{"TE.CL", oracleReaders, func(n *naive) { n.reads = reader{lengthFirst: true} }},
	{"TE.TE", oracleUnsent, func(n *naive) { n.reads = reader{anyCoding: true, spaces: true, folds: true} }},
	{"TE.TE", oracleReaders, func(n *naive) { n.reads = reader{noCoding: true, spaces: true} }},
	{"duplicate and odd lengths", oracleReaders, func(n *naive) { n.reads = reader{lastLength: true, lengthFirst: true, looseSizes: true} }},
	{"duplicate and odd lengths", oracleUnsent, func(n *naive) { n.reads = reader{looseSizes: true, lengthFirst: true} }},
	{"0.CL", oracleUnsent, func(n *naive) { n.reads = reader{noLength: true} }},
	{"CL.0", oracleVictim, func(n *naive) { n.loose = true }},
	{"chunks and their extensions", oracleReaders, func(n *naive) { n.reads = reader{looseSizes: true, bareLF: true, looseEnds: true} }},
	{"early answer", oracleUnsent, func(n *naive) { n.early = true }},
	{"pauses", oracleUnsent, func(n *naive) { n.early = true }},
	{"Expect", oracleUnsent, func(n *naive) { n.early = true }},
	{"half-close", oracleWhole, func(n *naive) { n.ends = true }},
	{"folded lines", oracleReaders, func(n *naive) { n.reads = reader{folds: true, anyCoding: true} }},
	{"field names", oracleRefused, func(n *naive) { n.reads = reader{spaces: true} }},
	{"control characters", oracleReaders, func(n *naive) { n.reads = reader{} }},
	{"request lines", oracleRefused, func(n *naive) { n.anyHost = true; n.absolute = true }},
	{"methods", oracleRefused, func(n *naive) { n.anyMethod = true }},
	{"Upgrade", oracleFields, func(n *naive) { n.untrimmed = true }},
	{"trailers", oracleFields, func(n *naive) { n.untrimmed = true }},
	{"fields of a connection", oracleFields, func(n *naive) { n.untrimmed = true }},
	{"split answers", oracleAnswers, func(n *naive) { n.unsplit = true }},
	{"split answers", oracleWhole, func(n *naive) { n.polite = true }},
	{"split answers", oracleVictim, func(n *naive) { n.loose = true }},
	{"hosts", oracleRefused, func(n *naive) { n.anyHost = true }},
	{"server names", oracleRefused, func(n *naive) {}},
	{"paths", oracleKey, func(n *naive) {}},
	{"paths", oracleKey, func(n *naive) { n.unlocked = true }},
	{"regular expressions", oracleKey, func(n *naive) { n.unlocked = true }},
	{"HTTP/2 downgrades", oracleUnsent, func(n *naive) {}},
	{"HTTP/2 downgrades", oracleReaders, func(n *naive) {}},
	{"HTTP/2 streams", oracleUnsent, func(n *naive) { n.untrimmed = true }},
	{protocolFamily, oracleReaders, func(n *naive) { n.preface = true }},
	{"HTTP/1.0 and others", oracleUnsent, func(n *naive) { n.reads = reader{noCoding: true} }},
	{cacheFamily, oracleKept, func(n *naive) { n.keeps = map[string][]byte{} }},
	{cacheFamily, oracleKept, func(n *naive) { n.keeps, n.polite = map[string][]byte{}, true }},
	{"request lines", oracleTwice, func(n *naive) { n.twice = true }},
}

// Each fault is found by attacks of the family that it belongs to.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	suites := make([]*suite, len(plantedFaults))
	slots := make(chan struct{}, 12)
	var wait sync.WaitGroup
	for i, fault := range plantedFaults { // nearly all the time is spent waiting
		suites[i] = plantedSuite(t, fault.plant, 80*time.Millisecond)
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			suites[i].run(some(fault.family))
		})
	}
	wait.Wait()
	for i, fault := range plantedFaults {
		t.Run(fault.family+"/"+fault.oracle, func(t *testing.T) {
			found := suites[i].violations()
			// On a busy machine an answer may come too late for its attack. Then a client that waits longer tries.
			for quiet := 250 * time.Millisecond; found[fault.oracle] == 0 && quiet <= time.Second; quiet *= 2 {
				patient := plantedSuite(t, fault.plant, quiet)
				patient.run(some(fault.family))
				found = patient.violations()
			}
			if found[fault.oracle] == 0 {
				t.Errorf("%d attacks, and not one finds it by %q; found: %v", len(suites[i].played), fault.oracle, found)
			}
		})
	}
}

// plantedSuite is a suite against a proxy with a fault.
func plantedSuite(t *testing.T, plant func(n *naive), quiet time.Duration) *suite {
	t.Helper()
	lanes := recordingLanes(t, loopback)
	proxy := careful(lanes)
	plant(proxy)
	return &suite{target: proxy.start(t, quiet), lanes: lanes}
}

// some are the attacks of a family, of the large ones every second, third and so on.
func some(family string) []*attack {
	all := slices.DeleteFunc(allAttacks(), func(a *attack) bool { return a.family != family })
	var chosen []*attack
	for i := 0; i < len(all); i += 1 + len(all)/80 {
		chosen = append(chosen, all[i])
	}
	return chosen
}
