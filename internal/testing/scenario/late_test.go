package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

func gatewayThatSays(message, version string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"status": map[string]any{
			"replicas":   int64(2),
			"conditions": []any{map[string]any{"type": "Ready", "message": message}},
		},
	}
}

func TestALateWriteIsToldWithWhatItChangedAndWhen(t *testing.T) {
	end := time.Unix(1000, 0)
	patch := requests.Kind{Verb: "patch", Resource: "apigateways/status", Namespace: "test-1"}
	const path = "/apis/slipway.dev/v1alpha1/namespaces/test-1/apigateways/edge/status"
	writes := []fault.Write{
		{Kind: patch, Path: path, At: end.Add(-400 * time.Millisecond), Code: 200},
		{Kind: patch, Path: path, At: end.Add(1500 * time.Millisecond), Code: 200, Body: []byte(`{"status":{}}`)},
	}
	versions := []Version{
		{Object: "APIGateway/edge", At: end.Add(-390 * time.Millisecond), Fields: gatewayThatSays("serves", "7")},
		{Object: "Service/edge", At: end.Add(-380 * time.Millisecond), Fields: map[string]any{}},
		{Object: "APIGateway/edge", At: end.Add(1510 * time.Millisecond), Fields: gatewayThatSays("is behind", "9")},
	}
	want := strings.Join([]string{
		"1 writes after the end:",
		"1.5s after it: patch /apis/slipway.dev/v1alpha1/apigateways/edge/status (answered 200): {\"status\":{}}",
		"1.51s after it: APIGateway/edge was seen changed: status.conditions.Ready.message: serves -> is behind",
		"400ms before it: patch /apis/slipway.dev/v1alpha1/apigateways/edge/status (answered 200)",
	}, "\n")
	if diff := cmp.Diff(want, late(end, writes, 1, versions, 2).Error()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	table := &Table{}
	table.Played("case", late(end, writes, 1, versions, 2))
	if again, _ := table.Again(); len(again) != 1 || !strings.Contains(again[0], "serves -> is behind") {
		t.Errorf("the table says: %v", again)
	}
}

func TestWhatAVersionChanged(t *testing.T) {
	now := gatewayThatSays("serves", "8")
	more := gatewayThatSays("serves", "8")
	more["spec"] = map[string]any{"replicas": int64(3)}
	tests := map[string]struct {
		before []Version
		last   Version
		want   string
	}{
		"nothing but its version": {[]Version{{Object: "A/a", Fields: gatewayThatSays("serves", "7")}}, Version{Object: "A/a", Fields: now}, "(nothing)"},
		"a field more":            {[]Version{{Object: "A/a", Fields: now}}, Version{Object: "A/a", Fields: more}, "spec: <nil> -> map[replicas:3]"},
		"a field less":            {[]Version{{Object: "A/a", Fields: more}}, Version{Object: "A/a", Fields: now}, "spec: map[replicas:3] -> <nil>"},
		"a new object":            {[]Version{{Object: "A/b", Fields: now}}, Version{Object: "A/a", Fields: now}, "(made)"},
		"an object made again":    {[]Version{{Object: "A/a", Fields: now}, {Object: "A/a", Deleted: true}}, Version{Object: "A/a", Fields: now}, "(made)"},
		"a deletion":              {[]Version{{Object: "A/a", Fields: now}}, Version{Object: "A/a", Deleted: true, Fields: now}, gone},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := changedIn(append(tc.before, tc.last), len(tc.before)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
