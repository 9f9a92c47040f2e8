package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
)

const (
	compressed   = `[{name: web, backendService: {name: app, port: 80}, compression: {}}]`
	compressedH2 = `[{name: web, backendService: {name: h2, port: 80}, compression: {}}]`
)

// decoded decodes a body. The gzip decoder is not that of the encoder's library.
func decoded(coding string, body io.Reader) ([]byte, error) {
	switch coding {
	case "gzip":
		r, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case "zstd":
		r, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	}
	return io.ReadAll(body)
}

// randomBody returns text, or bytes that cannot be compressed.
func randomBody(random *rand.Rand) []byte {
	body := make([]byte, random.IntN(1+random.IntN(200<<10)))
	letters := byte(1 + random.IntN(255))
	for i := range body {
		body[i] = byte(random.Uint32()) % letters
	}
	return body
}

// clientOf returns a client of HTTP/1.1 or HTTP/2 that decodes nothing.
func clientOf(t *testing.T, version int) *http.Client {
	transport := &http.Transport{DisableCompression: true, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(version == 1)
	transport.Protocols.SetUnencryptedHTTP2(version == 2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// pieces answers with the body of a seed, in pieces. Every seed mod 5 = 4 is cut.
func pieces(w http.ResponseWriter, r *http.Request) {
	seed, _ := strconv.ParseUint(strings.TrimPrefix(r.URL.Path, "/"), 10, 64)
	random := rand.New(rand.NewPCG(seed, 7))
	body := randomBody(random)
	w.Header().Set("Content-Type", "text/html")
	if random.IntN(2) == 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.Header().Set("Trailer", "X-Sum")
	cut := -1
	if seed%5 == 4 {
		cut = random.IntN(len(body) + 1)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	}
	control := http.NewResponseController(w)
	for at := 0; at < len(body); {
		n := min(len(body)-at, 1+random.IntN(1+random.IntN(50<<10)))
		if cut >= 0 && at+n >= cut {
			break
		}
		_, _ = w.Write(body[at : at+n])
		at += n
		if random.IntN(3) == 0 {
			_ = control.Flush()
		}
	}
	if seed%5 == 4 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Sum", strconv.Itoa(len(body)))
}

func TestDecodedBodyIsThatOfTheBackend(t *testing.T) {
	backend := serve(t, pieces)
	for _, routes := range []string{compressed, compressedH2} {
		g := start(t, Options{}, routes, backend)
		for _, version := range []int{1, 2} {
			client, trailers, cuts := clientOf(t, version), 0, map[string]int{}
			for seed := range uint64(40) {
				accepted := []string{"gzip", "zstd", "gzip, zstd;q=0.5", "br", ""}[seed/5%5]
				request := g.request("GET", fmt.Sprint("/", seed), "Accept-Encoding", accepted)
				response, err := client.Do(request)
				if seed%5 == 4 {
					checkCut(t, seed, response, err, cuts)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := decoded(response.Header.Get("Content-Encoding"), response.Body)
				rest, restErr := io.ReadAll(response.Body)
				response.Body.Close()
				body := randomBody(rand.New(rand.NewPCG(seed, 7)))
				if err != nil || restErr != nil || len(rest) > 0 || !bytes.Equal(got, body) {
					t.Fatalf("%s by HTTP/%d, seed %d, %q: got %d bytes and %d more, want %d: %v, %v", routes, version, seed, accepted, len(got), len(rest), len(body), err, restErr)
				}
				if sum := response.Trailer.Get("X-Sum"); sum != "" {
					trailers++
					want(t, "trailer", sum, strconv.Itoa(len(body)))
				}
			}
			if trailers == 0 {
				t.Errorf("%s by HTTP/%d: no trailers", routes, version)
			}
			if cuts["gzip"] == 0 || cuts["zstd"] == 0 {
				t.Errorf("%s by HTTP/%d: of bodies that were cut, clients got %v with some bytes", routes, version, cuts)
			}
		}
		want(t, "encoders in use", g.handler.features.compression.InUse(), 0)
	}
}

// checkCut checks that a client sees that a response was cut, both in its framing and in its
// encoding. It counts the encoded ones of which some bytes came.
func checkCut(t *testing.T, seed uint64, response *http.Response, err error, cuts map[string]int) {
	t.Helper()
	if err != nil {
		return // before the head was sent
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return // the gateway says it
	}
	body, err := io.ReadAll(response.Body)
	if err == nil {
		t.Errorf("seed %d: the framing says that %d bytes are all", seed, len(body))
	}
	coding := response.Header.Get("Content-Encoding")
	if coding == "" || len(body) == 0 {
		return
	}
	cuts[coding]++
	if _, err := decoded(coding, bytes.NewReader(body)); err == nil {
		t.Errorf("seed %d: %s says that %d bytes are all", seed, coding, len(body))
	}
}

func TestPagesAreCompressed(t *testing.T) {
	page := strings.Repeat("<p>hello</p>\n", 1000)
	registry := prometheus.NewRegistry()
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Etag", `"1"`)
		w.Header().Set("Accept-Ranges", "bytes")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = io.WriteString(w, page)
	})
	g := start(t, Options{Metrics: registry}, compressed, backend)
	response, body := g.get("/", "Accept-Encoding", "gzip")
	want(t, "coding", response.Header.Get("Content-Encoding"), "gzip")
	want(t, "vary", join(response.Header["Vary"]), "Accept-Encoding")
	want(t, "tag", response.Header.Get("Etag"), `W/"1"`)
	want(t, "fields", join(response.Header["Accept-Ranges"])+join(response.Header["Content-Length"]), "")
	if len(body) > len(page)/20 {
		t.Errorf("%d bytes of %d", len(body), len(page))
	}
	head, none := g.send(g.request("HEAD", "/", "Accept-Encoding", "gzip"))
	want(t, "body of HEAD", none, "")
	for _, name := range []string{"Content-Encoding", "Vary", "Etag", "Content-Length", "Content-Type"} {
		want(t, "HEAD, "+name, join(head.Header[name]), join(response.Header[name]))
	}
	plain, body := g.get("/")
	want(t, "body", body, page)
	want(t, "plain", join(plain.Header["Vary"])+plain.Header.Get("Etag")+plain.Header.Get("Content-Length")+plain.Header.Get("Accept-Ranges"), `Accept-Encoding"1"13000bytes`)
	eventually(t, "the bytes are counted", func() bool {
		found := series(t, registry) // the labels are in the order of the alphabet
		in, out := found["slipway_gateway_compression_bytes_total in web"], found["slipway_gateway_compression_bytes_total out web"]
		return in == float64(len(page)) && out > 0 && out < in/20
	})
}

// The route's own changes come first: what it says of the response is what the client gets.
func TestHeaderEditsComeBeforeCompression(t *testing.T) {
	page := strings.Repeat("hello ", 1000)
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })
	for edit, want := range map[string]string{
		`set: [{name: Cache-Control, value: no-transform}]`: "",
		`set: [{name: Content-Type, value: image/png}]`:     "",
		`remove: [Content-Type]`:                            "",
		`remove: [Vary]`:                                    "gzip Accept-Encoding",
		`set: [{name: Vary, value: Cookie}]`:                "gzip Cookie | Accept-Encoding",
	} {
		g := start(t, Options{}, `[{backendService: {name: app, port: 80}, compression: {}, responseHeaders: {`+edit+`}}]`, backend)
		response, _ := g.get("/", "Accept-Encoding", "gzip")
		if got := strings.TrimSpace(response.Header.Get("Content-Encoding") + " " + join(response.Header["Vary"])); got != want {
			t.Errorf("%s: got %q, want %q", edit, got, want)
		}
	}
}

