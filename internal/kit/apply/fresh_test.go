package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Each kind may be stored in an etcd of its own. Then the versions of one kind say nothing
// about those of another.
func TestTheVersionsOfKindsDoNotCompare(t *testing.T) {
	at := func(version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "shop", ResourceVersion: version}
	}
	service := func(version string) client.Object { return &corev1.Service{ObjectMeta: at(version)} }
	app := func(version string) client.Object { return &slipwayv1alpha1.WebApp{ObjectMeta: at(version)} }
	metadata := func(kind, version string) client.Object {
		object := &metav1.PartialObjectMetadata{ObjectMeta: at(version)}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		return object
	}
	tests := map[string]struct {
		wrote  []client.Object
		object client.Object
		want   bool
	}{
		"nothing was written":                                      {nil, service("500"), false},
		"the first one written":                                    {[]client.Object{service("500")}, service("500"), true},
		"newer than the first one written":                         {[]client.Object{service("500"), service("900")}, service("600"), true},
		"older than the first one written":                         {[]client.Object{service("500")}, service("499"), false},
		"of another kind, whose etcd has counted further":          {[]client.Object{service("500")}, app("10000000"), false},
		"of another kind, of which something was written as well":  {[]client.Object{service("500"), app("10000000")}, app("10000001"), true},
		"of another kind, and older than what was written of that": {[]client.Object{service("500"), app("10000000")}, app("9999999"), false},
		"of another kind, whose etcd has not counted as far":       {[]client.Object{app("10000000"), service("500")}, service("501"), true},
		"of a kind that is never written":                          {[]client.Object{service("500")}, metadata("Secret", "501"), false},
		"of the kind that was written, and the metadata alone":     {[]client.Object{service("500")}, metadata("Service", "501"), true},
		"without a version that is a number":                       {[]client.Object{service("500")}, service("x"), false},
		"newer than something written without a version":           {[]client.Object{service("x")}, service("1"), false},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, slipwayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	// It tells the kinds of objects, and is asked for nothing else.
	kinds, err := client.New(&rest.Config{}, client.Options{Scheme: scheme, Mapper: meta.NewDefaultRESTMapper(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := NewFreshness(kinds, kinds)
			for _, object := range tc.wrote {
				f.Wrote(object)
			}
			if got := f.isNew(tc.object); got != tc.want {
				t.Errorf("needs no comparison: %t, want %t", got, tc.want)
			}
		})
	}
}
