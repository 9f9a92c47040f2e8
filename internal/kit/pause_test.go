package kit

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/refusal"
	"github.com/slipway-dev/slipway/internal/workload"
)

// What refuses the pods of a Deployment is watched no more once the owner is paused, or the Deployment is somebody else's: nothing of
// it would be changed.
func TestWhatIsLeftAsItIsIsNotWatched(t *testing.T) {
	owner := &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "mine"}}
	controlledBy := func(uid types.UID) workload.Workload {
		yes := true
		return workload.Workload{Deployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "slipway.dev/v1alpha1", Kind: "WebApp", Name: "shop", UID: uid, Controller: &yes},
		}}}}
	}
	tests := map[string]struct {
		w      workload.Workload
		asItIs bool
	}{
		"a pause":                   {controlledBy("mine"), true},
		"somebody else's":           {controlledBy("another"), false},
		"a Deployment that is well": {controlledBy("mine"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			begun, ended := make(chan bool, 1), make(chan bool, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "" {
					http.Error(w, "no", http.StatusForbidden)
					return
				}
				w.(http.Flusher).Flush()
				begun <- true
				<-r.Context().Done()
				ended <- true
			}))
			defer server.Close()
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ResourceQuota"), meta.RESTScopeNamespace)
			watches, err := blocker.New(&rest.Config{Host: server.URL}, server.Client(), mapper, 0)
			if err != nil {
				t.Fatal(err)
			}
			tools := &Tools{Applier: &apply.Applier{}, Refusals: &refusal.Reader{Watches: watches}}
			quota := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "small"}}
			quota.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ResourceQuota"))
			watches.Keep(t.Context(), client.ObjectKeyFromObject(owner), []*metav1.PartialObjectMetadata{quota})
			wait(t, begun, "the quota is not watched")

			recheck := outcome.Recheck(0)
			looked, left := tools.LookAgain(t.Context(), owner, tc.w, tc.asItIs, &recheck)
			wait(t, ended, "the quota is still watched")
			if well := name == "a Deployment that is well"; looked != well || left != nil || recheck != 0 {
				t.Errorf("looked: %v, refused by %v, again after %v", looked, left, recheck.In())
			}
		})
	}
}

func wait(t *testing.T, happened <-chan bool, otherwise string) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(20 * time.Second):
		t.Fatal(otherwise)
	}
}
