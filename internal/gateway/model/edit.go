package model

import (
	"net/http"
	"slices"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// Rewrite changes the path and the host of the request to a backend.
type Rewrite struct {
	// Host replaces the Host header. Empty: the header stays.
	Host string
	// FullPath replaces the whole path. PathPrefix replaces the prefix that the rule
	// matches. At most one of them is set.
	FullPath   string
	PathPrefix string
}

// HeaderEdit changes header fields. In a Route, names are in canonical form.
type HeaderEdit struct {
	Remove []string
	Set    []HeaderField
	Add    []HeaderField
}

// HeaderField is a header field with its value.
type HeaderField struct {
	Name  string
	Value string
}

// Apply changes the header: first Remove, then Set, then Add.
func (e *HeaderEdit) Apply(headers http.Header) {
	for _, name := range e.Remove {
		delete(headers, name)
	}
	for _, field := range e.Set {
		headers[field.Name] = []string{field.Value}
	}
	for _, field := range e.Add {
		headers[field.Name] = append(headers[field.Name], field.Value)
	}
}

// Decides reports whether the edit sets or removes a field of a request, so that a client cannot say it. The name is folded.
func (e *HeaderEdit) Decides(folded string) bool {
	if e == nil {
		return false
	}
	return slices.ContainsFunc(e.Remove, func(name string) bool { return fieldname.Folded(name) == folded }) ||
		slices.ContainsFunc(e.Set, func(field HeaderField) bool { return fieldname.Folded(field.Name) == folded })
}

// Redirect answers with another URL. What is not set comes from the request.
type Redirect struct {
	// StatusCode is one of 301, 302, 303, 307 and 308.
	StatusCode int
	// Scheme is http or https. Without Port, it takes the port of the request away.
	Scheme string
	Host   string
	Port   int32
	// ListenerPort means that, without Scheme and Port, the port of the connection takes the
	// place of the one in the Host field, which a client may choose.
	ListenerPort bool
	// FullPath replaces the whole path. PathPrefix replaces the prefix that the rule
	// matches. At most one of them is set.
	FullPath   string
	PathPrefix string
}

// DirectResponse is a fixed answer.
type DirectResponse struct {
	StatusCode  int
	ContentType string
	Body        []byte
}
