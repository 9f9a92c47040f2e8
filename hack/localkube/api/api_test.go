package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	return For(server.URL, server.Client())
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

func TestMerge(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		content, _ := io.ReadAll(request.Body)
		got = strings.Join([]string{request.Method, request.URL.Path, request.Header.Get("Content-Type"), string(content)}, " ")
		if request.URL.Path != "/there" {
			http.NotFound(response, request)
		}
	}))
	t.Cleanup(server.Close)
	client := For(server.URL, server.Client())
	check(t, client.Merge(t.Context(), "/there", map[string]int{"a": 1}), "")
	if diff := cmp.Diff(`PATCH /there application/merge-patch+json {"a":1}`, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	check(t, client.Merge(t.Context(), "/elsewhere", nil), "404")
}

func TestWatch(t *testing.T) {
	const path = "/watched"
	var got []string
	collect := func(event json.RawMessage) error {
		got = append(got, string(event))
		return nil
	}
	check(t, serve(t, path, `{"a":1}`+"\n"+`{"b":2}`+"\n").Watch(t.Context(), path, collect), "")
	if diff := cmp.Diff([]string{`{"a":1}`, `{"b":2}`}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	check(t, serve(t, path, `{"a":1}{"b":`).Watch(t.Context(), path, collect), "unexpected EOF")
	check(t, serve(t, path, `{}`).Watch(t.Context(), path, func(json.RawMessage) error { return errors.New("enough") }), "enough")
	check(t, serve(t, path, "").Watch(t.Context(), "/elsewhere", collect), "404")
}
