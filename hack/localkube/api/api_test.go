package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func serve(t *testing.T, path, body string) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.URL.Path != path {
			http.NotFound(response, request)
			return
		}
		_, _ = response.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return &Client{server: server.URL, http: server.Client()}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil {
		t.Errorf("got %v, want no error", err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

func TestNodeReady(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"ready":        {body: `{"status":{"conditions":[{"type":"PIDPressure","status":"False"},{"type":"Ready","status":"True"}]}}`},
		"not ready":    {body: `{"status":{"conditions":[{"type":"Ready","status":"False","message":"no network"}]}}`, want: "no network"},
		"tainted":      {body: `{"spec":{"taints":[{"key":"node.kubernetes.io/not-ready"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, want: "node.kubernetes.io/not-ready"},
		"new":          {body: `{}`, want: "has not reported yet"},
		"not readable": {body: `no JSON`, want: "invalid character"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			check(t, serve(t, "/api/v1/nodes/n", test.body).NodeReady(t.Context(), "n"), test.want)
		})
	}
	check(t, serve(t, "/api/v1/nodes/n", "{}").NodeReady(t.Context(), "other"), "404")
}

func TestNodeRenewedSince(t *testing.T) {
	const path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"
	client := serve(t, path, `{"spec":{"renewTime":"2026-01-02T03:04:05.678901Z"}}`)
	renewed := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	check(t, client.NodeRenewedSince(t.Context(), "n", renewed.Add(-time.Second)), "")
	check(t, client.NodeRenewedSince(t.Context(), "n", renewed.Add(time.Second)), "has not reported since")
}

func TestDefaultStorageClass(t *testing.T) {
	const path = "/apis/storage.k8s.io/v1/storageclasses"
	check(t, serve(t, path, `{"items":[{"metadata":{}},{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}]}`).DefaultStorageClass(t.Context()), "")
	check(t, serve(t, path, `{"items":[{"metadata":{}}]}`).DefaultStorageClass(t.Context()), "no default StorageClass")
}
