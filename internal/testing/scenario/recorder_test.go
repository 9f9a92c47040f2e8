package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// recorderOfConfigMaps sees what it is told.
func recorderOfConfigMaps() *Recorder {
	return &Recorder{kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")}, spaces: map[string]*space{}}
}

// configMap is an object of a run in a version.
func configMap(uid, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	object.SetNamespace("test-1")
	object.SetName("shop")
	object.SetUID(types.UID(uid))
	object.SetResourceVersion(version)
	return object
}

// A step is over when what it did was seen. A deletion has no version where the watch was broken: a list without the object shows it.
func TestWhatAStepDidIsSeenByItsVersionOrBecauseTheObjectIsGone(t *testing.T) {
	missed := func(w *Recorder, uid, version string) {
		w.see(toolscache.DeletedFinalStateUnknown{Key: "test-1/shop", Obj: configMap(uid, version)}, true)
	}
	tests := map[string]struct {
		see  func(w *Recorder)
		seen bool
	}{
		"nothing":                    {func(*Recorder) {}, false},
		"an earlier version":         {func(w *Recorder) { w.see(configMap("a", "6"), false) }, false},
		"that version":               {func(w *Recorder) { w.see(configMap("a", "7"), false) }, true},
		"a later version":            {func(w *Recorder) { w.see(configMap("a", "8"), false) }, true},
		"that it went":               {func(w *Recorder) { w.see(configMap("a", "6"), false); w.see(configMap("a", "7"), true) }, true},
		"that it is gone":            {func(w *Recorder) { w.see(configMap("a", "6"), false); missed(w, "a", "6") }, true},
		"that one before it is gone": {func(w *Recorder) { w.see(configMap("b", "5"), false); missed(w, "b", "5") }, false},
		"that it is gone, and a new one": {func(w *Recorder) {
			w.see(configMap("a", "6"), false)
			missed(w, "a", "6")
			w.see(configMap("b", "9"), false)
		}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := recorderOfConfigMaps()
			tc.see(w)
			if seen := w.Saw("test-1", "ConfigMap/shop", effect{uid: "a", number: 7}); seen != tc.seen {
				t.Errorf("what was done was seen: %v, want %v", seen, tc.seen)
			}
		})
	}
}

// Where a watch was broken, its informer lists everything again, and passes on every object once more. Nothing has happened then.
func TestAVersionThatIsListedAgainIsNoneThatHappened(t *testing.T) {
	w := recorderOfConfigMaps()
	for i, version := range []string{"6", "6", "7", "7"} {
		w.see(configMap("a", version), false)
		if got, want := w.Count("test-1"), []int{1, 1, 2, 2}[i]; got != want {
			t.Errorf("after version %d of the list, %s: %d versions were seen, want %d", i+1, version, got, want)
		}
	}
	w.see(configMap("a", "7"), true)
	if w.Count("test-1") != 3 || len(w.State("test-1")) > 0 {
		t.Errorf("the object is not gone: %v", w.History("test-1"))
	}
}
