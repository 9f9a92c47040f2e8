package rule

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/change"
)

func ordinaryObservation() Observation {
	conditions := `{"type":"Ready","status":"True","reason":"Running","message":"everything is as the spec says"},{"type":"Available","status":"True"}`
	body := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"n","uid":"u","labels":{"app":"shop"}},"spec":{"env":{`
	var env []string
	for i := range 40 {
		env = append(env, fmt.Sprintf(`"VARIABLE_%d":"the value of the variable"`, i))
	}
	body += strings.Join(env, ",") + `}},"status":{"phase":"Running","conditions":[` + conditions + `]}}`
	return Observation{
		Kind: widget, Time: start,
		Records: []change.Record{{Type: change.Updated, UID: "u", ResourceVersion: "2", Time: start}},
		After:   &change.State{Namespace: "n", Name: "a", UID: "u", ResourceVersion: "2", Generation: 2, Body: []byte(body)},
	}
}

// One rule, with reading the object (decode) and without it.
func BenchmarkRule(b *testing.B) {
	r := compile(b, spec{When: "has(object.status.conditions) && object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'False')"})
	o := ordinaryObservation()
	object, err := decode(o.After)
	if err != nil {
		b.Fatal(err)
	}
	for name, decoded := range map[string]map[string]any{"decode": nil, "decoded": object} {
		b.Run(name, func(b *testing.B) {
			e := NewEngine()
			e.SetRules([]*Rule{r})
			o.Object = decoded
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Observe(b.Context(), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// An object costs only the rules about its kind: one of 500.
func BenchmarkFiveHundredRules(b *testing.B) {
	var rules []*Rule
	for i := range 500 {
		m := monitorRule(spec{When: "object.status.phase == 'Bad'", Kinds: []slipwayv1alpha1.MonitoredKind{{Group: "example.com", Kind: fmt.Sprintf("Kind%d", i)}}})
		if i == 0 {
			m.Spec.Kinds[0].Kind = "Widget"
		}
		m.UID = types.UID(fmt.Sprint(i))
		rules = append(rules, compileFull(b, m))
	}
	e := NewEngine()
	e.SetRules(rules)
	o := ordinaryObservation()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Observe(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}
