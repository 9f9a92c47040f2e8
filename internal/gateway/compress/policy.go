package compress

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// DefaultMinBytes is about what fits into one packet. Fewer bytes do not come sooner.
	DefaultMinBytes = 1024
	// MaxMinBytes is the largest bound that makes sense.
	MaxMinBytes = 1 << 30
	// MaxTypes bounds the content types of a route.
	MaxTypes = 64
)

// DefaultTypes are the content types whose bodies become much smaller. Images, films, fonts of
// WOFF and archives are compressed already. Streams are left alone.
var DefaultTypes = []string{
	"application/atom+xml", "application/geo+json", "application/graphql-response+json", "application/javascript", "application/json",
	"application/ld+json", "application/manifest+json", "application/problem+json", "application/rss+xml", "application/vnd.api+json",
	"application/vnd.ms-fontobject", "application/wasm", "application/x-javascript", "application/xhtml+xml",
	"application/xml", "application/yaml", "font/otf", "font/ttf", "image/bmp", "image/svg+xml", "image/x-icon",
	"text/cache-manifest", "text/calendar", "text/css", "text/csv", "text/html", "text/javascript", "text/markdown", "text/plain",
	"text/vcard", "text/xml", "text/yaml",
}

// Policy says which responses of a route are compressed.
type Policy struct {
	// Codings may be used, the preferred one first. Default: zstd, then gzip. Identity, alone,
	// means that nothing is compressed.
	Codings []Coding
	// MinBytes is the least Content-Length. A response without one is compressed whatever it
	// turns out to have. 0 means the default.
	MinBytes int64
	// Types are the content types, lower case. The part after the slash may be "*", which
	// does not stand for streams. Nil: the default.
	Types []string
}

// Complete returns the policy with its defaults. It is nil if nothing is to be compressed.
func (p *Policy) Complete() (*Policy, error) {
	out := *p
	if err := out.check(); err != nil {
		return nil, err
	}
	if len(out.Codings) == 1 && out.Codings[0] == Identity {
		return nil, nil // no policy is what is asked for
	}
	if len(out.Codings) == 0 {
		out.Codings = []Coding{Zstd, Gzip}
	}
	if out.MinBytes == 0 {
		out.MinBytes = DefaultMinBytes
	}
	if len(out.Types) == 0 {
		out.Types = DefaultTypes
	}
	return &out, nil
}

func (p *Policy) check() error {
	for i, coding := range p.Codings {
		if coding >= codings || slices.Contains(p.Codings[:i], coding) {
			return fmt.Errorf("algorithms: each of Gzip, Zstd and Identity may be named once")
		}
		if coding == Identity && len(p.Codings) > 1 {
			return fmt.Errorf("algorithms: Identity means that nothing is compressed, so it stands alone")
		}
	}
	if p.MinBytes < 0 || p.MinBytes > MaxMinBytes {
		return fmt.Errorf("minBytes: %d is not from 1 to %d", p.MinBytes, MaxMinBytes)
	}
	if len(p.Types) > MaxTypes {
		return fmt.Errorf("contentTypes: there are more than %d", MaxTypes)
	}
	for _, name := range p.Types {
		if !isType(name) {
			return fmt.Errorf("contentTypes: %q is not a lower case type such as text/html or text/*", name)
		}
	}
	return nil
}

const typeCharacters = "abcdefghijklmnopqrstuvwxyz0123456789!#$&^_.+-"

func isType(name string) bool {
	first, second, found := strings.Cut(name, "/")
	return found && first != "" && second != "" && strings.Trim(first, typeCharacters) == "" &&
		(second == "*" || strings.Trim(second, typeCharacters) == "")
}

// streams are the types of bodies without an end. Each keeps an encoder, so a route that wants
// that names them in full.
var streams = [...]string{
	"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json-seq",
	"application/geo+json-seq", "application/stream+json", "application/x-json-stream", "multipart/x-mixed-replace",
}

func isStream(name string) bool {
	return slices.ContainsFunc(streams[:], func(known string) bool { return strings.EqualFold(name, known) })
}

// lists reports whether the policy has a content type, given as in a header field. gRPC is
// never listed: its frames have a compression of their own, which its clients expect.
func (p *Policy) lists(field string) bool {
	name, _, _ := strings.Cut(field, ";")
	name = strings.Trim(name, " \t")
	if len(name) >= len("application/grpc") && strings.EqualFold(name[:len("application/grpc")], "application/grpc") {
		return false
	}
	for _, known := range p.Types {
		if group, any := strings.CutSuffix(known, "*"); any {
			if len(name) > len(group) && strings.EqualFold(name[:len(group)], group) && !isStream(name) {
				return true
			}
		} else if strings.EqualFold(name, known) {
			return true
		}
	}
	return false
}
