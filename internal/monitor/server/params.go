package server

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/internal/web/failure"
)

// The parameters of requests.
const (
	paramKind      = "kind"
	paramNamespace = "namespace"
	paramName      = "name"
	paramUID       = "uid"
	paramSince     = "since"
	paramUntil     = "until"
	paramAt        = "at"
	paramActor     = "actor"
	paramType      = "type"
	paramPath      = "path"
	paramLimit     = "limit"
	paramCursor    = "cursor"
	paramOrder     = "order"
	paramFields    = "fields"
	paramAll       = "all"
	paramContent   = "content"
	paramBuckets   = "buckets"
)

// maxParam is how long the value of a parameter may be, in bytes.
const maxParam = 2048

// params are the parameters of a request. Each is there once, and is text that can be printed.
type params map[string]string

// readParams reads the parameters that an endpoint knows. One that it does not know, or that is there twice, is an error: a filter
// that is misspelt must not count as none.
func readParams(query string, known []string) (params, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, failure.New(failure.BadRequest, "the parameters cannot be read")
	}
	read := params{}
	for name, texts := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, failure.New(failure.BadRequest, "a parameter is not known; there are: %s", strings.Join(known, ", "))
		case len(texts) > 1:
			return nil, failure.New(failure.BadRequest, "the parameter %s is there more than once", name)
		case len(texts[0]) > maxParam || !utf8.ValidString(texts[0]) || strings.ContainsFunc(texts[0], unicode.IsControl):
			return nil, failure.New(failure.BadRequest, "the parameter %s is too long, or is no text", name)
		}
		if texts[0] != "" {
			read[name] = texts[0]
		}
	}
	return read, nil
}

// kind returns the kind that is asked for, by its plural and group. There is none if the parameter is missing.
func (p params) kind() (kind schema.GroupResource, asked bool, err error) {
	text := p[paramKind]
	if text == "" {
		return kind, false, nil
	}
	kind = schema.ParseGroupResource(text)
	if len(validation.IsDNS1123Subdomain(kind.Resource)) > 0 || kind.Group != "" && len(validation.IsDNS1123Subdomain(kind.Group)) > 0 {
		return kind, true, failure.New(failure.BadRequest, "kind is the plural and the group, such as widgets.example.com")
	}
	return kind, true, nil
}

// namespace returns the namespace that is asked for, empty for all.
func (p params) namespace() (string, error) {
	if text := p[paramNamespace]; text != "" && len(validation.IsDNS1123Label(text)) > 0 {
		return "", failure.New(failure.BadRequest, "namespace is no name of a namespace")
	}
	return p[paramNamespace], nil
}

// time returns a time: an instant (RFC 3339), or how long ago, such as 1h30m.
func (p params) time(name string, now time.Time) (time.Time, error) {
	text := p[name]
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, failure.New(
			failure.BadRequest, "%s is a time such as 2026-11-25T14:00:00Z, or how long ago, such as 1h30m", name,
		)
	}
	return at, nil
}

func (p params) number(name string, standard, highest int) (int, error) {
	text := p[name]
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > highest {
		return 0, failure.New(failure.BadRequest, "%s is a number from 1 to %d", name, highest)
	}
	return n, nil
}

func (p params) flag(name string, standard bool) (bool, error) {
	switch p[name] {
	case "":
		return standard, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, failure.New(failure.BadRequest, "%s is true or false", name)
	}
}
