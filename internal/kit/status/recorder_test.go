package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// counting counts Events by the namespaces of their objects.
type counting map[string]int

func (c counting) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) {
	c[regarding.(*corev1.Pod).Namespace]++
}

// Whatever happens to the objects of one namespace, client-go keeps a bounded number of Events about them, and those of another one
// are told.
func TestEventsAboutOneNamespaceAreBounded(t *testing.T) {
	reported := counting{}
	r := Recorder(reported)
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
	}
	for range 100 * eventsAtOnce {
		r.Eventf(pod("greedy"), nil, corev1.EventTypeNormal, "Changed", "Change", "again")
	}
	if reported["greedy"] < eventsAtOnce || reported["greedy"] > eventsAtOnce+60*eventsPerSecond {
		t.Errorf("%d Events about a namespace are told", reported["greedy"])
	}
	r.Eventf(pod("quiet"), nil, corev1.EventTypeNormal, "Changed", "Change", "once")
	if reported["quiet"] != 1 {
		t.Error("the Event of another namespace is not told")
	}
}
