//go:build !race

// The client of S3 has a data race of its own: it closes the body of a request twice, in two goroutines.

package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kopia/kopia/repo/blob"
)

const wholeListing = "<ListBucketResult><Contents><Key>team/shop/p1</Key><Size>1</Size></Contents></ListBucketResult>"

// answersToBegin are what the fuzzer begins with.
func answersToBegin() [][]byte {
	var answers [][]byte
	add := func(format string, arguments ...any) {
		answers = append(answers, fmt.Appendf(nil, format, arguments...))
	}
	for _, status := range []string{
		"200 OK", "200 Fine", "201 Created", "204 No Content", "206 Partial", "301 Moved", "307 Go", "400 Bad", "403 Forbidden", "404 Not Found", "416 Range", "503 Busy",
	} {
		for _, body := range []string{
			"", "hello", "<html><body>Please log in</body></html>", "<Error><Code>AccessDenied</Code><Region>evil.example</Region><Message>" + canary + "</Message></Error>",
			wholeListing, "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>team%2Fshop%2F..%2Fx</Key></Contents></ListBucketResult>",
			"<ListBucketResult><Contents><Key>team/shop/p&#1;\u202e</Key><Size>1</Size></Contents></ListBucketResult>",
		} {
			add("HTTP/1.1 %s\r\nContent-Length: %d\r\nLocation: http://localhost:1/x\r\nLast-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\nETag: \"0\"\r\n\r\n%s", status, len(body), body)
			add("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
		}
	}
	head := "Last-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\nETag: \"5d41402abc4b2a76b9719d911017c592\"\r\n"
	add("HTTP/1.1 200 OK\r\n%s\r\nhello", head)                                                       // nobody knows where it ends
	add("HTTP/1.0 200 OK\r\n%sContent-Length: 500\r\n\r\nhello", head)                                // it ends too early
	add("HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", head)                // so does this
	add("HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", head)       // all of it
	add("HTTP/1.1 206 P\r\n%sContent-Range: bytes 90-94/100\r\nContent-Length: 5\r\n\r\nother", head) // another part
	add("HTTP/1.1 206 P\r\n%sContent-Range: bytes 10-14/100\r\nContent-Length: 5\r\n\r\nthere", head) // the part
	add("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n%sContent-Length: 5\r\n\r\nhello", head)     // an answer before the answer
	add("HTTP/1.1 200 OK\r\n%sContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", head)        // it says that it is packed
	add("HTTP/1.1 200 OK\r\nX-Amz-Bucket-Region: evil@host/\r\nx-minio-error-code: X\r\nContent-Length: 0\r\n\r\n")
	add("<ListBucketResult>")
	return answers
}

// FuzzAServersAnswer lets a server answer with any bytes. Nothing panics or lasts; nobody else is asked, and nothing outside of
// the prefix; what is believed is what was answered, and a change is one only when the server says so.
func FuzzAServersAnswer(f *testing.F) {
	for _, answer := range answersToBegin() {
		f.Add(answer)
	}
	h := newHostileServer(f)
	o := h.storage(f)
	f.Fuzz(func(t *testing.T, answer []byte) {
		h.mu.Lock()
		h.answer, h.paths, h.dialed = rawly(string(answer)), nil, nil
		h.mu.Unlock()
		o.answered(t, answer)
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, path := range h.paths {
			asked, err := url.Parse(path)
			if err != nil || (!strings.HasPrefix(asked.Path, "/backups/team/shop/") && (asked.Path != "/backups/" || !strings.HasPrefix(asked.Query().Get("prefix"), "team/shop/"))) {
				t.Errorf("asked %q, %v", path, err)
			}
		}
		for _, address := range h.dialed {
			if address != strings.TrimPrefix(h.URL, "http://") {
				t.Errorf("connected to %q", address)
			}
		}
	})
}

// said is what a server has answered, as far as it is an answer at all.
type said struct {
	status int
	header http.Header
	body   []byte
	whole  bool // the body has an end, and came to it
}

func (s said) ok() bool { return s.status >= 200 && s.status < 300 }

// readAnswer reads an answer as HTTP has it, to a request of this method.
func readAnswer(raw []byte, method string) said {
	from := bufio.NewReader(bytes.NewReader(raw))
	for range 6 {
		response, err := http.ReadResponse(from, &http.Request{Method: method}) //nolint:bodyclose // it is read from memory
		if err != nil {
			return said{}
		}
		if response.StatusCode < 200 && response.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		body, err := io.ReadAll(response.Body)
		ends := response.ContentLength >= 0 || len(response.TransferEncoding) > 0
		return said{status: response.StatusCode, header: response.Header, body: body, whole: err == nil && ends}
	}
	return said{}
}

// answered makes each kind of call, and compares what comes of it with what was answered.
func (o *objects) answered(t *testing.T, raw []byte) {
	call := func(do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		err := do(ctx)
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("a call took %s", took)
		}
		return err
	}
	var read buffer
	got := readAnswer(raw, http.MethodGet)
	if err := call(func(ctx context.Context) error { return o.GetBlob(ctx, "p1", 10, 5, &read) }); err == nil && (got.status != http.StatusPartialContent || !got.whole || read.String() != string(got.body) || read.Len() != 5) {
		t.Errorf("read the part %q of %+v", read.String(), got)
	}
	read.Reset()
	if err := call(func(ctx context.Context) error { return o.GetBlob(ctx, "p1", 0, -1, &read) }); err == nil && (got.status != http.StatusOK || !got.whole || read.String() != string(got.body)) {
		t.Errorf("read %q of %+v", read.String(), got)
	}
	listed := 0
	err := call(func(ctx context.Context) error {
		return o.ListBlobs(ctx, "p", func(m blob.Metadata) error {
			listed++
			if !strings.HasPrefix(string(m.BlobID), "p") || m.Length < 0 || len(m.BlobID) > maxKey {
				t.Errorf("listed %+v", m)
			}
			return nil
		})
	})
	if err == nil && (got.status != http.StatusOK || rootOf(got.body) != "ListBucketResult") {
		t.Errorf("listed %d of %+v", listed, got)
	}
	head := readAnswer(raw, http.MethodHead)
	err = call(func(ctx context.Context) error {
		m, err := o.GetMetadata(ctx, "p1")
		if err == nil && m.Length < 0 {
			t.Errorf("it is %+v", m)
		}
		return err
	})
	if err == nil && (head.status != http.StatusOK || head.header.Get("Etag") == "") {
		t.Errorf("it is there, of %+v", head)
	}
	put := readAnswer(raw, http.MethodPut)
	if err := call(func(ctx context.Context) error { return o.PutBlob(ctx, "p1", text("hello"), blob.PutOptions{}) }); err == nil && (put.status != http.StatusOK || put.header.Get("Etag") == "" || bytes.HasPrefix(put.body, []byte("<Error"))) {
		t.Errorf("written, of %+v", put)
	}
	deleted := readAnswer(raw, http.MethodDelete)
	err = call(func(ctx context.Context) error { return o.DeleteBlob(ctx, "p1") })
	if err == nil && deleted.status != http.StatusNoContent && deleted.status != http.StatusNotFound && (!deleted.ok() || len(deleted.body) > 0) {
		t.Errorf("deleted, of %+v", deleted)
	}
}

