package operator

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	if err != nil || request.Method == http.MethodGet {
		return response, err
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		if err := reportDelay(request, response, seconds); err != nil {
			return nil, err
		}
	}
	response.Header.Del("Retry-After")
	return response, nil
}

// maxRefusal bounds how much of a refusal in plain words is passed on.
const maxRefusal = 4096

// reportDelay says in the body of a refusal how long to wait, where it does not say so
// already. An overloaded API server answers in plain words, with the delay in the header
// alone.
func reportDelay(request *http.Request, response *http.Response, seconds int) error {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind != "text/plain" && kind != "" {
		return nil
	}
	words, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	_ = response.Body.Close()
	if err != nil {
		return err
	}
	refusal := apierrors.NewGenericServerResponse(response.StatusCode, request.Method, schema.GroupResource{}, "",
		string(bytes.TrimSpace(words)), seconds, true)
	status := refusal.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Type", "application/json")
	response.Header.Del("Content-Length")
	return nil
}
