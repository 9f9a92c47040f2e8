package engine

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Bounds of what a server may answer. It may be somebody else's by now, and has no say in how much memory we use.
const (
	// maxBlob is the most that is read of an object at once. Packs have up to 40 MiB, an index of 10 million contents 600.
	maxBlob = 1 << 30
	// maxListing is the size of one page of a listing. A page has at most 1,000 keys of at most 1 KiB.
	maxListing = 16 << 20
	// maxListed is how many keys a listing may have: with packs of 20 MiB that are 20 TiB.
	maxListed = 1_000_000
	// maxKey is the length of a key in bytes.
	maxKey = 1024
	// maxSmallAnswer is the most that is read of an answer that tells where a bucket is.
	maxSmallAnswer = 64 << 10
)

var errAnswer = errors.New("the server's answer is none to what was asked")

// boundedTransport ends an answer that is too long with an error.
type boundedTransport struct{ *http.Transport }

func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	body := &boundedBody{Reader: response.Body, Closer: response.Body, left: maxBlob}
	response.Body = body
	switch {
	case query.Has("list-type"):
		body.left = maxListing
		if succeeds(response) {
			err = body.expect(response.StatusCode, "ListBucketResult")
		}
	case query.Has("location"):
		body.left = maxSmallAnswer
	case succeeds(response):
		err = acknowledges(r, response, body)
	}
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return response, nil
}

func succeeds(response *http.Response) bool {
	return response.StatusCode >= 200 && response.StatusCode < 300
}

// acknowledges fails unless an answer that tells of a success is one to this request about an object. A proxy that wants a
// password, or a server that is none of S3, says 200 to anything. The client takes some of it for what it is not: a page to log
// in as the answer to a deletion, a part of an object as all of it.
func acknowledges(r *http.Request, response *http.Response, body *boundedBody) error {
	status := response.StatusCode
	if r.Method == http.MethodDelete {
		return body.expectNothing(status)
	}
	if response.Header.Get("Etag") == "" {
		return fmt.Errorf("%w: it says %d without an ETag", errAnswer, status)
	}
	if r.Method == http.MethodPut {
		if err := body.expectNoError(); err != nil {
			return err
		}
	}
	part := r.Header.Get("Range")
	switch {
	case part == "" && status != http.StatusOK:
		return fmt.Errorf("%w: it says %d, where 200 is right", errAnswer, status)
	case part != "" && status == http.StatusPartialContent:
		return samePart(part, response.Header.Get("Content-Range"))
	case part != "" && (status != http.StatusOK || !strings.HasPrefix(part, "bytes=0-")): // all may be the part from the beginning
		return fmt.Errorf("%w: it says %d to a part", errAnswer, status)
	}
	return hasEnd(r, response)
}

// hasEnd fails when nobody can tell a whole answer from one that was cut off.
func hasEnd(r *http.Request, response *http.Response) error {
	if r.Method == http.MethodGet && response.ContentLength < 0 && len(response.TransferEncoding) == 0 && response.ProtoMajor < 2 {
		return fmt.Errorf("%w: it does not tell its length", errAnswer)
	}
	return nil
}

// samePart fails when a server says that it gives another part than the one that was asked for.
func samePart(asked, given string) error {
	if given == "" {
		return nil // the length is looked at, and the content is signed
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(asked, "bytes="), "-")
	if !strings.HasPrefix(given, "bytes "+first+"-") {
		return fmt.Errorf("%w: asked was for %.100q, given is %.100q", errAnswer, asked, given)
	}
	return nil
}

// boundedBody ends with an error when more is read.
type boundedBody struct {
	io.Reader
	io.Closer
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: it is too long", errAnswer)
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// expectNothing fails when there is a body. Where 204 is right some servers say 200, with nothing in it.
func (b *boundedBody) expectNothing(status int) error {
	if n, _ := io.ReadFull(b.Reader, make([]byte, 1)); n > 0 {
		return fmt.Errorf("%w: it says %d to a deletion, and more", errAnswer, status)
	}
	b.Reader = http.NoBody
	return nil
}

// expectNoError fails when there is an error in the body, whatever the status says.
func (b *boundedBody) expectNoError() error {
	seen, err := io.ReadAll(io.LimitReader(b.Reader, 4096))
	b.Reader = io.MultiReader(bytes.NewReader(seen), b.Reader)
	if err != nil || bytes.Contains(seen, []byte("<Error")) {
		return errors.Join(fmt.Errorf("%w: it says that all is well, and is an error", errAnswer), err)
	}
	return nil
}

// expect fails unless the document has this root, and the status is 200. The client takes any other one, such as an error with
// status 200, for a listing with nothing in it: then a repository would be gone, or its place free for a new one.
func (b *boundedBody) expect(status int, root string) error {
	if status != http.StatusOK {
		return fmt.Errorf("%w: it says %d to a listing", errAnswer, status)
	}
	var seen bytes.Buffer
	decoder := xml.NewDecoder(io.TeeReader(io.LimitReader(b.Reader, 4096), &seen))
	for {
		token, err := decoder.RawToken()
		if err != nil {
			return fmt.Errorf("%w: it is no listing: %w", errAnswer, err)
		}
		if start, ok := token.(xml.StartElement); ok {
			b.Reader = io.MultiReader(&seen, b.Reader)
			if start.Name.Local != root {
				return fmt.Errorf("%w: it is %.100q and no listing", errAnswer, start.Name.Local)
			}
			return nil
		}
	}
}
