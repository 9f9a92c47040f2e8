package operator

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// decidedAnew returns an access whose writes are sent once. client-go waits as long as the
// API server asks and then sends the same bytes again, behind the back of the controller:
// a status, for example, that is no longer true by then. Without the header that tells it
// to wait it returns the refusal, and the controller waits, looks again and decides anew.
func decidedAnew(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return sentOnce{next} })
	return config
}

type sentOnce struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s sentOnce) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet {
		response.Header.Del("Retry-After")
	}
	return response, err
}
