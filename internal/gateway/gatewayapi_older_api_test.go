//go:build apitest

package gateway

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// A gateway goes by the grants of the version that the cluster has, while the definitions are replaced by newer ones, and by ones
// that do not have the older version any more.
func TestAGrantCountsInWhicheverVersionTheClusterHasIt(t *testing.T) {
	before := env
	old, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		env = before
		if err := old.Stop(); err != nil {
			t.Error(err)
		}
	})
	env = old
	if err := env.InstallOldGatewayAPI(t.Context(), "gateways", "httproutes", "grpcroutes", "referencegrants"); err != nil {
		t.Fatal(err)
	}
	t.Run("gateway", func(t *testing.T) {
		c := newSiteWithout(t)
		other := c.elsewhere(t)
		other.serve("app", newBackend(t, "there"))
		port := environment.FreePort(t)
		c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, "")))
		c.put("HTTPRoute", "route", `{parentRefs: [{name: edge}], rules: [{backendRefs: [{name: app, namespace: `+other.namespace+`, port: 80}]}]}`)
		r := c.runGateway()
		r.answersOn(port, "a", "/", "500")
		grant := other.object("ReferenceGrant", "grant")
		grant.Object["spec"] = map[string]any{
			"from": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": c.namespace}},
			"to":   []any{map[string]any{"group": "", "kind": "Service"}},
		}
		follows := func(version string) {
			t.Helper()
			grant.SetAPIVersion("gateway.networking.k8s.io/" + version)
			grant.SetResourceVersion("")
			environment.Eventually(t, func() error { return client.IgnoreAlreadyExists(env.Client.Create(t.Context(), grant)) })
			r.answersOn(port, "a", "/", "there")
			if err := env.Client.Delete(t.Context(), grant); err != nil {
				t.Fatal(err)
			}
			r.answersOn(port, "a", "/", "500")
		}
		follows("v1beta1")
		if err := env.InstallModule(t.Context(), gatewayAPI, crds+"referencegrants.yaml"); err != nil {
			t.Fatal(err)
		}
		follows("v1")
		c.serveOnly("referencegrants.gateway.networking.k8s.io", "v1")
		follows("v1")
		if view := r.revision().View; view == nil || !view.Current {
			t.Errorf("got view %+v", view)
		}
		// The older definitions have neither of these, nor TLSRoutes, TCPRoutes and UDPRoutes.
		for text, want := range map[string]int{"the cluster does not have this kind": 5, `"what":"ListenerSets"`: 1, `"what":"BackendTLSPolicies"`: 1} {
			if got := strings.Count(r.log.String(), text); got != want {
				t.Errorf("the log says %s %d times, want %d:\n%s", text, got, want, r.log)
			}
		}
	})
}

// serveOnly has the API server serve one version of a kind.
func (c *site) serveOnly(name, version string) {
	c.t.Helper()
	environment.Eventually(c.t, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := env.Client.Get(c.t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
			return err
		}
		found := false
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == version
			found = found || crd.Spec.Versions[i].Served
		}
		if !found {
			return fmt.Errorf("%s has no version %s", name, version)
		}
		return env.Client.Update(c.t.Context(), crd)
	})
}