// rootOf is the name of the first element of a document.
func rootOf(document []byte) string {
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.RawToken()
		if err != nil {
			return ""
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local
		}
	}
}

// A listing that is none is not one with nothing in it.
func TestNoListingIsNotAnEmptyOne(t *testing.T) {
	for _, status := range []string{"200 OK", "201 Created", "204 No Content", "206 Partial"} {
		for _, body := range []string{"", "<html></html>", "<Error><Code>InternalError</Code></Error>", "<ListBucketResult></ListBucketResult>"} {
			h := newHostileServer(t)
			h.answer = rawly(fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body))
			err := h.storage(t).ListBlobs(t.Context(), "p", func(blob.Metadata) error { return nil })
			if want := status == "200 OK" && strings.HasPrefix(body, "<List"); (err == nil) != want {
				t.Errorf("%s %q: %v", status, body, err)
			}
		}
	}
}

// A part that is another one, and a whole that is a part, are not taken for what was asked for.
func TestAReadingIsOfWhatWasAskedFor(t *testing.T) {
	const head = "ETag: \"0\"\r\nLast-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: 5\r\n"
	for name, answer := range map[string]string{
		"another part":           "HTTP/1.1 206 P\r\nContent-Range: bytes 90-94/100\r\n" + head + "\r\nhello",
		"a part of what":         "HTTP/1.1 206 P\r\nContent-Range: bytes everything\r\n" + head + "\r\nhello",
		"the whole for the part": "HTTP/1.1 200 OK\r\n" + head + "\r\nhello",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostileServer(t)
			h.answer = rawly(answer)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := h.storage(t).GetBlob(ctx, "p1", 10, 5, &buffer{}); !errors.Is(err, errAnswer) {
				t.Errorf("the part: %v", err)
			}
		})
	}
	for name, answer := range map[string]string{
		"a part for the whole": "HTTP/1.1 206 P\r\nContent-Range: bytes 0-4/100\r\n" + head + "\r\nhello",
		"without an end":       "HTTP/1.1 200 OK\r\n" + strings.Replace(head, "Content-Length: 5\r\n", "", 1) + "\r\nhello",
		"without an ETag":      "HTTP/1.1 200 OK\r\n" + strings.Replace(head, "ETag: \"0\"\r\n", "", 1) + "\r\nhello",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostileServer(t)
			h.answer = rawly(answer)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := h.storage(t).GetBlob(ctx, "p1", 0, -1, &buffer{}); !errors.Is(err, errAnswer) {
				t.Errorf("the whole: %v", err)
			}
		})
	}
}
