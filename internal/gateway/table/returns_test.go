package table_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

var (
	loginHosts   = []string{"", "*.test", "*.a.test", "a.test", "x.a.test", "other"}
	loginPaths   = []string{"/", "/oauth2", "/oauth2/callback", "/oauth2/logout", "/shop"}
	askedHosts   = []string{"", "a.test", "x.a.test", "y.a.test", "b.test", "c.b.test", "other", "another"}
	noReturnText = "requests for"
)

// someLogins returns rules of which some log browsers in.
func someLogins(random *rand.Rand) []table.Rule {
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	rules := make([]table.Rule, 1+random.IntN(6))
	for i := range rules {
		rules[i] = table.Rule{
			Name: "rule", Index: i, Host: pick(loginHosts), Path: pick(loginPaths), PathType: table.PathPrefix, Direct: &model.DirectResponse{StatusCode: 200},
		}
		if random.IntN(3) == 0 {
			rules[i].PathType = table.PathExact
		}
		if random.IntN(5) == 0 {
			rules[i].Headers = []table.ValueMatch{{Name: "X-Canary", Value: new("yes")}}
		}
		scope := random.IntN(4)
		if scope > 1 {
			continue
		}
		rules[i].Auth = &auth.Policy{OIDC: &auth.OIDC{
			Scope: []string{"one", "two"}[scope], Issuer: "https://id.test", ClientID: "shop", Secrets: []auth.Secret{"0123456789abcdef"},
			RedirectPath: "/oauth2/callback", Length: time.Hour,
		}}
		if random.IntN(3) == 0 {
			rules[i].Auth.OIDC.LogoutPath = "/oauth2/logout"
		}
	}
	return rules
}

// Whoever is sent to a provider can come back, to whatever host. Where that cannot be, it is told.
func TestWhoIsSentToAProviderCanComeBack(t *testing.T) {
	refused, narrower := 0, 0
	for seed := range uint64(3000) {
		in := table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: someLogins(rand.New(rand.NewPCG(seed, 1)))}
		compiled, problems := table.Compile(in)
		told := table.NoReturns(in)
		var want []model.Problem
		for _, one := range told {
			want = append(want, one.Problem)
		}
		got := slices.DeleteFunc(problems, func(p model.Problem) bool { return !strings.Contains(p.Message, noReturnText) })
		byRule := cmpopts.SortSlices(func(a, b model.Problem) bool { return a.Index < b.Index })
		if diff := cmp.Diff(want, got, byRule, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: without the rules beside them, other rules are told: %s", seed, diff)
		}
		for _, host := range askedHosts {
			for _, path := range append(loginPaths, "/page") {
				r := &table.Request{Method: http.MethodGet, Host: host, Path: path, Header: http.Header{}}
				route := compiled.Match(r)
				if route == nil || route.Unavailable != nil || route.Auth == nil {
					continue
				}
				of := slices.IndexFunc(told, func(one table.NoReturn) bool { return one.Index == route.Index })
				if of >= 0 && told[of].Host == "" {
					t.Fatalf("seed %d: a rule is served at which log-ins cannot end: %s", seed, told[of].Message)
				}
				if !compiled.Returns(r, route) && of < 0 {
					t.Fatalf("seed %d: nobody is told that log-ins begun at http://%s%s cannot end: %+v", seed, host, path, in.Rules)
				}
			}
		}
		for _, one := range told {
			if one.Host == "" {
				refused++
				continue
			}
			narrower++
			own := in.Rules[one.Index].Path
			for _, path := range []string{own, strings.TrimSuffix(own, "/") + "/page"} {
				r := &table.Request{Method: http.MethodGet, Host: one.Host, Path: path, Header: http.Header{}}
				if route := compiled.Match(r); route != nil && route.Index == one.Index && compiled.Returns(r, route) {
					t.Fatalf("seed %d: log-ins can end at %s: %s", seed, one.Host, one.Message)
				}
			}
		}
	}
	if refused < 100 || narrower < 100 {
		t.Errorf("%d rules were refused, and %d served some hosts only", refused, narrower)
	}
}

// Somebody may have a log-in for many hosts and many rules for it, and others many hosts with the path of its end.
func TestManyLogInsAreJudgedSoon(t *testing.T) {
	login := &auth.Policy{OIDC: &auth.OIDC{
		Scope: "one", Issuer: "https://id.test", ClientID: "shop", Secrets: []auth.Secret{"0123456789abcdef"}, RedirectPath: "/oauth2/callback", Length: time.Hour,
	}}
	var rules []table.Rule
	add := func(host, path string, auth *auth.Policy, headers ...table.ValueMatch) {
		rules = append(rules, table.Rule{Name: "many", Index: len(rules), Host: host, Path: path, Headers: headers, Settings: list.Settings{Auth: auth}, Direct: answer})
	}
	for n := range 20 {
		host := fmt.Sprintf("*.a%d.test", n)
		add(host, "/", login)
		for i := range 60 {
			add(host, fmt.Sprintf("/shop/%d", i), login)
			add(host, "/", login, table.ValueMatch{Name: "X-Version", Value: new(fmt.Sprint(i))})
		}
		for i := range 400 {
			add(fmt.Sprintf("h%d.a%d.test", i, n), "/oauth2/callback", nil)
			add(fmt.Sprintf("h%d.a%d.test", i, n), "/shop", nil)
		}
	}
	took, _ := costOf(func() any {
		return table.NoReturns(table.Input{Listeners: []table.Listener{{Name: "web"}}, Rules: rules})
	})
	t.Logf("%d rules: %v", len(rules), took)
	if took > time.Minute { // a hang: 6.5 s were seen on a busy machine
		t.Errorf("it took %v", took)
	}
}
