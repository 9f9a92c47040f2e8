package desired

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// free are the fields of a pod template that releases may build differently: whatever they
// say, the pods may do no more than a WebApp can ask for. What is not here is as this
// release builds it, so that a field is refused until somebody has thought about it. A
// release that builds one of those differently has to permit what earlier ones have stored.
var free = map[string]bool{
	"spec.enableServiceLinks":                    true,
	"spec.imagePullSecrets":                      true,
	"spec.terminationGracePeriodSeconds":         true,
	"spec.topologySpreadConstraints":             true,
	"spec.containers[].env":                      true,
	"spec.containers[].envFrom":                  true,
	"spec.containers[].imagePullPolicy":          true,
	"spec.containers[].lifecycle":                true,
	"spec.containers[].livenessProbe":            true,
	"spec.containers[].ports":                    true,
	"spec.containers[].readinessProbe":           true,
	"spec.containers[].resources":                true,
	"spec.containers[].startupProbe":             true,
	"spec.containers[].terminationMessagePath":   true,
	"spec.containers[].terminationMessagePolicy": true,
	"spec.containers[].volumeMounts":             true,
}

// onNode are the fields within the free ones that reach past the pod: a port of the node,
// and a host that the kubelet is to ask.
var onNode = map[string]bool{"host": true, "hostIP": true, "hostPort": true}

// Unsafe returns a field of a stored pod template of the revision by which its pods may do
// more than those of any WebApp, or nothing. Whoever may write ControllerRevisions could
// otherwise have pods made that he may not make himself.
func Unsafe(app *slipwayv1alpha1.WebApp, revision Revision, template *PodTemplate) string {
	return difference("", reflect.ValueOf(template), reflect.ValueOf(NewTemplate(app, revision)))
}

// difference returns the path of the first field that says more than it may.
func difference(path string, stored, built reflect.Value) string {
	switch {
	case free[path]:
		return nodeField(path, stored)
	case path == "metadata.labels" || path == "metadata.annotations":
		return surplus(path, stored.Interface().(map[string]string), built.Interface().(map[string]string))
	case path == "spec.volumes":
		return surplusVolume(stored.Interface().([]corev1ac.VolumeApplyConfiguration),
			built.Interface().([]corev1ac.VolumeApplyConfiguration))
	}
	switch kind := stored.Kind(); {
	case kind == reflect.Pointer && !stored.IsNil() && !built.IsNil():
		return difference(path, stored.Elem(), built.Elem())
	case kind == reflect.Struct:
		for i := range stored.NumField() {
			if found := difference(join(path, stored.Type().Field(i)), stored.Field(i), built.Field(i)); found != "" {
				return found
			}
		}
		return ""
	case kind == reflect.Slice && stored.Len() == built.Len():
		for i := range stored.Len() {
			if found := difference(path+"[]", stored.Index(i), built.Index(i)); found != "" {
				return found
			}
		}
		return ""
	case equality.Semantic.DeepEqual(stored.Interface(), built.Interface()):
		return ""
	default:
		return path
	}
}

// nodeField returns the path of a field that reaches past the pod.
func nodeField(path string, stored reflect.Value) string {
	switch stored.Kind() {
	case reflect.Pointer:
		if !stored.IsNil() {
			return nodeField(path, stored.Elem())
		}
	case reflect.Struct:
		for i := range stored.NumField() {
			field := stored.Type().Field(i)
			if onNode[nameOf(field)] && !stored.Field(i).IsZero() {
				return join(path, field)
			}
			if found := nodeField(join(path, field), stored.Field(i)); found != "" {
				return found
			}
		}
	case reflect.Slice:
		for i := range stored.Len() {
			if found := nodeField(path+"[]", stored.Index(i)); found != "" {
				return found
			}
		}
	default:
	}
	return ""
}

// surplus finds what would have others take the pods for theirs, such as a Service or a
// NetworkPolicy. A release may state fewer.
func surplus(path string, stored, built map[string]string) string {
	for key, value := range stored {
		if other, ok := built[key]; !ok || other != value {
			return path
		}
	}
	return ""
}

// surplusVolume finds a volume that a WebApp does not have. A release may mount fewer.
func surplusVolume(stored, built []corev1ac.VolumeApplyConfiguration) string {
	for _, volume := range stored {
		known := false
		for _, other := range built {
			known = known || equality.Semantic.DeepEqual(volume, other)
		}
		if !known {
			return "spec.volumes"
		}
	}
	return ""
}

func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func join(path string, field reflect.StructField) string {
	name := nameOf(field)
	switch {
	case name == "":
		return path
	case path == "":
		return name
	default:
		return path + "." + name
	}
}
