package operator

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A read may be sent again: it cannot be out of date.
func TestAWriteThatIsToWaitIsReturnedToTheController(t *testing.T) {
	tests := map[string]struct{ contentType, body string }{
		"a refusal of the API server": {
			"application/json",
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`,
		},
		// As its filter for overload writes it.
		"an API server that is overloaded": {"text/plain; charset=utf-8", "Too many requests, please try again later.\n"},
		"a proxy on the way":               {"", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			requests := map[string]int{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests[r.Method]++
				if requests[r.Method] > 1 {
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprint(w, `{"kind":"Service","apiVersion":"v1"}`)
					return
				}
				w.Header()["Content-Type"] = []string{tc.contentType}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = fmt.Fprint(w, tc.body)
			}))
			defer server.Close()
			services := kubernetes.NewForConfigOrDie(decidedAnew(&rest.Config{Host: server.URL})).CoreV1().Services("team")

			_, err := services.Create(t.Context(), &corev1.Service{}, metav1.CreateOptions{})
			if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds != 1 || requests[http.MethodPost] != 1 || !apierrors.IsTooManyRequests(err) {
				t.Errorf("%d writes, error %v with a delay of %d s; want one, refused, with the delay", requests[http.MethodPost], err, seconds)
			}
			if _, err := services.Get(t.Context(), "shop", metav1.GetOptions{}); err != nil || requests[http.MethodGet] != 2 {
				t.Errorf("%d reads, error %v; want the second one to be answered", requests[http.MethodGet], err)
			}
		})
	}
}
