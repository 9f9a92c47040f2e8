package engine

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
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

// configurationKey is an object that the library's own storage keeps beside a repository. It is nothing of ours.
const configurationKey = ".storageconfig"

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
	client, err := newClient(s, transport, minio.MaxRetry)
	if err != nil {
		return nil, &Error{Kind: KindInvalid, Doing: doing, Err: err}
	}
	return retrying.NewWrapper(&objects{client: client, bucket: s.Bucket, prefix: s.prefix()}), nil
}

// newClient has these credentials and no others: the library would go on with those of the machine.
func newClient(s *S3, transport http.RoundTripper, attempts int) (*minio.Client, error) {
	endpoint := s.Endpoint
	if endpoint == "" {
		endpoint = "s3.amazonaws.com"
	}
	return minio.New(endpoint, &minio.Options{
		Creds:  credentials.NewStaticV4(string(s.AccessKeyID), string(s.SecretAccessKey), string(s.SessionToken)),
		Secure: !s.Plaintext, Region: s.Region, Transport: transport, MaxRetries: attempts,
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
	if info.Size < 0 {
		return blob.Metadata{}, fmt.Errorf("%w: it tells no size", errAnswer)
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
	if errors.As(err, &response) && response.StatusCode == http.StatusOK && strings.HasPrefix(response.Code, "200 ") {
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
		case object.Size < 0, count > maxListed, len(object.Key) > maxKey:
			return fmt.Errorf("%w: it lists more than %d objects, or one of %d bytes, or a key of %d", errAnswer, maxListed, object.Size, len(object.Key))
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
	case response.StatusCode == http.StatusNotFound && !refusesCredentials(response.Code): // or the bucket is gone: who opens a repository looks at that
		return blob.ErrBlobNotFound
	default:
		return refusedCredentials(err)
	}
}

// refusedCredentials keeps a call from being tried again with credentials that are refused, or in a bucket that there is not. Only
// the code of the answer tells: its words are those of a server.
func refusedCredentials(err error) error {
	var response minio.ErrorResponse
	if errors.As(err, &response) && (refusesCredentials(response.Code) || responseKind(response) == KindBucketNotFound) {
		return &finalError{err}
	}
	return err
}
