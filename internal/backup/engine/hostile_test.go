package engine

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kopia/kopia/repo/blob"
)

const canary = "canary-of-the-secret-key"

// hostileServer answers what an attacker wants, and notes what it was asked.
type hostileServer struct {
	*httptest.Server

	mu     sync.Mutex
	answer func(w http.ResponseWriter, r *http.Request)
	paths  []string
	dialed []string
}

func newHostileServer(t testing.TB) *hostileServer {
	t.Helper()
	h := &hostileServer{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.mu.Lock()
		h.paths = append(h.paths, r.URL.Path+"?"+r.URL.RawQuery)
		answer := h.answer
		h.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

func (h *hostileServer) location() *S3 {
	return &S3{
		Endpoint: strings.TrimPrefix(h.URL, "http://"), Region: "us-east-1", Bucket: "backups", Prefix: "team/shop", Plaintext: true,
		AccessKeyID: "access", SecretAccessKey: canary, SessionToken: canary,
	}
}

// storage is the storage below the library, without the retries that would repeat each attack for minutes.
func (h *hostileServer) storage(t testing.TB) *objects {
	t.Helper()
	location := h.location()
	transport, err := newTransport(nil)
	if err != nil {
		t.Fatal(err)
	}
	bounded, ok := transport.(*boundedTransport)
	if !ok {
		t.Fatalf("the transport is a %T", transport)
	}
	bounded.DialContext = h.dial
	client, err := newClient(location, transport, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &objects{client: client, bucket: location.Bucket, prefix: location.prefix()}
}

// dial connects, and notes whom to.
func (h *hostileServer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	h.mu.Lock()
	h.dialed = append(h.dialed, address)
	h.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// rawly answers with bytes of a connection.
func rawly(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		_, _ = buffered.WriteString(text)
		_ = buffered.Flush()
	}
}

func saying(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"0"`)
		w.Header().Set("Last-Modified", time.Unix(1_700_000_000, 0).UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, text)
	}
}

// A listing is believed where it names what was asked for, and nowhere else.
func TestWhatAServerMayList(t *testing.T) {
	list := func(keys ...string) string {
		text := "<ListBucketResult>"
		for _, key := range keys {
			text += "<Contents><Key>" + key + "</Key><Size>5</Size></Contents>"
		}
		return text + "</ListBucketResult>"
	}
	tests := map[string]struct {
		answer string
		want   int // keys; -1: an error
	}{
		"what was asked for":         {list("team/shop/p1", "team/shop/p2"), 2},
		"twice":                      {list("team/shop/p1", "team/shop/p1"), 2},
		"the folder itself":          {list("team/shop/"), -1}, // asked was for what begins with p
		"shorter than the prefix":    {list("x"), -1},
		"nothing as a key":           {list(""), -1},
		"of another prefix":          {list("team/shopping/p1"), -1},
		"of the prefix, not of p":    {list("team/shop/q1"), -1},
		"a size below zero":          {"<ListBucketResult><Contents><Key>team/shop/p1</Key><Size>-5</Size></Contents></ListBucketResult>", -1},
		"a size that is no number":   {"<ListBucketResult><Contents><Key>team/shop/p1</Key><Size>9999999999999999999999</Size></Contents></ListBucketResult>", -1},
		"an error with status 200":   {"<Error><Code>InternalError</Code></Error>", -1},
		"no XML":                     {"{}", -1},
		"half of it":                 {list("team/shop/p1")[:60], -1},
		"entities":                   {`<!DOCTYPE x [<!ENTITY a "aaaa">]><ListBucketResult><Contents><Key>team/shop/p&a;</Key></Contents></ListBucketResult>`, -1},
		"truncated and without more": {"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", -1},
		"one page that is too long":  {"<ListBucketResult>" + strings.Repeat("<Contents><Key>team/shop/p1</Key></Contents>", maxListing/40) + "</ListBucketResult>", -1},
		"nothing":                    {"", -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHostileServer(t)
			h.answer = saying(tc.answer)
			got := 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := h.storage(t).ListBlobs(ctx, "p", func(m blob.Metadata) error {
				if m.BlobID[0] != 'p' {
					t.Errorf("listed %q", m.BlobID)
				}
				got++
				return nil
			})
			if (tc.want < 0) != (err != nil) || (tc.want >= 0 && got != tc.want) {
				t.Errorf("listed %d, %v; want %d", got, err, tc.want)
			}
		})
	}
}

// An endless listing ends when the time for a call does, and a reading when it has more than was asked for.
func TestAServerThatDoesNotStop(t *testing.T) {
	chunk := []byte(strings.Repeat("x", 1<<20))
	var written atomic.Int64
	stream := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			n, err := w.Write(chunk)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	packed := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		stream(packedWriter{w, z}, r)
	}
	tests := map[string]func(http.ResponseWriter, *http.Request){
		"bytes": stream,
		"gzip":  packed,
		"pages": func(w http.ResponseWriter, r *http.Request) {
			saying("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>")(w, r)
		},
		"headers": rawly("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 2000) + "\r\n"),
		"chunks that are announced and never come": rawly("HTTP/1.1 200 OK\r\nETag: \"0\"\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"),
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHostileServer(t)
			h.answer = answer
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for call, do := range map[string]func(context.Context, *objects) error{
				"list": func(ctx context.Context, o *objects) error {
					return o.ListBlobs(ctx, "", func(blob.Metadata) error { return nil })
				},
				"read a part": func(ctx context.Context, o *objects) error { return o.GetBlob(ctx, "p1", 100, 1000, &buffer{}) },
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				start := time.Now()
				if err := do(ctx, h.storage(t)); err == nil {
					t.Errorf("%s: a success", call)
				}
				cancel()
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("%s took %v", call, took)
				}
			}
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 256<<20 {
				t.Errorf("the heap has grown by %d MiB", grown>>20)
			}
		})
	}
	if written.Load() == 0 {
		t.Error("nothing was written, so the test proves nothing")
	}
}

// packedWriter sends what is written through a packer.
type packedWriter struct {
	http.ResponseWriter
	packer io.Writer
}

func (w packedWriter) Write(p []byte) (int, error) { return w.packer.Write(p) }

// A name that a listing made up leads nowhere: nothing is asked, written or deleted outside of the prefix.
func TestANameLeadsNotOutOfThePrefix(t *testing.T) {
	h := newHostileServer(t)
	h.answer = saying("")
	o := h.storage(t)
	for _, id := range []blob.ID{"", ".", "..", "../other/p1", "a/../../p", "/p1", `..\p`, "p\x00"} {
		for call, err := range map[string]error{
			"get":      o.GetBlob(t.Context(), id, 0, -1, &buffer{}),
			"metadata": func() error { _, err := o.GetMetadata(t.Context(), id); return err }(),
			"delete":   o.DeleteBlob(t.Context(), id),
		} {
			if !errors.Is(err, errAnswer) {
				t.Errorf("%s %q: %v", call, id, err)
			}
		}
	}
	if len(h.paths) > 0 {
		t.Errorf("asked: %q", h.paths)
	}
}

// Whatever a server answers to a reading, what is believed has the length that was asked for.
func TestWhatAServerMayAnswerToAReading(t *testing.T) {
	head := "HTTP/1.1 %d OK\r\nETag: \"0\"\r\nLast-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: %d\r\n\r\n%s"
	tests := map[string]struct {
		answer string
		want   error // nil: it is believed; errAny: anything
	}{
		"the part":                 {fmt.Sprintf(head, 206, 5, "hello"), nil},
		"the whole":                {fmt.Sprintf(head, 200, 11, "hello world"), errAnswer},
		"less":                     {fmt.Sprintf(head, 206, 3, "hel"), blob.ErrInvalidRange},
		"nothing":                  {fmt.Sprintf(head, 206, 0, ""), blob.ErrInvalidRange},
		"a length that is a lie":   {fmt.Sprintf(head, 206, 500, "hello"), io.ErrUnexpectedEOF},
		"a length below zero":      {fmt.Sprintf(head, 206, -5, "hello"), errAny},
		"no length":                {"HTTP/1.1 206 OK\r\nETag: \"0\"\r\nLast-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\n\r\nhello and more", errAnswer},
		"no object":                {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", blob.ErrBlobNotFound},
		"an error with status 200": {fmt.Sprintf(head, 200, 38, "<Error><Code>InternalError</Code></Error>"[:38]), errAnswer},
		"packed":                   {strings.Replace(fmt.Sprintf(head, 206, 5, "hello"), "ETag", "Content-Encoding: gzip\r\nETag", 1), nil},
		"another protocol":         {"SSH-2.0-OpenSSH\r\n", errAny},
		"a redirect":               {"HTTP/1.1 307 Go\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n", errAny},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHostileServer(t)
			h.answer = rawly(tc.answer)
			var read buffer
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := h.storage(t).GetBlob(ctx, "p1", 0, 5, &read)
			switch {
			case tc.want == nil && (err != nil || read.String() != "hello"):
				t.Errorf("got %q, %v", read.String(), err)
			case tc.want != nil && err == nil, tc.want != nil && !errors.Is(tc.want, errAny) && !errors.Is(err, tc.want):
				t.Errorf("got %q, %v, want %v", read.String(), err, tc.want)
			}
		})
	}
}

var errAny = errors.New("any")

// A redirect is not followed, with credentials or without.
func TestNobodyElseIsAsked(t *testing.T) {
	var asked atomic.Int64
	var listen net.ListenConfig
	trap, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer trap.Close()
	go func() {
		for {
			connection, err := trap.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_, _ = bufio.NewReader(connection).ReadString('\n')
			connection.Close()
		}
	}()
	for _, status := range []int{301, 302, 303, 307, 308} {
		h := newHostileServer(t)
		h.answer = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Amz-Bucket-Region", "evil@"+trap.Addr().String()+"/")
			http.Redirect(w, r, "http://"+trap.Addr().String()+r.URL.Path, status)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if err := h.storage(t).GetBlob(ctx, "p1", 0, 5, &buffer{}); err == nil {
			t.Errorf("%d: a success", status)
		}
		if err := h.storage(t).ListBlobs(ctx, "", func(blob.Metadata) error { return nil }); err == nil {
			t.Errorf("%d: a success", status)
		}
		if err := h.storage(t).PutBlob(ctx, "p1", text("hello"), blob.PutOptions{}); err == nil {
			t.Errorf("%d: a success of writing", status)
		}
		if err := h.storage(t).DeleteBlob(ctx, "p1"); err == nil {
			t.Errorf("%d: a success of deleting", status)
		}
		cancel()
	}
	if asked.Load() > 0 {
		t.Errorf("the other host was asked %d times", asked.Load())
	}
}

// What the fuzzer begins with holds for a change too, one by one, so that a failure has a name.
func TestWhatAServerMayAnswerToAChange(t *testing.T) {
	tests := map[string]struct {
		answer           string
		written, deleted bool
	}{
		"200":                     {"HTTP/1.1 200 OK\r\nETag: \"0\"\r\nContent-Length: 0\r\n\r\n", true, true},
		"200 without an ETag":     {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, true},
		"200 of another name":     {"HTTP/1.1 200 Fine\r\nETag: \"0\"\r\nContent-Length: 0\r\n\r\n", true, true},
		"204":                     {"HTTP/1.1 204 No Content\r\nETag: \"0\"\r\n\r\n", false, true},
		"a page to log in":        {"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>", false, false},
		"a page with 206":         {"HTTP/1.1 206 OK\r\nETag: \"0\"\r\nContent-Length: 13\r\n\r\n<html></html>", false, false},
		"a page with 204, 205":    {"HTTP/1.1 205 OK\r\nETag: \"0\"\r\nContent-Length: 13\r\n\r\n<html></html>", false, false},
		"an error with 200":       {"HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n<Error><Code>InternalError</Code></Error>\n", false, false},
		"an error with an ETag":   {"HTTP/1.1 200 OK\r\nETag: \"0\"\r\nContent-Length: 42\r\n\r\n<Error><Code>InternalError</Code></Error>\n", false, false},
		"an error without status": {"<Error><Code>InternalError</Code></Error>\n", false, false},
		"it is not there":         {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false, true},
		"it goes on elsewhere":    {"HTTP/1.1 307 Go\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n", false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHostileServer(t)
			h.answer = rawly(tc.answer)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := h.storage(t).PutBlob(ctx, "p1", text("hello"), blob.PutOptions{}); (err == nil) != tc.written {
				t.Errorf("written: %v", err)
			}
			// The server closes each connection, so the second request has one of its own.
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := h.storage(t).DeleteBlob(ctx, "p1"); (err == nil) != tc.deleted {
				t.Errorf("deleted: %v", err)
			}
		})
	}
}
