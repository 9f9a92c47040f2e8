package fault

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// Wrap answers an operator's questions for the kinds that there are with what the API
// server answered the first operator that asked: they must not change.
func (r *Relay) Wrap(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return discovery{known: &r.known, next: next}
	})
}

// answer is one of the API server.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// discovery passes requests on, those for the kinds that there are only once.
type discovery struct {
	known *sync.Map
	next  http.RoundTripper
}

func (d discovery) RoundTrip(request *http.Request) (*http.Response, error) {
	if onlyAsked(request) {
		return nil, errNotSent
	}
	if request.Method != http.MethodGet || requests.KindOf(request).Class() != requests.Discovery {
		return d.next.RoundTrip(request)
	}
	question := request.URL.String() + " " + request.Header.Get("Accept")
	if known, ok := d.known.Load(question); ok {
		return known.(answer).to(request), nil
	}
	response, err := d.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	a := answer{response.StatusCode, response.Header, body}
	d.known.Store(question, a)
	return a.to(request), nil
}

func (a answer) to(request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: request,
	}
}