func TestEventsAreNotHeldBackByCompression(t *testing.T) {
	next := make(chan struct{})
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		_ = control.Flush()
		for range 3 {
			<-next
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = control.Flush()
		}
	})
	for _, algorithm := range []string{"Gzip", "Zstd"} {
		g := start(t, Options{}, `[{backendService: {name: app, port: 80}, compression: {algorithms: [`+algorithm+`], contentTypes: [text/event-stream]}}]`, backend)
		for _, version := range []int{1, 2} {
			response, err := clientOf(t, version).Do(g.request("GET", "/", "Accept-Encoding", strings.ToLower(algorithm))) //nolint:bodyclose // it is closed below
			if err != nil {
				t.Fatal(err)
			}
			in, out := io.Pipe()
			go func() {
				body, err := decoder(algorithm, response.Body)
				if err == nil {
					_, err = io.Copy(out, body)
				}
				out.CloseWithError(err)
			}()
			event := make([]byte, len("data: x\n\n"))
			for range 3 {
				next <- struct{}{}
				if _, err := io.ReadFull(in, event); err != nil || string(event) != "data: x\n\n" {
					t.Fatalf("%s by HTTP/%d: got %q, %v", algorithm, version, event, err)
				}
			}
			if rest, err := io.ReadAll(in); len(rest) != 0 || err != nil {
				t.Errorf("got %q, %v", rest, err)
			}
			response.Body.Close()
		}
	}
}

func decoder(algorithm string, body io.Reader) (io.Reader, error) {
	if algorithm == "Gzip" {
		return gzip.NewReader(body)
	}
	return zstd.NewReader(body, zstd.WithDecoderConcurrency(1))
}

// endless answers with a body that does not end before the client leaves.
func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, "x"); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(time.Millisecond):
		case <-r.Context().Done():
		}
	}
}

