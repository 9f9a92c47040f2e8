package engine

import (
	"log/slog"
	"path/filepath"
	"strings"
)

// Secret is a text that prints as nothing.
type Secret string

const hidden = "(secret)"

// String hides the secret from fmt.
func (Secret) String() string { return hidden }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return hidden }

// LogValue hides the secret from log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the secret from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Location is where a repository is. Exactly one of its fields is set.
type Location struct {
	// Filesystem keeps the repository in a folder.
	Filesystem *Filesystem
	// S3 keeps the repository in a bucket.
	S3 *S3
}

// Filesystem is a folder that holds one repository and nothing else.
type Filesystem struct {
	// Path is the folder, absolute. Create makes it and the folders above it.
	Path string
	// Shared lets every user of the machine read and write what is made, as far as the process's umask does. Without it only
	// the user that runs the process may.
	Shared bool
}

// S3 is a prefix in a bucket that holds one repository and nothing else.
type S3 struct {
	// Endpoint is host or host:port of the server, without a scheme. Default: s3.amazonaws.com.
	Endpoint string
	// Region is sent with each request. Default: asked from the server.
	Region string
	// Bucket has to exist.
	Bucket string
	// Prefix goes before the name of each object. A slash is added where it has none at its end. Default: none, and the
	// bucket is the repository's alone.
	Prefix string
	// AccessKeyID and SecretAccessKey are the credentials. Both are required: the library would take those of the machine,
	// which in a cluster are the node's, and no user of a namespace may work with them.
	AccessKeyID     Secret
	SecretAccessKey Secret
	// SessionToken belongs to temporary credentials. Default: none.
	SessionToken Secret
	// CA holds certificates in PEM that are trusted instead of those of the system. Default: none.
	CA []byte
	// Plaintext speaks HTTP instead of HTTPS. The repository is encrypted, the names of its objects and the access key's
	// ID are not. Default: false.
	Plaintext bool
}

// String names the location without any credential.
func (l Location) String() string {
	switch {
	case l.Filesystem != nil:
		return l.Filesystem.Path
	case l.S3 != nil:
		return "s3://" + l.S3.Bucket + "/" + l.S3.prefix()
	default:
		return "nowhere"
	}
}

// check says what is wrong with a location.
func (l Location) check() error {
	const doing = "check the location"
	switch {
	case (l.Filesystem == nil) == (l.S3 == nil):
		return fail(KindInvalid, doing, "one of filesystem and S3 has to be set")
	case l.Filesystem != nil && !filepath.IsAbs(l.Filesystem.Path):
		return fail(KindInvalid, doing, "the path %q is not absolute", l.Filesystem.Path)
	case l.Filesystem != nil && filepath.Clean(l.Filesystem.Path) == "/":
		return fail(KindInvalid, doing, "a repository cannot be the root folder")
	case l.S3 != nil && l.S3.Bucket == "":
		return fail(KindInvalid, doing, "the bucket is missing")
	case l.S3 != nil && (l.S3.AccessKeyID == "" || l.S3.SecretAccessKey == ""):
		return fail(KindInvalid, doing, "the access key ID or the secret access key is missing")
	case l.S3 != nil && strings.Contains(l.S3.Endpoint, "/"):
		return fail(KindInvalid, doing, "the endpoint %q is not host:port", l.S3.Endpoint)
	default:
		return nil
	}
}

func (s *S3) prefix() string {
	prefix := strings.TrimLeft(s.Prefix, "/")
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		return prefix
	}
	return prefix + "/"
}
