package table_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// answer is the action of rules that are only matched.
var answer = &model.DirectResponse{StatusCode: 200}

// ruleOf makes a rule of a route without policies.
func ruleOf(route *slipwayv1alpha1.Route, index int) table.Rule {
	rule := table.Rule{
		Index: index, Host: string(route.Host), PathType: table.PathType(route.PathType), Path: route.Path, Direct: answer,
	}
	for _, method := range route.Methods {
		rule.Methods = append(rule.Methods, string(method))
	}
	for _, h := range route.Headers {
		rule.Headers = append(rule.Headers, table.ValueMatch{Name: string(h.Name), Type: table.MatchType(h.Type), Value: h.Value})
	}
	for _, q := range route.QueryParams {
		rule.Query = append(rule.Query, table.ValueMatch{Name: q.Name, Type: table.MatchType(q.Type), Value: q.Value})
	}
	return rule
}

// referenceListener finds the listener of a request as the documentation describes it. It
// returns its index, or -1.
func referenceListener(listeners []table.Listener, port int32, secure bool, host string) int {
	best, bestRank := -1, []int{}
	for i, l := range listeners {
		if l.Port != 0 && (l.Port != port || l.Secure != secure) {
			continue
		}
		rank := []int{0, 0, 0}
		switch parent, wildcard := strings.CutPrefix(l.Hostname, "*"); {
		case wildcard && strings.HasSuffix(host, parent):
			rank[0], rank[1] = 1, len(parent)
		case !wildcard && l.Hostname == host && host != "":
			rank[0] = 2
		case l.Hostname != "":
			continue
		}
		if l.Port != 0 {
			rank[2] = 1
		}
		if best < 0 || slices.Compare(rank, bestRank) > 0 {
			best, bestRank = i, rank
		}
	}
	return best
}

func (d *draw) listeners() []table.Listener {
	out := make([]table.Listener, d.below(7))
	for i := range out {
		out[i] = table.Listener{
			Port: pick[int32](d, 0, 80, 80, 443, 443), Secure: d.below(2) == 1,
			Hostname: pick(d, "", "", "a.test", "b.a.test", "*.test", "*.a.test", "*.b.a.test"),
		}
	}
	return out
}

// checkListeners compares a table with the reference, for one set of listeners and rules and
// some requests. It returns how many requests a route answers, and how many a listener
// keeps from a route of another listener.
func checkListeners(t *testing.T, d *draw) (answered, kept int) {
	t.Helper()
	in := table.Input{Listeners: d.listeners()}
	routes := d.routes()
	for i := range routes {
		rule := ruleOf(&routes[i], i)
		for n := range in.Listeners {
			if d.below(2) == 0 {
				rule.Listeners = append(rule.Listeners, n)
			}
		}
		in.Rules = append(in.Rules, rule) // without any draw: all
	}
	compiled, _ := table.Compile(in)
	for range 8 {
		r := d.request()
		host, err := table.ParseHost(r.Host)
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Port, r.Secure = host.Name, pick[int32](d, 80, 443, 8080, 0), d.below(2) == 1
		at := referenceListener(in.Listeners, r.Port, r.Secure, r.Host)
		var own []slipwayv1alpha1.Route
		var indexes []int
		for i, rule := range in.Rules {
			if at >= 0 && (rule.Listeners == nil || slices.Contains(rule.Listeners, at)) {
				own, indexes = append(own, routes[i]), append(indexes, i)
			}
		}
		want, got := -1, -1
		if found := reference(own, r); found >= 0 {
			want = indexes[found]
			answered++
		} else if reference(routes, r) >= 0 {
			kept++
		}
		if route := compiled.Match(r); route != nil {
			got = route.Index
		}
		if got != want {
			written, _ := yaml.Marshal(in)
			t.Fatalf("rule %d answers, want %d of listener %d\nrequest %+v\n%s", got, want, at, r, written)
		}
	}
	return answered, kept
}

func TestListenersAgreeWithTheReference(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const tables, enough = 3000, 1500
	answered, kept := 0, 0
	for range tables {
		choices := make(draw, 800)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		a, k := checkListeners(t, &choices)
		answered, kept = answered+a, kept+k
	}
	if answered < enough || kept < enough {
		t.Errorf("only %d requests were answered, and %d kept from other listeners: this shows too little", answered, kept)
	}
}

func FuzzListenersAgreeWithTheReference(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, choices []byte) {
		d := draw(choices)
		checkListeners(t, &d)
	})
}

