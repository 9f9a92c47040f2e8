package gatewayapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestARouteNamesItsBackendsAndThoseThatGetCopies(t *testing.T) {
	other, kind := gatewayv1.Namespace("data"), gatewayv1.Kind("ConfigMap")
	ref := func(name string) gatewayv1.BackendObjectReference {
		return gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(name)}
	}
	mirror := func(name string) []gatewayv1.HTTPRouteFilter {
		return []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestMirror, RequestMirror: &gatewayv1.HTTPRequestMirrorFilter{BackendRef: ref(name)}}}
	}
	elsewhere, odd := ref("shared"), ref("odd")
	elsewhere.Namespace, odd.Kind = &other, &kind
	backend := func(ref gatewayv1.BackendObjectReference, filters ...gatewayv1.HTTPRouteFilter) gatewayv1.HTTPBackendRef {
		return gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{BackendObjectReference: ref}, Filters: filters}
	}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: gatewayv1.HTTPRouteSpec{Rules: []gatewayv1.HTTPRouteRule{
		{Filters: mirror("copies"), BackendRefs: []gatewayv1.HTTPBackendRef{backend(ref("web"), mirror("copies-of-web")...), backend(elsewhere), backend(odd)}},
		{BackendRefs: []gatewayv1.HTTPBackendRef{backend(ref("web"))}},
	}}}
	want := []types.NamespacedName{
		{Namespace: "team", Name: "copies"}, {Namespace: "team", Name: "web"}, {Namespace: "team", Name: "copies-of-web"}, {Namespace: "data", Name: "shared"},
	}
	if diff := cmp.Diff(want, ServicesOfHTTPRoute(route)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
