package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

func TestAGatewayIsReadyUnlessItLeavesOrStandsBy(t *testing.T) {
	tests := map[string]struct {
		hasTable, leaves, stale bool
		word                    string
		want                    int
	}{
		"it serves":                            {hasTable: true, want: http.StatusOK},
		"it has no table yet":                  {want: http.StatusServiceUnavailable},
		"it leaves":                            {hasTable: true, leaves: true, want: http.StatusServiceUnavailable},
		"it is stale":                          {hasTable: true, stale: true, want: http.StatusOK},
		"it is stale, and no other is current": {hasTable: true, stale: true, word: "false", want: http.StatusOK},
		"it is stale, and another is current":  {hasTable: true, stale: true, word: "true", want: http.StatusServiceUnavailable},
		"it is current, and so is another":     {hasTable: true, word: "true", want: http.StatusOK},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			board := document.NewBoard(clock.RealClock{}, "dev")
			view := &document.View{Current: !tc.stale}
			if tc.stale {
				view.Since = time.Unix(1, 0)
			}
			board.Publish(document.Document{Generation: 1, View: view})
			h := New(func() bool { return tc.hasTable }, prometheus.NewRegistry(), board)
			if tc.leaves {
				h.Leave()
			}
			ask := func(method, path string) int {
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
				if method == http.MethodPost {
					document.Instruct(r)
				}
				h.ServeHTTP(w, r)
				return w.Code
			}
			if tc.word != "" {
				if code := ask(http.MethodPost, document.Path+"?"+document.StandbyParameter+"="+tc.word); code != http.StatusOK {
					t.Errorf("the word is answered with %d", code)
				}
			}
			if code := ask(http.MethodGet, "/readyz"); code != tc.want {
				t.Errorf("got %d, want %d", code, tc.want)
			}
		})
	}
}
