package desired

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationRetired is on the Deployment and the Service of a Gateway that another controller serves now. It keeps how many pods
// the one had, and of which type the other was.
const AnnotationRetired = "slipway.dev/retired"

// Retired reports whether an object has the annotation.
func Retired(object metav1.Object) bool {
	_, retired := Before(object)
	return retired
}

// Before is what the annotation keeps.
func Before(object metav1.Object) (before string, retired bool) {
	before, retired = object.GetAnnotations()[AnnotationRetired]
	return before, retired
}

// Retire sets the annotation.
func Retire(object metav1.Object, before string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationRetired] = before
	object.SetAnnotations(annotations)
}

// Revive takes it away.
func Revive(object metav1.Object) {
	annotations := object.GetAnnotations()
	delete(annotations, AnnotationRetired)
	object.SetAnnotations(annotations)
}
