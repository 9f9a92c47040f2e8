package operator

import (
	"testing"

	"github.com/go-logr/logr"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

func TestAnOperatorTellsHowManyNamespacesItIsLimitedTo(t *testing.T) {
	for _, namespaces := range [][]string{{"team-a", "team-b"}, nil} {
		setMetrics(logr.Discard(), Options{Namespaces: namespaces})
		families, err := crmetrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]float64{}
		for _, family := range families {
			if metrics := family.GetMetric(); len(metrics) == 1 && metrics[0].GetGauge() != nil {
				found[family.GetName()] = metrics[0].GetGauge().GetValue()
			}
		}
		if got, is := found[LimitedNamespaces.Name]; !is || got != float64(len(namespaces)) {
			t.Errorf("%v: %s is %v, %v", namespaces, LimitedNamespaces.Name, got, is)
		}
		if got, is := found[MemoryLimit.Name]; !is || got < 0 {
			t.Errorf("%s is %v, %v", MemoryLimit.Name, got, is)
		}
	}
}
