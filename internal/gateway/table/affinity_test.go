package table_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

func TestAffinityThatCannotBeServedIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		affinity affinity.Policy
		refused  string
	}{
		"a cookie":                  {affinity.Policy{}, ""},
		"a named one":               {affinity.Policy{Name: "lb", Lifetime: time.Hour}, ""},
		"a name that is none":       {affinity.Policy{Name: "a;b"}, "cannot be the name of a cookie"},
		"a name with a line end":    {affinity.Policy{Name: "a\r\nb"}, "cannot be the name of a cookie"},
		"a long name":               {affinity.Policy{Name: strings.Repeat("a", 129)}, "cannot be the name of a cookie"},
		"a negative lifetime":       {affinity.Policy{Lifetime: -time.Second, LifetimeField: "lifetime"}, "lifetime"},
		"a fraction of a second":    {affinity.Policy{Lifetime: time.Millisecond, LifetimeField: "lifetime"}, "lifetime"},
		"a lifetime of years":       {affinity.Policy{Lifetime: 500 * 24 * time.Hour, LifetimeField: "lifetime"}, "lifetime"},
		"none":                      {affinity.Policy{By: affinity.None}, ""},
		"the field of a name":       {affinity.Policy{Name: "a;b", NameField: "sessionPersistence.sessionName"}, "sessionPersistence.sessionName: "},
		"the field of a lifetime":   {affinity.Policy{Lifetime: time.Millisecond, LifetimeField: "sessionPersistence.absoluteTimeout"}, "sessionPersistence.absoluteTimeout: "},
		"a header":                  {affinity.Policy{By: affinity.ByHeader, Name: "x-user"}, ""},
		"no header":                 {affinity.Policy{By: affinity.ByHeader}, "cannot be the name of a header"},
		"the host":                  {affinity.Policy{By: affinity.ByHeader, Name: "host"}, "has a meaning of its own"},
		"all cookies":               {affinity.Policy{By: affinity.ByHeader, Name: "cookie"}, "has a meaning of its own"},
		"a token":                   {affinity.Policy{By: affinity.ByToken, Name: "x-session"}, ""},
		"a token as the length":     {affinity.Policy{By: affinity.ByToken, Name: "content-length"}, "has a meaning of its own"},
		"a token as the type":       {affinity.Policy{By: affinity.ByToken, Name: "content-type"}, "has a meaning of its own"},
		"a token as an address":     {affinity.Policy{By: affinity.ByToken, Name: "location"}, "has a meaning of its own"},
		"a token as a cookie":       {affinity.Policy{By: affinity.ByToken, Name: "set-cookie"}, "has a meaning of its own"},
		"a token for other origins": {affinity.Policy{By: affinity.ByToken, Name: "access-control-allow-origin"}, "has a meaning of its own"},
		"an address":                {affinity.Policy{By: affinity.ByAddress}, ""},
		"something else":            {affinity.Policy{By: 9}, "exactly one of"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := table.Check(&table.Rule{Settings: list.Settings{Affinity: &tc.affinity}, Backends: []model.BackendRef{{Service: "a", Port: 80, Weight: 1}}})
			if (f == nil) != (tc.refused == "") || f != nil && !strings.Contains(f.Message, tc.refused) {
				t.Errorf("got %v, want %q", f, tc.refused)
			}
		})
	}
}

// backendsOf returns which backends clients get.
func backendsOf(t *testing.T, refs ...model.BackendRef) []string {
	t.Helper()
	compiled, _ := table.Compile(table.Input{
		Listeners: []table.Listener{{Name: "all"}},
		Rules:     []table.Rule{{Settings: list.Settings{Affinity: &affinity.Policy{By: affinity.ByAddress}}, Backends: refs}},
		Services: map[model.ServiceName]model.Service{
			{Name: "a"}: {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.1:80"}}}},
			{Name: "b"}: {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.2:80"}}}},
			{Name: "c"}: {Ports: map[int32]model.ServicePort{80: {}}},
		},
	})
	out := make([]string, 10_000)
	for i := range out {
		backend, lack := compiled.Routes[0].PickFor(uint64(i) * 0x9e3779b97f4a7c15)
		if lack != table.LackNothing {
			t.Fatal(lack)
		}
		out[i] = backend.ID
	}
	return out
}

func ref(service string, weight uint32) model.BackendRef {
	return model.BackendRef{Service: service, Port: 80, Weight: weight}
}

// The order of the list means nothing, a backend without weight or endpoints gets nothing, and a canary takes its share and
// moves nobody else.
func TestEqualHashesGetTheSameBackend(t *testing.T) {
	before := backendsOf(t, ref("a", 1), ref("c", 5), ref("b", 0))
	after := backendsOf(t, ref("b", 1), ref("a", 3))
	again := backendsOf(t, ref("a", 3), ref("b", 1))
	moved := 0
	for i := range before {
		if before[i] != "a:80" || after[i] != again[i] {
			t.Fatalf("hash %d: %s alone, then %s or %s", i, before[i], after[i], again[i])
		}
		if after[i] == "b:80" {
			moved++
		}
	}
	if moved < 2300 || moved > 2700 {
		t.Errorf("%d of 10000 moved, want about 2500", moved)
	}
	twice := backendsOf(t, ref("a", 1), ref("a", 1), ref("b", 2))
	count := 0
	for _, id := range twice {
		if id == "a:80" {
			count++
		}
	}
	if count < 4700 || count > 5300 {
		t.Errorf("a backend that is named twice gets %d of 10000, want about 5000", count)
	}
}

func TestTheScopeIsTheFirstBackend(t *testing.T) {
	for _, refs := range [][]model.BackendRef{{ref("a", 1)}, {ref("a", 1), ref("b", 1)}, {ref("a", 0), ref("missing", 1)}} {
		compiled, _ := table.Compile(table.Input{Listeners: []table.Listener{{Name: "all"}}, Rules: []table.Rule{{Settings: list.Settings{Affinity: &affinity.Policy{}}, Backends: refs}}})
		if got := compiled.Routes[0].Affinity.Scope; got != "a:80" {
			t.Errorf("%s: the scope is %q", fmt.Sprint(refs), got)
		}
	}
}
