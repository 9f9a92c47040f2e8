package metric

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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

func TestMetricsAreReadableBeforeTheCachesAreStarted(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		readable bool
	}{
		"the caches are not started": {err: &cache.ErrCacheNotStarted{}, readable: true},
		"another error":              {err: errors.New("no such index")},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			Registered(registry, NewByCondition(Definition{Name: "objects", Help: "h", Labels: []string{"condition", "status"}}, []string{"Ready"},
				func(context.Context) ([][]metav1.Condition, error) { return nil, test.err }))
			families, err := registry.Gather()
			if readable := err == nil; readable != test.readable || len(families) != 0 {
				t.Errorf("Gather = %v, %v, want readable %v and no series", families, err, test.readable)
			}
		})
	}
}
