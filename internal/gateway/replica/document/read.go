package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/text"
)

// Bounds of a document. Gateways keep to them. A reader refuses what is longer.
const (
	// maxProblems and the bytes bound what is read of problems. Gateways tell of fewer, in 256 KiB, but those of older releases
	// tell of more where there are more objects.
	maxProblems      = 8000
	maxProblemBytes  = 272 << 10
	moreProblemBytes = 8 << 10
	// maxRest bounds everything that is no list, and fields of other releases.
	maxRest = 16 << 10
	// maxDocument bounds a document, however many routes there are.
	maxDocument = 2 << 20
	// A digest has 12 characters, and in a list of JSON three more. A listener also has a name: the names of a namespace, a
	// ListenerSet and a listener.
	digestLength, digestBytes = 12, 16
	listenerBytes             = 64 + 63 + 2*253 + digestBytes
	maxWord                   = 512 // of a name or a field
	maxSentence               = 1 << 10
	maxKinds                  = 64
)

// Size is how much a gateway can serve.
type Size struct {
	// Routes is how many digests of routes and policies a document may hold, and Listeners how many listeners.
	Routes, Listeners int
	// Objects is how many routes, policies and listeners may have problems.
	Objects int
}

// Max returns the larger numbers of both.
func (s Size) Max(other Size) Size {
	return Size{Routes: max(s.Routes, other.Routes), Listeners: max(s.Listeners, other.Listeners), Objects: max(s.Objects, other.Objects)}
}

// Bytes is how long a document of this size can be.
func (s Size) Bytes() int64 {
	length := int64(maxRest) + maxProblemBytes + int64(s.Objects)*moreProblemBytes + int64(s.Routes)*digestBytes + int64(s.Listeners)*listenerBytes
	return min(length, maxDocument)
}

// Size is how much the document holds.
func (d Document) Size() Size { return Size{Routes: len(d.Routes), Listeners: len(d.Listeners)} }

// Memory is how many bytes the document takes in memory, or somewhat more.
func (d Document) Memory() int {
	const head, text, pair, problem = 512, 16, 32, 72 // of the structs; lists have room for more than is in them
	taken := head + words(d.Version, string(d.UID)) + text*cap(d.Routes) + words(d.Routes...) + pair*cap(d.Listeners) + problem*cap(d.Problems)
	for _, l := range d.Listeners {
		taken += words(l.Name, l.Digest)
	}
	for _, p := range d.Problems {
		taken += words(p.Name, p.Field, p.Reason, p.Message)
	}
	if d.Rejected != nil {
		taken += 3*text + words(d.Rejected.Reason, d.Rejected.Message)
	}
	if d.View != nil {
		taken += 4*text + text*cap(d.View.Of) + words(d.View.Of...)
	}
	return taken
}

// words is how many bytes the content of texts takes. Go gives out no less than 16, and up to a sixth more than is asked for.
func words(texts ...string) int {
	taken := 0
	for _, text := range texts {
		taken += (len(text)+15)/16*16 + len(text)/6
	}
	return taken
}

// An UnreadableError says why a document cannot be read. It holds nothing of the document: that may be anybody's words.
type UnreadableError struct{ Message string }

func (e *UnreadableError) Error() string { return e.Message }

var (
	errTooLong    = &UnreadableError{Path + " is answered with more than there can be"}
	errNoDocument = &UnreadableError{Path + " is answered with something else than a document"}
	errNoReason   = &UnreadableError{Path + " is answered with reasons that are none"}
	errNoDigest   = &UnreadableError{Path + " is answered with digests that are none"}
)

// reasonPattern is what a reason looks like. The API server refuses a condition with another one.
var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// Read reads a document of at most a size. What it costs depends on the size, not on what is read. Words that are too long are
// cut. The error is an UnreadableError.
func Read(body []byte, size Size) (*Document, error) {
	if int64(len(body)) > size.Bytes() {
		return nil, errTooLong
	}
	read := struct {
		Document
		// These stand before the fields of the Document.
		Problems  bounded[Problem]        `json:"problems"`
		Routes    bounded[string]         `json:"routes"`
		Listeners bounded[ServedListener] `json:"listeners"`
	}{
		Problems:  bounded[Problem]{what: "problems", most: maxProblems},
		Routes:    bounded[string]{what: "routes", most: size.Routes},
		Listeners: bounded[ServedListener]{what: "listeners", most: size.Listeners},
	}
	if err := json.Unmarshal(body, &read); err != nil {
		var unreadable *UnreadableError
		if errors.As(err, &unreadable) {
			return nil, unreadable
		}
		return nil, errNoDocument
	}
	if read.Protocol != Protocol {
		return nil, &UnreadableError{fmt.Sprintf("it speaks protocol %d and the operator speaks protocol %d", read.Protocol, Protocol)}
	}
	document := &read.Document
	document.Problems, document.Routes, document.Listeners = read.Problems.list, read.Routes.list, read.Listeners.list
	return document, document.tidy()
}

// tidy cuts words that are too long, and returns an error for what cannot stand in a status.
func (d *Document) tidy() error {
	d.Version, d.UID = text.Cut(d.Version, maxWord), types.UID(text.Cut(string(d.UID), maxWord))
	if d.Rejected != nil {
		d.Rejected.Message = text.Cut(d.Rejected.Message, maxSentence)
		if !reasonPattern.MatchString(d.Rejected.Reason) {
			return errNoReason
		}
	}
	for i := range d.Problems {
		p := &d.Problems[i]
		p.Name, p.Field, p.Message = text.Cut(p.Name, maxWord), text.Cut(p.Field, maxWord), text.Cut(p.Message, maxSentence)
		if !reasonPattern.MatchString(p.Reason) {
			return errNoReason
		}
	}
	for _, digest := range d.Routes {
		if len(digest) > digestLength {
			return errNoDigest
		}
	}
	for _, l := range d.Listeners {
		if len(l.Digest) > digestLength || len(l.Name) > listenerBytes {
			return errNoDigest
		}
	}
	if d.View != nil {
		d.View.Of = slices.Clone(d.View.Of[:min(len(d.View.Of), maxKinds)])
		for i := range d.View.Of {
			d.View.Of[i] = text.Cut(d.View.Of[i], maxWord)
		}
	}
	return nil
}

// bounded reads a list of at most so many items, and nothing of a longer one.
type bounded[T any] struct {
	// what it is called in an error.
	what string
	most int
	list []T
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *bounded[T]) UnmarshalJSON(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	b.list = nil
	switch first, err := decoder.Token(); {
	case err != nil:
		return err
	case first == nil: // null
		return nil
	case first != json.Delim('['):
		return errNoDocument
	}
	for decoder.More() {
		if len(b.list) == b.most {
			return &UnreadableError{fmt.Sprintf("%s is answered with more %s than there can be", Path, b.what)}
		}
		var item T
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		b.list = append(b.list, item)
	}
	return nil
}
