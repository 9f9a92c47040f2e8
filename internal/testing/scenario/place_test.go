package scenario

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
)

func TestAnObjectIsCalledTheSameInEveryRun(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, name string
		home, called    string
	}{
		"of the run":             {"test-x", "shop", "test-x", "Secret/shop"},
		"named after the run":    {"test-x", "edge-test-x", "test-x", "Secret/edge-NAMESPACE"},
		"in another namespace":   {"test-x-elsewhere", "shop", "test-x", "Secret/NAMESPACE-elsewhere/shop"},
		"in none":                {"", "test-x", "test-x", "Secret/NAMESPACE"},
		"of another run by name": {"test-y", "edge-test-x", "test-y", "Secret/edge-test-x"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetNamespace(tc.namespace)
			object.SetName(tc.name)
			if home := homeOf(object); home != tc.home {
				t.Errorf("it belongs to %q, want %q", home, tc.home)
			}
			if got := called("Secret", object); got != tc.called {
				t.Errorf("it is called %q, want %q", got, tc.called)
			}
		})
	}
}

func TestWhatIsFilledInIsMaskedAgain(t *testing.T) {
	step := func() map[string]any {
		return map[string]any{"list": []any{"a-NAMESPACE", int64(1), map[string]any{"NAMESPACE.web": "NAMESPACE-elsewhere"}}, "plain": "text"}
	}
	in := map[string]any{"list": []any{"a-test-x", int64(1), map[string]any{"test-x.web": "test-x-elsewhere"}}, "plain": "text"}
	object := step()
	filled(object, "test-x")
	if diff := cmp.Diff(in, object); diff != "" {
		t.Errorf("filled in (-want +got):\n%s", diff)
	}
	mask(object, "test-x")
	if diff := cmp.Diff(step(), object); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
}

func TestTheVersionOfACopyIsMasked(t *testing.T) {
	masked := func(version string) map[string]any {
		data := map[string]any{"data": map[string]any{
			"test-x-elsewhere.web.version": version, "test-x-elsewhere.web.tls.crt": "Zm9v", "test-x-elsewhere.keys.data.v": version,
		}}
		mask(data, "test-x")
		return data
	}
	if diff := cmp.Diff(masked("MQ=="), masked("Mg==")); diff != "" {
		t.Error(diff)
	}
	want := map[string]any{"data": map[string]any{
		"NAMESPACE-elsewhere.web.version": ".version", "NAMESPACE-elsewhere.web.tls.crt": "Zm9v", "NAMESPACE-elsewhere.keys.data.v": ".data.v",
	}}
	if diff := cmp.Diff(want, masked("MQ==")); diff != "" {
		t.Error(diff)
	}
}

func TestAScenarioGoesElsewhereWhereAStepNamesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		step Step
		goes bool
	}{
		"here":                {Step{Apply: map[string]any{"metadata": map[string]any{"name": "NAMESPACE"}}}, false},
		"an object elsewhere": {Step{Apply: map[string]any{"metadata": map[string]any{"namespace": "NAMESPACE-elsewhere"}}}, true},
		"deleted elsewhere":   {Step{Delete: &Reference{Namespace: "NAMESPACE-elsewhere"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if goes := (Scenario{Steps: []Step{tc.step}}).goesElsewhere(); goes != tc.goes {
				t.Errorf("got %v", goes)
			}
		})
	}
}

func TestWhatTheOperatorHasMadeByChanceIsMasked(t *testing.T) {
	masked := func(key, content string) string {
		data := map[string]any{"data": map[string]any{key: base64.StdEncoding.EncodeToString([]byte(content))}}
		mask(data, "test-x")
		return fmt.Sprint(data)
	}
	for _, key := range []string{copied.SessionsKey, copied.ReplicasKey} {
		if a, b := masked(key, strings.Repeat("a", 32)), masked(key, strings.Repeat("b", 32)); a != b {
			t.Errorf("masked are %s and %s", a, b)
		}
		if a, b := masked(key, "a"), masked(key, "b"); a == b {
			t.Errorf("what is not of the right length is masked: %s", a)
		}
	}
}
