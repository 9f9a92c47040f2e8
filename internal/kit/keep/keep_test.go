package keep_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/keep"
)

func identity() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "shop", Namespace: "team", UID: "1", ResourceVersion: "7"}
}

func full() metav1.ObjectMeta {
	meta := identity()
	meta.Labels = map[string]string{"l": "1"}
	meta.Annotations = map[string]string{"a": "1", health.AnnotationRevision: "3"}
	meta.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "slipway-webapp"}, {Manager: "kube-controller-manager"}}
	return meta
}

func TestTheCacheKeepsWhatIsNeeded(t *testing.T) {
	ownFields := full()
	ownFields.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "slipway-webapp"}}
	labelled := identity()
	labelled.Labels = map[string]string{"l": "1"}
	revision := full()
	revision.Annotations, revision.ManagedFields = map[string]string{health.AnnotationRevision: "3"}, nil
	tests := map[string]struct {
		transform toolscache.TransformFunc
		in, want  any
	}{
		"own managed fields of a child": {keep.OwnManagedFields, &appsv1.Deployment{ObjectMeta: full()}, &appsv1.Deployment{ObjectMeta: ownFields}},
		"revision of a ReplicaSet":      {keep.Metadata(health.AnnotationRevision), &metav1.PartialObjectMetadata{ObjectMeta: full()}, &metav1.PartialObjectMetadata{ObjectMeta: revision}},
		"labels of a namespace":         {keep.Labels, &metav1.PartialObjectMetadata{ObjectMeta: full()}, &metav1.PartialObjectMetadata{ObjectMeta: labelled}},
		"identity of a Secret":          {keep.Identity, &metav1.PartialObjectMetadata{ObjectMeta: full()}, &metav1.PartialObjectMetadata{ObjectMeta: identity()}},
		"a deletion that was missed": {
			keep.Identity, toolscache.DeletedFinalStateUnknown{Key: "team/shop"}, toolscache.DeletedFinalStateUnknown{Key: "team/shop"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tc.transform(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestASecretIsNeverCachedWithItsContent(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("hunter2")}}
	_, err := keep.Identity(secret)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the answer is %v", err)
	}
}