func TestTheListenerThatFitsBestGetsTheRequest(t *testing.T) {
	in := table.Input{Listeners: []table.Listener{
		{Name: "any", Port: 80},
		{Name: "below", Port: 80, Hostname: "*.example.com"},
		{Name: "exact", Port: 80, Hostname: "a.example.com"},
		{Name: "secure", Port: 443, Secure: true},
		{Name: "everywhere", Hostname: "both.example.com"},
	}}
	for i, l := range in.Listeners {
		in.Rules = append(in.Rules, table.Rule{Name: l.Name, Index: i, Listeners: []int{i}, Path: "/" + l.Name, Direct: answer})
	}
	in.Rules = append(in.Rules, table.Rule{Name: "shared", Index: len(in.Listeners), Path: "/shared", Direct: answer})
	compiled, problems := table.Compile(in)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, tc := range map[string]struct {
		port   int32
		secure bool
		host   string
		want   string
	}{
		"no name fits":                       {80, false, "example.org", "any"},
		"below the wildcard":                 {80, false, "x.y.example.com", "below"},
		"the name of the wildcard":           {80, false, "example.com", "any"},
		"the name itself":                    {80, false, "a.example.com", "exact"},
		"without a host":                     {80, false, "", "any"},
		"another port":                       {443, true, "a.example.com", "secure"},
		"a plain connection to a TLS port":   {443, false, "a.example.com", ""},
		"a TLS connection to a plain port":   {80, true, "a.example.com", ""},
		"a port of none":                     {8080, false, "a.example.com", ""},
		"of every port":                      {80, false, "both.example.com", "everywhere"},
		"of every port, with TLS":            {443, true, "both.example.com", "everywhere"},
		"of every port, of no other's ports": {8080, false, "both.example.com", "everywhere"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range append(in.Listeners, table.Listener{Name: "shared"}) {
				route := compiled.Match(&table.Request{Method: "GET", Port: tc.port, Secure: tc.secure, Host: tc.host, Path: "/" + l.Name})
				if route != nil {
					got = append(got, route.Name)
				}
			}
			want := []string{tc.want, "shared"}
			if tc.want == "" {
				want = nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rules that answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABadListenerGetsNoRequests(t *testing.T) {
	compiled, problems := table.Compile(table.Input{
		Listeners: []table.Listener{
			{Name: "good", Port: 80}, {Name: "port", Port: 65536}, {Name: "host", Port: 80, Hostname: "A.example.com"}, {Name: "again", Port: 80},
		},
		Rules: []table.Rule{
			{Name: "good", Listeners: []int{0}, Path: "/good", Direct: answer},
			{Name: "again", Index: 1, Listeners: []int{3}, Direct: answer},
			{Name: "nowhere", Index: 2, Listeners: []int{4}, Direct: answer},
			{Name: "none", Index: 3, Listeners: []int{}, Direct: answer},
		},
	})
	want := []model.Problem{
		{Index: -1, List: "listeners", Route: "port", Reason: "Invalid", Message: "port: 65536 is not a port"},
		{Index: -1, List: "listeners", Route: "host", Reason: "Invalid", Message: `hostname: "A.example.com" is neither a lower case DNS name nor one after '*.'`},
		{Index: -1, List: "listeners", Route: "again", Reason: "Invalid", Message: "there is an earlier listener with this port and hostname"},
		{Index: 2, Route: "nowhere", Reason: "InvalidRoute", Message: "listeners: there is no listener 4"},
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{"/good": "good", "/": ""} {
		if got := nameOf(compiled.Match(&table.Request{Method: "GET", Port: 80, Host: "a.example.com", Path: path})); got != want {
			t.Errorf("%s: %q answers, want %q", path, got, want)
		}
	}
}

// A path that backends read differently is compared with the routes of its own listener. A
// rule of another listener neither protects nor opens it.
func TestReadingsStayWithinTheListener(t *testing.T) {
	auth := &auth.Policy{ID: "a", APIKey: &auth.APIKey{Header: "X-Key"}}
	to := []model.BackendRef{{Service: "users", Port: 8080, Weight: 1}}
	in := table.Input{
		Listeners: []table.Listener{{Port: 80, Hostname: "a.test"}, {Port: 80, Hostname: "b.test"}},
		Services:  map[model.ServiceName]model.Service{{Name: "users"}: services()["users"]},
		Rules: []table.Rule{
			{Name: "open", Path: "/", Backends: to},
			{Name: "closed", Index: 1, Listeners: []int{0}, Path: "/private", Settings: list.Settings{Auth: auth}, Backends: to},
		},
	}
	compiled, problems := table.Compile(in)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	path, err := table.ParsePath("/x/..%2Fprivate")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"a.test": false, "b.test": true} {
		r := &table.Request{Method: "GET", Port: 80, Host: host, Path: path.Match}
		found := compiled.Match(r)
		if got := compiled.ReadAlike(r, path, found); nameOf(found) != "open" || got != want {
			t.Errorf("%s: %q answers and goes on: %v, want %v", host, nameOf(found), got, want)
		}
	}
}
