package health_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/health"
)

// Any JSON leads to one verdict, which keeps the rules of checkRules. The object is not changed.
func FuzzOfAnyJSON(f *testing.F) {
	for _, s := range samples(f) {
		raw, err := json.Marshal(s.Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, hostile := range []string{
		`{"status":"Ready"}`, `{"status":{"conditions":{"Ready":"True"},"phase":"Ready"}}`, `{"status":{"conditions":[[],null,1,{"type":1}]}}`,
		`{"metadata":{"generation":"x","deletionTimestamp":"never","finalizers":[1]}}`, `{"status":{"parents":[{"conditions":[{"type":"Accepted","status":true}]}]}}`,
		`{"kind":"Pod","apiVersion":"v1","status":{"phase":1,"conditions":{}}}`, `{"kind":"Deployment","apiVersion":"apps/v1","spec":[],"status":{"replicas":1e300}}`,
		`{"status":{"phase":"Paused","reason":"hostile","state":"red","health":{"status":"hostile"},"aState":"failed","healthy":0}}`,
		`{"kind":"PersistentVolume","apiVersion":"v1","status":{"phase":"Released","reason":"hostile"}}`,
		`{"apiVersion":"gloo.solo.io/v1","status":{"statuses":{"a":{"state":"Pending","reason":"hostile"},"b":[]}}}`,
		`{"spec":{"paused":true},"status":{"observedGeneration":-1,"conditions":[{"type":"Suspended","status":"true","reason":"hostile"}]}}`,
		`{"kind":"Job","apiVersion":"batch/v1","metadata":[],"status":null}`, `{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","endpoints":{"a":1}}`,
	} {
		f.Add([]byte(hostile))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var object, before map[string]any
		if json.Unmarshal(raw, &object) != nil || json.Unmarshal(raw, &before) != nil {
			return
		}
		verdict := health.Evaluate(object, health.Options{Now: now})
		checkRules(t, object, verdict)
		if diff := cmp.Diff(before, object); diff != "" {
			t.Errorf("the object was changed (-before +after):\n%s", diff)
		}
		timeless := health.Evaluate(object, health.Options{})
		if timeless.State == health.Healthy != (verdict.State == health.Healthy) {
			t.Errorf("health depends on the time: %+v, without time %+v", verdict, timeless)
		}
	})
}

// FuzzOfConditions plays with conditions of known and unknown types, of kinds with and without a profile.
func FuzzOfConditions(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		object := conditioned(random)
		status, _ := object["status"].(map[string]any)
		list, _ := status["conditions"].([]any)
		verdict := health.Evaluate(object, health.Options{Now: now})
		checkRules(t, object, verdict)
		explained(t, object, verdict)

		shuffled := slices.Clone(list)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		status["conditions"] = shuffled
		if diff := cmp.Diff(verdict, health.Evaluate(object, health.Options{Now: now})); diff != "" {
			t.Errorf("in another order (-one +other):\n%s", diff)
		}

		added := map[string]any{"type": fmt.Sprintf("Colour%d", random.IntN(9)), "status": anyOf(random, "True", "False", "Unknown"), "reason": anyOf(random, reasonWords...)}
		status["conditions"] = append(slices.Clone(list), added)
		if diff := cmp.Diff(verdict, health.Evaluate(object, health.Options{Now: now})); diff != "" {
			t.Errorf("with the unknown condition %v (-without +with):\n%s", added, diff)
		}

		status["conditions"] = list
		later := health.Evaluate(object, health.Options{Now: now.Add(24 * time.Hour)})
		if verdict.Due.IsZero() != (verdict.State == later.State) {
			t.Errorf("due at %s, and a day later from %s to %s", verdict.Due, verdict.State, later.State)
		}
		meta := object["metadata"].(map[string]any)
		meta["deletionTimestamp"] = now.Format(time.RFC3339)
		if gone := health.Evaluate(object, health.Options{Now: now, User: health.Expressions{Healthy: fixed{true, nil}}}); gone.State != health.Terminating {
			t.Errorf("being deleted: %+v", gone)
		}
	})
}

var (
	conditionTypes = []string{
		"Ready", "Available", "Synced", "Accepted", "Programmed", "Stalled", "Degraded", "Progressing", "Reconciling", "DiskPressure", "DatabaseReady",
		"Complete", "Succeeded", "Failed", "Shiny", "NotReady", "Issuing", "Established", "Healthy", "Installed",
	}
	reasonWords = []string{"", "Creating", "ReconcileError", "SecretNotFound", "AsExpected", "NoErrors", "Paused", "Failed"}
	kinds       = []string{
		"example.com/v1 Thing", "slipway.dev/v1alpha1 WebApp", "cert-manager.io/v1 Certificate", "s3.aws.upbound.io/v1 Bucket", "keda.sh/v1 ScaledObject",
		"gateway.networking.k8s.io/v1 Gateway", "apps/v1 ReplicaSet", "v1 Node", "pkg.crossplane.io/v1 Provider",
	}
)

func anyOf(random *rand.Rand, values ...string) string { return values[random.IntN(len(values))] }

// conditioned makes an object with conditions, at times with several of one type.
func conditioned(random *rand.Rand) map[string]any {
	apiVersion, kind, _ := strings.Cut(anyOf(random, kinds...), " ")
	conditions := []any{}
	for range random.IntN(6) {
		c := map[string]any{"type": anyOf(random, conditionTypes...), "status": anyOf(random, "True", "True", "False", "Unknown"), "reason": anyOf(random, reasonWords...)}
		if random.IntN(2) == 0 {
			c["lastTransitionTime"] = now.Add(-time.Duration(random.IntN(1500)) * time.Second).Format(time.RFC3339)
		}
		if random.IntN(4) == 0 {
			c["observedGeneration"] = int64(1 + random.IntN(2))
		}
		conditions = append(conditions, c)
	}
	status := map[string]any{"conditions": conditions}
	if random.IntN(3) == 0 {
		status["observedGeneration"] = int64(1 + random.IntN(2))
	}
	if random.IntN(3) == 0 {
		status["phase"] = anyOf(random, "Running", "Failed", "Pending", "Blossoming")
	}
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "a", "generation": int64(2)}, "spec": map[string]any{}, "status": status}
}

