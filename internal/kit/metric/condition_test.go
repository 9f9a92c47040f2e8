package metric

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
