package requests

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestKindOf(t *testing.T) {
	cases := map[string]struct {
		method, address, contentType string
		want                         Kind
		class                        Class
	}{
		"a read of one object": {
			http.MethodGet, "/apis/apps/v1/namespaces/a/deployments/shop", "",
			Kind{Verb: "get", Resource: "deployments", Namespace: "a"},
			Reads,
		},
		"a list of the cluster": {
			http.MethodGet, "/api/v1/secrets?limit=500", "",
			Kind{Verb: "list", Resource: "secrets"},
			Lists,
		},
		"a watch of one namespace": {
			http.MethodGet, "/api/v1/namespaces/a/pods?watch=true", "",
			Kind{Verb: "watch", Resource: "pods", Namespace: "a"},
			Watches,
		},
		"a namespace itself": {
			http.MethodGet, "/api/v1/namespaces/a", "",
			Kind{Verb: "get", Resource: "namespaces"},
			Reads,
		},
		"an apply": {
			http.MethodPatch, "/api/v1/namespaces/a/services/shop?fieldManager=x", "application/apply-patch+yaml",
			Kind{Verb: "apply", Resource: "services", Namespace: "a"},
			Children,
		},
		"a patch of a status": {
			http.MethodPatch, "/apis/slipway.dev/v1alpha1/namespaces/a/webapps/shop/status", "application/merge-patch+json",
			Kind{Verb: "patch", Resource: "webapps/status", Namespace: "a"},
			Status,
		},
		"an event": {
			http.MethodPost, "/apis/events.k8s.io/v1/namespaces/a/events", "",
			Kind{Verb: "create", Resource: "events", Namespace: "a"},
			Events,
		},
		"a renewed Lease": {
			http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases/x", "",
			Kind{Verb: "update", Resource: "leases", Namespace: "a"},
			Leases,
		},
		"a deletion": {
			http.MethodDelete, "/apis/apps/v1/namespaces/a/deployments/shop", "",
			Kind{Verb: "delete", Resource: "deployments", Namespace: "a"},
			Children,
		},
		"a deletion of many": {
			http.MethodDelete, "/apis/apps/v1/namespaces/a/deployments", "",
			Kind{Verb: "deletecollection", Resource: "deployments", Namespace: "a"},
			Children,
		},
		"discovery of a group":    {http.MethodGet, "/apis/apps/v1", "", Kind{Verb: "get"}, Discovery},
		"discovery of the groups": {http.MethodGet, "/apis", "", Kind{Verb: "get"}, Discovery},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(c.method, c.address, nil)
			request.Header.Set("Content-Type", c.contentType)
			got := KindOf(request)
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got.Class() != c.class {
				t.Errorf("got class %q, want %q", got.Class(), c.class)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	before := Counts{{Verb: "apply", Resource: "services", Namespace: "a"}: 1}
	after := Counts{
		{Verb: "apply", Resource: "services", Namespace: "a"}:       2,
		{Verb: "apply", Resource: "services", Namespace: "b"}:       1,
		{Verb: "patch", Resource: "webapps/status", Namespace: "a"}: 1,
		{Verb: "get", Resource: "services", Namespace: "a"}:         1,
	}
	made := after.Since(before)
	if got := made.Writes(); got != 3 {
		t.Errorf("counted %d writes, want 3", got)
	}
	if got := made.In("a").Writes(); got != 2 {
		t.Errorf("counted %d writes in a, want 2", got)
	}
	if got, want := made.String(), "2 apply services, 1 get services, 1 patch webapps/status"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