// explained checks a Healthy verdict against the object: the field that it names says so, and nothing that everybody
// understands says the opposite.
func explained(t *testing.T, object map[string]any, v health.Verdict) {
	t.Helper()
	if v.State != health.Healthy {
		return
	}
	raw, err := json.Marshal(object["status"])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), `"`+v.Value+`"`) {
		t.Errorf("healthy because of %s = %s, which is not in %s", v.Field, v.Value, raw)
	}
	status := object["status"].(map[string]any)
	if observed, ok := status["observedGeneration"].(int64); ok && observed < 2 {
		t.Errorf("healthy, with a status of generation %d: %s", observed, raw)
	}
	for _, item := range status["conditions"].([]any) {
		c := item.(map[string]any)
		if c["type"] == "Ready" && c["status"] == "False" && strings.Contains(v.Field, "conditions") {
			t.Errorf("healthy because of %s, and not Ready: %s", v.Field, raw)
		}
		if bad, _ := c["type"].(string); object["kind"] == "Thing" && c["status"] == "True" && slices.Contains([]string{"Stalled", "Failed", "Degraded", "DiskPressure"}, bad) {
			t.Errorf("healthy because of %s, and %s: %s", v.Field, bad, raw)
		}
	}
}

// fixed is an expression with a fixed result.
type fixed struct {
	holds bool
	err   error
}

func (f fixed) String() string                       { return "object.status.ok" }
func (f fixed) Holds(_ map[string]any) (bool, error) { return f.holds, f.err }

func TestTheUsersExpressionsComeFirst(t *testing.T) {
	object := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "status": map[string]any{"phase": "Failed"}}
	yes, no, broken := fixed{true, nil}, fixed{false, nil}, fixed{false, errors.New("no such key: ok")}
	for _, tc := range []struct {
		name string
		user health.Expressions
		want health.Verdict
	}{
		{"healthy", health.Expressions{Failed: no, Healthy: yes}, health.Verdict{
			State: health.Healthy, Message: "as this expression says: object.status.ok", Field: "object.status.ok", Value: "true", Layer: health.LayerUser,
		}},
		{"failed before progressing before healthy", health.Expressions{Failed: yes, Progressing: yes, Healthy: yes}, health.Verdict{
			State: health.Failed, Reason: "Expression", Message: "as this expression says: object.status.ok", Field: "object.status.ok", Value: "true", Layer: health.LayerUser,
		}},
		{"not healthy yet", health.Expressions{Failed: no, Progressing: no, Healthy: no}, health.Verdict{
			State: health.Progressing, Reason: "Expression", Message: "this expression is not true yet: object.status.ok", Field: "object.status.ok", Value: "false",
			Layer: health.LayerUser,
		}},
		{"an error is never healthy", health.Expressions{Healthy: broken}, health.Verdict{
			State: health.Unknown, Reason: "ExpressionFailed", Message: "the expression cannot be evaluated: no such key: ok", Field: "object.status.ok",
			Layer: health.LayerUser,
		}},
		{"the next layer decides", health.Expressions{Failed: no}, health.Verdict{
			State: health.Failed, Reason: "Failed", Field: ".status.phase", Value: "Failed", Layer: health.LayerGeneric,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, health.Evaluate(object, health.Options{Now: now, User: tc.user})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnExpressionDoesNotMakeAnOldStatusNew(t *testing.T) {
	object := map[string]any{
		"kind": "Thing", "apiVersion": "example.com/v1", "metadata": map[string]any{"generation": int64(2)},
		"status": map[string]any{"observedGeneration": int64(1)},
	}
	if v := health.Evaluate(object, health.Options{User: health.Expressions{Healthy: fixed{true, nil}}}); v.Reason != health.ReasonNotObserved {
		t.Errorf("%+v", v)
	}
}

func TestALongListIsNotCalledHealthy(t *testing.T) {
	var conditions []any
	for i := range 100_000 {
		conditions = append(conditions, map[string]any{"type": fmt.Sprintf("Colour%d", i), "status": "True"})
	}
	conditions[0] = map[string]any{"type": "Ready", "status": "True"}
	object := map[string]any{"kind": "Thing", "apiVersion": "example.com/v1", "status": map[string]any{"conditions": conditions}}
	if v := health.Evaluate(object, health.Options{}); v.State != health.Unknown || v.Reason != health.ReasonMalformed {
		t.Errorf("%+v", v)
	}
}

func TestTwoProfilesForOneKindAreRefused(t *testing.T) {
	twice := health.Profile{Group: "example.com", Kinds: []string{"Thing"}}
	if _, err := health.NewProfiles([]health.Profile{twice, twice}); err == nil || !strings.Contains(err.Error(), "Thing.example.com") {
		t.Errorf("%v", err)
	}
	whole := health.Profile{Group: "example.com"}
	if _, err := health.NewProfiles([]health.Profile{whole, twice, whole}); err == nil {
		t.Error("no error for two profiles of one group")
	}
}

func BenchmarkOf(b *testing.B) {
	all := samples(b)
	for b.Loop() {
		for _, s := range all {
			health.Evaluate(s.Object, health.Options{Now: now})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/object")
}
