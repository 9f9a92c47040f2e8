package fault

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// sent answers every request that reaches the API server.
type sent struct{ requests int }

func (s *sent) RoundTrip(*http.Request) (*http.Response, error) {
	s.requests++
	return nil, errors.New("sent")
}

func TestTheNamespaceOfASourceIsFoundWithoutARequest(t *testing.T) {
	for name, tc := range map[string]struct {
		path      string
		wrapped   bool
		namespace string
		requests  int
	}{
		"of a namespace":       {"/api/v1/namespaces/team/secrets", true, "team", 0},
		"of a kind of a group": {"/apis/apps/v1/namespaces/team/deployments", true, "team", 0},
		"of all":               {"/api/v1/secrets", true, "", 0},
		"not through a relay":  {"/api/v1/namespaces/team/secrets", false, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := &sent{}
			var transport http.RoundTripper = server
			if tc.wrapped {
				transport = discovery{known: &sync.Map{}, next: server}
			}
			source := &toolscache.ListWatch{ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server"+tc.path, nil)
				if err != nil {
					return nil, err
				}
				response, err := (&http.Client{Transport: transport}).Do(request)
				if err == nil {
					err = response.Body.Close()
				}
				return &corev1.SecretList{}, err
			}}
			if got := NewRelay(t.Context(), nil, nil).namespaceOf(source); got != tc.namespace {
				t.Errorf("got %q, want %q", got, tc.namespace)
			}
			if server.requests != tc.requests {
				t.Errorf("%d requests were sent, want %d", server.requests, tc.requests)
			}
		})
	}
}
