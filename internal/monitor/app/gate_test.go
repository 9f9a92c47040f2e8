package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/server"
	"github.com/slipway-dev/slipway/internal/web/failure"
)

func TestTheAPISaysThatTheHistoryIsNotOpen(t *testing.T) {
	t.Parallel()
	a := &app{}
	a.gate.before = server.Starting(a.ready.reported)
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.gate.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return w
	}
	said := func() string {
		t.Helper()
		w, f := ask(api.Prefix+"changes"), failure.Failure{}
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != http.StatusServiceUnavailable || f.Reason != failure.Unavailable {
			t.Errorf("%d %s (%v)", w.Code, w.Body, err)
		}
		if w.Header().Get("Retry-After") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("the headers are %v", w.Header())
		}
		return f.Message
	}
	if message := said(); !strings.Contains(message, "starting") {
		t.Errorf("it says %q", message)
	}
	a.ready.set(errors.New("open /secret/path: no space"))
	if message := said(); !strings.Contains(message, "cannot be opened yet") || strings.Contains(message, "secret") {
		t.Errorf("it says %q", message)
	}
	if alive, ready := ask("/healthz"), ask("/readyz"); alive.Code != http.StatusOK || ready.Code != http.StatusServiceUnavailable {
		t.Errorf("alive %d, ready %d", alive.Code, ready.Code)
	}
	a.gate.open(http.NotFoundHandler())
	if w := ask(api.Prefix + "changes"); w.Code != http.StatusNotFound {
		t.Errorf("once it is open: %d", w.Code)
	}
}

func TestServiceHosts(t *testing.T) {
	t.Parallel()
	if hosts := serviceHosts(""); len(hosts) != 0 {
		t.Errorf("without a namespace: %v", hosts)
	}
	if hosts := strings.Join(serviceHosts("a"), " "); hosts != "slipway-monitor slipway-monitor.a slipway-monitor.a.svc slipway-monitor.a.svc.cluster.local" {
		t.Errorf("in namespace a: %s", hosts)
	}
}
