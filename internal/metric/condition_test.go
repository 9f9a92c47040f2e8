package metric

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEveryConditionIsCountedForEveryObject(t *testing.T) {
	objects := [][]metav1.Condition{
		{{Type: "Ready", Status: metav1.ConditionTrue}},
		{{Type: "Ready", Status: metav1.ConditionUnknown}, {Type: "Stalled", Status: metav1.ConditionTrue}},
		nil,
	}
	want := map[[2]string]int{{"Ready", "True"}: 1, {"Ready", "False"}: 2, {"Stalled", "True"}: 1, {"Stalled", "False"}: 2}
	if diff := cmp.Diff(want, countByCondition([]string{"Ready", "Stalled"}, objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMetricsAreReadableWhenTheObjectsAreNotKnown(t *testing.T) {
	for name, known := range map[string]bool{"they are known": true, "they are not": false} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			Registered(registry, NewByCondition(Definition{Name: "objects", Help: "h", Labels: []string{"condition", "status"}}, []string{"Ready"},
				func(context.Context) ([][]metav1.Condition, bool) { return nil, known }))
			families, err := registry.Gather()
			if err != nil || (len(families) == 1) != known {
				t.Errorf("Gather = %v, %v, want series %v and no error", families, err, known)
			}
		})
	}
}
