package gatewayapi

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// unwatched reports whether nothing is known of the objects of a namespace.
func (in Input) unwatched(namespace string) bool {
	return len(in.Only) > 0 && !slices.Contains(in.Only, namespace)
}

// elsewhere says of an object that it is in a namespace that is not watched.
func elsewhere(kind, namespace, name string) string {
	return fmt.Sprintf("%s %q is in namespace %q, which Slipway does not watch: it is limited to other namespaces", kind, name, namespace)
}

// labelsOf are the labels of a namespace as far as they are known.
func (in Input) labelsOf(namespace string) labels.Set {
	if len(in.Only) > 0 {
		return labels.Set{corev1.LabelMetadataName: namespace}
	}
	return in.Namespaces[namespace]
}

// selects makes a selector of namespaces. The error tells why it cannot be used: a label that is not known must not be
// taken for one that is missing.
func (in Input) selects(spec *metav1.LabelSelector) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(spec)
	if err != nil || len(in.Only) == 0 {
		return selector, err
	}
	requirements, _ := selector.Requirements()
	for i := range requirements {
		if key := requirements[i].Key(); key != corev1.LabelMetadataName {
			return labels.Nothing(), fmt.Errorf("it has the label %q, and Slipway, which is limited to some namespaces, knows only the label %s of them", key, corev1.LabelMetadataName)
		}
	}
	return selector, nil
}