// A client with many responses that do not end leaves encoders to others, and frees its own when it leaves.
func TestAClientHasAShareOfTheEncoders(t *testing.T) {
	registry := prometheus.NewRegistry()
	backend := serve(t, endless)
	g := startTable(t, Options{Metrics: registry}, nil)
	g.handler.Set(Config{
		Table:          compile(t, `[{name: web, path: /, backendService: {name: app, port: 80}, compression: {}}, {name: api, path: /api, backendService: {name: app, port: 80}, compression: {}}]`, nil, backend),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	const share = compress.MaxInUse * 3 / 4
	for _, version := range []int{1, 2} {
		client := clientOf(t, version)
		var open []*http.Response
		ask := func(path, from string) string {
			response, err := client.Do(g.request("GET", path, "Accept-Encoding", "zstd", "X-Forwarded-For", from)) //nolint:bodyclose // it is closed below
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, response) //nolint:bodyclose // it is closed below
			return response.Header.Get("Content-Encoding") + join(response.Header["Vary"])
		}
		for range share {
			want(t, "within the share", ask("/", "192.0.2.1"), "zstdAccept-Encoding")
		}
		want(t, "encoders in use", g.handler.features.compression.InUse(), share)
		want(t, "the same as a metric", gauge(t, registry, "slipway_gateway_compression_encoders"), float64(share))
		want(t, "one more of the client, by another route", ask("/api", "192.0.2.1"), "Accept-Encoding")
		want(t, "another client, by the same route", ask("/", "192.0.2.2"), "Accept-Encoding")
		want(t, "another client, by another route", ask("/api", "192.0.2.2"), "zstdAccept-Encoding")
		for _, one := range open {
			one.Body.Close()
		}
		eventually(t, "all encoders are free", func() bool { return g.handler.features.compression.InUse() == 0 })
	}
	want(t, "uncompressed", series(t, registry)["slipway_gateway_compression_busy_total"], 4.0)
}

// A client that takes nothing holds its encoder no longer than its connection.
func TestClientThatTakesNothingFreesTheEncoder(t *testing.T) {
	body := make([]byte, 8<<20)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(body)
	})
	g := start(t, Options{ClientTimeout: 200 * time.Millisecond}, compressed, backend)
	for version, ask := range map[string]func(){
		"HTTP/1.1": func() {
			conn, err := net.Dial("tcp", g.address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
		},
		"HTTP/2": func() {
			g.frames().open(1, true, ":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/", "accept-encoding", "gzip")
		}, // its window stays as it is
	} {
		ask()
		eventually(t, version+": the encoder is in use", func() bool { return g.handler.features.compression.InUse() == 1 })
		eventually(t, version+": the encoder is free", func() bool { return g.handler.features.compression.InUse() == 0 })
	}
}

// gRPC has its own compression and trailers that say how the call ended.
func TestGRPCIsNeverCompressed(t *testing.T) {
	for _, name := range []string{"application/grpc", "application/grpc+json", "application/grpc-web+proto", "application/grpc-web-text"} {
		backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", name)
			_, _ = w.Write(make([]byte, 5000))
		})
		g := start(t, Options{}, `[{backendService: {name: app, port: 80}, compression: {contentTypes: ["application/*"]}}]`, backend)
		response, body := g.get("/", "Accept-Encoding", "gzip")
		want(t, name, response.Header.Get("Content-Encoding")+strconv.Itoa(len(body)), "5000")
	}
}

func TestOwnAnswersAndPartsStayAsTheyAre(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat("hello ", 1000)))
	})
	g := start(t, Options{}, `
- {path: /own, directResponse: {statusCode: 200, body: "`+strings.Repeat("x", 2000)+`"}}
- {path: /, backendService: {name: app, port: 80}, compression: {}}
- {path: /off, backendService: {name: app, port: 80}, compression: {algorithms: [Identity]}}
`, backend)
	own, _ := g.get("/own", "Accept-Encoding", "gzip")
	want(t, "own", own.Header.Get("Content-Encoding")+own.Header.Get("Vary"), "")
	part, body := g.get("/", "Accept-Encoding", "gzip", "Range", "bytes=0-1999")
	want(t, "part", fmt.Sprint(part.StatusCode, part.Header.Get("Content-Encoding"), part.Header.Get("Vary"), len(body)), "206Accept-Encoding2000")
	off, _ := g.get("/off", "Accept-Encoding", "gzip")
	want(t, "off", off.Header.Get("Content-Encoding")+off.Header.Get("Vary"), "")
	old, _ := g.raw("GET / HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
	want(t, "HTTP/1.0", old.Header.Get("Content-Encoding")+old.Header.Get("Vary")+old.Header.Get("Content-Length"), "Accept-Encoding6000")
}

// A digest that was not announced is that of bytes which the client does not get. So is a tag.
func TestDigestInTrailersDoesNotComeWithAnotherBody(t *testing.T) {
	backend := rawBackend(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Digest: sha-256=:a:\r\nEtag: \"t\"\r\nX-A: 1\r\n\r\n")
	g := start(t, Options{}, compressed, backend)
	for coding, digest := range map[string]string{"gzip": "", "br": `sha-256=:a:"t"`} {
		response, _ := g.get("/", "Accept-Encoding", coding)
		want(t, coding, response.Trailer.Get("X-A")+response.Trailer.Get("Content-Digest")+response.Trailer.Get("Etag"), "1"+digest)
	}
}
