//go:build backupfaults

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy stands between slipway-backup and the S3 server, and does what a fault says.
type proxy struct {
	server   *httptest.Server
	upstream string

	mu    sync.Mutex
	fault fault
	seen  int
	hits  int
}

// fault answers a request in the place of the server, and reports whether it did.
type fault func(p *proxy, w http.ResponseWriter, r *http.Request) bool

func newProxy(t testing.TB, upstream string, tls bool) *proxy {
	t.Helper()
	p := &proxy{upstream: upstream}
	if tls {
		p.server = httptest.NewTLSServer(p)
	} else {
		p.server = httptest.NewServer(p)
	}
	t.Cleanup(p.close)
	return p
}

func (p *proxy) close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

func (p *proxy) trusted() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}))
}

// set makes a fault begin or, with nil, end.
func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	f := p.fault
	p.seen++
	p.mu.Unlock()
	if f != nil && f(p, w, r) {
		p.mu.Lock()
		p.hits++
		p.mu.Unlock()
		return
	}
	if a := p.pass(r); a != nil {
		a.write(w)
		return
	}
	reset(p, w, r)
}

// answer is what the server said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// pass asks the server.
func (p *proxy) pass(r *http.Request) *answer {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", p.upstream, ""
	response, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(out)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	response.Header.Del("Transfer-Encoding")
	return &answer{status: response.StatusCode, header: response.Header, body: body}
}

// from lets a fault begin at a request of a number, and go on.
func from(number int, f fault) fault {
	var mu sync.Mutex
	n := 0
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		n++
		begun := n > number
		mu.Unlock()
		return begun && f(p, w, r)
	}
}

// every lets a fault hit each request of so many, so that trying again helps.
func every(number int, f fault) fault {
	var mu sync.Mutex
	n := 0
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		n++
		hit := n%number == 0
		mu.Unlock()
		return hit && f(p, w, r)
	}
}

func only(method string, f fault) fault {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool { return r.Method == method && f(p, w, r) }
}

func isList(r *http.Request) bool { return r.URL.Query().Get("list-type") == "2" }

func objects(f fault) fault {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool { return !isList(r) && f(p, w, r) }
}

func refused(status int, code string) fault {
	return func(_ *proxy, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
		return true
	}
}

func reset(_ *proxy, w http.ResponseWriter, _ *http.Request) bool {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		connection.Close()
	}
	return true
}

// resetMidway reads a part of what is sent, and hangs up.
func resetMidway(p *proxy, w http.ResponseWriter, r *http.Request) bool {
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	return reset(p, w, r)
}

func silent(_ *proxy, _ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return true
}

func slow(_ *proxy, _ http.ResponseWriter, r *http.Request) bool {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-r.Context().Done():
	}
	return false
}

// altered changes what the server has answered with success.
func altered(change func(r *http.Request, a *answer)) fault {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		a := p.pass(r)
		if a == nil {
			return reset(p, w, r)
		}
		if a.status < 300 {
			change(r, a)
		}
		a.write(w)
		return true
	}
}

// raw answers with bytes that no server of Go would send.
func raw(text func(a *answer) string) fault {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		a := p.pass(r)
		if a == nil || a.status >= 300 || len(a.body) < 2 {
			return reset(p, w, r)
		}
		connection, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return true
		}
		defer connection.Close()
		_, _ = buffered.WriteString(text(a))
		_ = buffered.Flush()
		return true
	}
}

// headed writes the head of an answer with a length that may be a lie.
func headed(a *answer, length int, body []byte) string {
	modified := a.header.Get("Last-Modified")
	return fmt.Sprintf("HTTP/1.1 %d OK\r\nETag: %s\r\nLast-Modified: %s\r\nContent-Type: binary/octet-stream\r\nContent-Length: %d\r\n\r\n%s",
		a.status, a.header.Get("ETag"), modified, length, body)
}

// acknowledged says that something is done which is not.
func acknowledged(body string) fault {
	return func(_ *proxy, w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("ETag", `"00000000000000000000000000000000"`)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// endless answers without an end.
func endless(_ *proxy, w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("ETag", `"0"`)
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	chunk := make([]byte, 1<<20)
	for r.Context().Err() == nil {
		if _, err := w.Write(chunk); err != nil {
			break
		}
	}
	return true
}

// bomb answers with a few bytes that become a GiB for whoever unpacks them.
func bomb(_ *proxy, w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("ETag", `"0"`)
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	packed := gzip.NewWriter(w)
	chunk := make([]byte, 1<<20)
	for range 1 << 10 {
		if _, err := packed.Write(chunk); err != nil {
			return true
		}
	}
	_ = packed.Close()
	return true
}

// listing is the answer to a question what objects there are.
type listing struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	Name        string
	Prefix      string
	KeyCount    int
	MaxKeys     int
	IsTruncated bool
	Token       string `xml:"NextContinuationToken,omitempty"`
	Contents    []listed
}

type listed struct {
	Key          string
	Size         int64
	LastModified string
	ETag         string
}

// listings changes what is listed.
func listings(change func(l *listing)) fault {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		if !isList(r) {
			return false
		}
		a := p.pass(r)
		if a == nil || a.status != http.StatusOK {
			return reset(p, w, r)
		}
		var l listing
		if err := xml.Unmarshal(a.body, &l); err != nil {
			return reset(p, w, r)
		}
		change(&l)
		l.KeyCount = len(l.Contents)
		body, err := xml.Marshal(l)
		if err != nil {
			return reset(p, w, r)
		}
		a.body = append([]byte(xml.Header), body...)
		a.header.Set("Content-Length", strconv.Itoa(len(a.body)))
		a.write(w)
		return true
	}
}

// withKeys adds keys to what is listed.
func withKeys(keys ...string) func(*listing) {
	return func(l *listing) {
		for _, key := range keys {
			l.Contents = append(l.Contents, listed{Key: key, Size: 5, LastModified: time.Now().UTC().Format(time.RFC3339), ETag: `"0"`})
		}
	}
}

// stale repeats the first answer to each question what there is.
func stale() fault {
	var mu sync.Mutex
	first := map[string]*answer{}
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		if !isList(r) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		key := r.URL.Query().Get("prefix")
		if first[key] == nil {
			if first[key] = p.pass(r); first[key] == nil {
				return reset(p, w, r)
			}
		}
		first[key].write(w)
		return true
	}
}

func reversed(l *listing) { slices.Reverse(l.Contents) }

func repeated(l *listing) { l.Contents = append(l.Contents, l.Contents...) }

// flipped changes a bit of what is read.
func flipped(r *http.Request, a *answer) {
	if r.Method == http.MethodGet && len(a.body) > 40 {
		a.body = bytes.Clone(a.body)
		a.body[len(a.body)/2] ^= 1
	}
}

// endlessList is a listing that goes on and on.
func endlessList(l *listing) {
	l.IsTruncated, l.Token = true, "more"+strings.Repeat("e", len(l.Contents))
}
