package repository

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/blob/retrying"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Bounds of what a server may answer. It may be somebody else's by now, and has no say in how much memory we use.
const (
	// maxBlob is the most that is read of an object at once. Packs have up to 40 MiB, an index of 10 million contents 600.
	maxBlob = 1 << 30
	// maxListing is the size of one page of a listing. A page has at most 1,000 keys of at most 1 KiB.
	maxListing = 16 << 20
	// maxListed is how many keys a listing may have: with packs of 20 MiB that are 20 TiB.
	maxListed = 1_000_000
)

// configurationKey is an object that the library's own storage keeps beside a repository. It is nothing of ours.
const configurationKey = ".storageconfig"

var errAnswer = errors.New("the server's answer is none to what was asked")

// objects keeps the blobs of a repository as objects in a bucket. It is ours, and not the library's, because of what that one
// takes from a server: a key outside of the prefix ends it, an answer has any length, an error with status 200 is a success.
type objects struct {
	blob.DefaultProviderImplementation

	client         *minio.Client
	bucket, prefix string
}

// openBucket asks nobody yet.
func openBucket(s *S3) (blob.Storage, error) {
	const doing = "open the storage"
	transport, err := newTransport(s.CA)
	if err != nil {
		return nil, &Error{Kind: KindInvalid, Doing: doing, Err: err}
	}
	client, err := newClient(s, transport)
	if err != nil {
		return nil, &Error{Kind: KindInvalid, Doing: doing, Err: err}
	}
	return retrying.NewWrapper(&objects{client: client, bucket: s.Bucket, prefix: s.prefix()}), nil
}

// newClient has these credentials and no others: the library would go on with those of the machine.
func newClient(s *S3, transport http.RoundTripper) (*minio.Client, error) {
	endpoint := s.Endpoint
	if endpoint == "" {
		endpoint = "s3.amazonaws.com"
	}
	return minio.New(endpoint, &minio.Options{
		Creds:  credentials.NewStaticV4(string(s.AccessKeyID), string(s.SecretAccessKey), string(s.SessionToken)),
		Secure: !s.Plaintext, Region: s.Region, Transport: transport,
	})
}

// newTransport is one that unpacks nothing, and bounds what is read. The client of S3 follows no redirect.
func newTransport(ca []byte) (http.RoundTripper, error) {
	trusted := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		trusted.RootCAs = x509.NewCertPool()
		if !trusted.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the CA holds no certificate in PEM")
		}
	}
	return &boundedTransport{&http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSClientConfig: trusted, ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: 256 << 10,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 30 * time.Second, ExpectContinueTimeout: time.Second,
	}}, nil
}

// boundedTransport ends an answer that is too long with an error.
type boundedTransport struct{ *http.Transport }

func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if !r.URL.Query().Has("list-type") {
		response.Body = &boundedBody{Reader: response.Body, Closer: response.Body, left: maxBlob}
		return response, nil
	}
	body := &boundedBody{Reader: response.Body, Closer: response.Body, left: maxListing}
	response.Body = body
	if response.StatusCode == http.StatusOK {
		if err := body.expect("ListBucketResult"); err != nil {
			return nil, errors.Join(err, body.Close())
		}
	}
	return response, nil
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

