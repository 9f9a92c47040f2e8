package change_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// typical is an object of 2 KB as controllers have them: a spec, a status with conditions, labels, annotations and two managers.
func typical(version, image, ready, beat string) string {
	return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"example.com/owner":"team-shop","example.com/revision":"17"},"creationTimestamp":"2026-10-01T08:00:00Z","finalizers":["example.com/cleanup"],"generation":12,"labels":{"app.kubernetes.io/instance":"checkout","app.kubernetes.io/managed-by":"slipway","app.kubernetes.io/name":"checkout","tier":"backend"},"managedFields":[` +
		`{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:tier":{}}},"f:spec":{"f:image":{},"f:replicas":{},"f:env":{"k:{\"name\":\"LOG\"}":{".":{},"f:name":{},"f:value":{}}},"f:ports":{}}},"manager":"argocd","operation":"Apply","time":"2026-11-01T08:00:00Z"},` +
		`{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:lastTransitionTime":{}}},"f:observedGeneration":{}}},"manager":"widget-operator","operation":"Update","subresource":"status","time":"` + beat + `"}],` +
		`"name":"checkout","namespace":"shop","resourceVersion":"` + version + `","uid":"0a1b2c3d-0000-4000-8000-000000000001"},` +
		`"spec":{"env":[{"name":"LOG","value":"info"},{"name":"DB_HOST","value":"db.shop.svc"},{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"key":"password","name":"db"}}}],"image":"` + image + `","ports":[{"name":"http","port":8080,"protocol":"TCP"},{"name":"metrics","port":9090,"protocol":"TCP"}],"replicas":3,"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"strategy":{"maxSurge":"25%","maxUnavailable":0},"tokenSecretRef":{"name":"checkout-token"}},` +
		`"status":{"conditions":[{"lastTransitionTime":"` + beat + `","message":"all replicas are ready","observedGeneration":12,"reason":"Available","status":"` + ready + `","type":"Ready"},{"lastTransitionTime":"` + beat + `","message":"in sync with the specification","observedGeneration":12,"reason":"Synced","status":"True","type":"Synced"}],"observedGeneration":12,"readyReplicas":3,"url":"https://checkout.shop.example.com"}}`
}

func benchmark(b *testing.B, f func(before *change.State, policy *change.Policy, raw []byte)) {
	b.Helper()
	policy := newPolicy(b, change.Options{})
	before := reduceWith(b, typical("100", "ghcr.io/shop/checkout:1.17.0", "True", "2026-11-20T10:00:00Z"), nil, policy)
	raw := []byte(typical("101", "ghcr.io/shop/checkout:1.18.0", "False", "2026-11-20T10:01:00Z"))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		f(&before, policy, raw)
	}
}

func BenchmarkReduce(b *testing.B) {
	benchmark(b, func(_ *change.State, policy *change.Policy, raw []byte) {
		if _, err := change.Reduce(raw, widgets, nil, policy); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkReduceAndCompare(b *testing.B) {
	benchmark(b, func(before *change.State, policy *change.Policy, raw []byte) {
		after, _ := change.Reduce(raw, widgets, nil, policy)
		if fields, _, err := change.Compare(before, &after, nil); err != nil || len(fields) != 2 {
			b.Fatal(err, fields)
		}
	})
}

func BenchmarkReduceAndRecords(b *testing.B) {
	benchmark(b, func(before *change.State, policy *change.Policy, raw []byte) {
		after, _ := change.Reduce(raw, widgets, nil, policy)
		if records, _ := change.Records(before, &after, change.Context{Kind: widgets}); len(records) != 1 {
			b.Fatal(records)
		}
	})
}

func BenchmarkReduceSecrets(b *testing.B) {
	policy := newPolicy(b, change.Options{})
	var members []string
	for i := range 20 {
		members = append(members, fmt.Sprintf(`"password%d":"a secret of some length"`, i))
	}
	raw := []byte(widget(`"spec":{` + strings.Join(members, ",") + `}`))
	b.ReportAllocs()
	for b.Loop() {
		if state, err := change.Reduce(raw, widgets, nil, policy); err != nil || state.Redacted != 20 {
			b.Fatal(err)
		}
	}
}