// expect fails unless the document has this root. The client takes any other one, such as an error with status 200, for a
// listing with nothing in it: then a repository would be gone, or its place free for a new one.
func (b *boundedBody) expect(root string) error {
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

// key refuses a name that could lead out of the prefix. The library makes none, but a listing may name anything.
func (o *objects) key(id blob.ID) (string, error) {
	if id == "" || id == "." || id == ".." || strings.ContainsAny(string(id), "/\\\x00") {
		return "", fmt.Errorf("%w: %q is no name of an object of ours", errAnswer, id)
	}
	return o.prefix + string(id), nil
}

// GetBlob reads an object, or a part of one with a length of 0 or more.
func (o *objects) GetBlob(ctx context.Context, id blob.ID, offset, length int64, output blob.OutputBuffer) error {
	output.Reset()
	if length == 0 {
		_, err := o.GetMetadata(ctx, id)
		return err
	}
	key, err := o.key(id)
	if err != nil {
		return err
	}
	var options minio.GetObjectOptions
	most := int64(maxBlob)
	if length > 0 {
		most = length
		if err := options.SetRange(offset, offset+length-1); err != nil {
			return fmt.Errorf("%w: %w", blob.ErrInvalidRange, err)
		}
	}
	body, _, _, err := minio.Core{Client: o.client}.GetObject(ctx, o.bucket, key, options)
	if err != nil {
		return translated(err)
	}
	defer body.Close()
	n, err := io.Copy(output, io.LimitReader(body, most+1))
	switch {
	case err != nil:
		return err
	case n > most:
		output.Reset()
		return fmt.Errorf("%w: it is longer than %d bytes", errAnswer, most)
	default:
		return blob.EnsureLengthExactly(output.Length(), length)
	}
}

// GetMetadata says how large an object is, and of when.
func (o *objects) GetMetadata(ctx context.Context, id blob.ID) (blob.Metadata, error) {
	key, err := o.key(id)
	if err != nil {
		return blob.Metadata{}, err
	}
	info, err := o.client.StatObject(ctx, o.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return blob.Metadata{}, translated(err)
	}
	return blob.Metadata{BlobID: id, Length: info.Size, Timestamp: info.LastModified}, nil
}

// PutBlob writes an object, or replaces it. The server compares it with its checksum.
func (o *objects) PutBlob(ctx context.Context, id blob.ID, data blob.Bytes, options blob.PutOptions) error {
	key, err := o.key(id)
	switch {
	case err != nil:
		return err
	case options.DoNotRecreate, options.HasRetentionOptions():
		return blob.ErrUnsupportedPutBlobOption
	case !options.SetModTime.IsZero():
		return blob.ErrSetTimeUnsupported
	}
	reader := io.Reader(bytes.NewReader(nil))
	if data.Length() > 0 {
		stored := data.Reader()
		defer stored.Close()
		reader = stored
	}
	_, err = o.client.PutObject(ctx, o.bucket, key, reader, int64(data.Length()), minio.PutObjectOptions{
		ContentType: "application/x-kopia", DisableMultipart: true, SendContentMd5: true,
	})
	if err == nil && options.GetModTime != nil {
		var metadata blob.Metadata
		metadata, err = o.GetMetadata(ctx, id)
		*options.GetModTime = metadata.Timestamp
	}
	return refusedCredentials(err)
}

// DeleteBlob removes an object. One that is not there is no error.
func (o *objects) DeleteBlob(ctx context.Context, id blob.ID) error {
	key, err := o.key(id)
	if err != nil {
		return err
	}
	err = o.client.RemoveObject(ctx, o.bucket, key, minio.RemoveObjectOptions{})
	var response minio.ErrorResponse
	if errors.As(err, &response) && response.StatusCode == http.StatusOK && response.Code == "200 OK" {
		return nil // where 204 is right, some servers say 200, with nothing in the body
	}
	if err = translated(err); errors.Is(err, blob.ErrBlobNotFound) {
		return nil
	}
	return err
}

// ListBlobs lists what is in the prefix. Anything else that a server lists is an error.
func (o *objects) ListBlobs(ctx context.Context, prefix blob.ID, callback func(blob.Metadata) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := o.prefix + string(prefix)
	count := 0
	for object := range o.client.ListObjectsIter(ctx, o.bucket, minio.ListObjectsOptions{Prefix: asked}) {
		count++
		switch {
		case object.Err != nil:
			return refusedCredentials(object.Err)
		case !strings.HasPrefix(object.Key, asked):
			return fmt.Errorf("%w: it lists %.200q, and asked was for what begins with %q", errAnswer, object.Key, asked)
		case object.Size < 0, count > maxListed:
			return fmt.Errorf("%w: it lists more than %d objects, or one of %d bytes", errAnswer, maxListed, object.Size)
		case object.Key == o.prefix, object.Key == o.prefix+configurationKey:
			continue // some programs make an object for a folder
		}
		err := callback(blob.Metadata{BlobID: blob.ID(object.Key[len(o.prefix):]), Length: object.Size, Timestamp: object.LastModified})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ConnectionInfo holds no credentials, unlike that of the library's own storage.
func (o *objects) ConnectionInfo() blob.ConnectionInfo {
	return blob.ConnectionInfo{Type: storageType, Config: noConfiguration{}}
}

// DisplayName names the place.
func (o *objects) DisplayName() string { return "s3://" + o.bucket + "/" + o.prefix }

// translated gives an error of reading the form that the library decides by. An error is one whatever its status.
func translated(err error) error {
	var response minio.ErrorResponse
	switch {
	case !errors.As(err, &response):
		return refusedCredentials(err)
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return blob.ErrInvalidRange
	case response.StatusCode == http.StatusNotFound: // or the bucket is gone: who opens a repository looks at that
		return blob.ErrBlobNotFound
	default:
		return refusedCredentials(err)
	}
}

// refusedCredentials keeps a call from being tried again with a token that has expired.
func refusedCredentials(err error) error {
	if err != nil && strings.Contains(err.Error(), blob.InvalidCredentialsErrStr) {
		return blob.ErrInvalidCredentials
	}
	return err
}
