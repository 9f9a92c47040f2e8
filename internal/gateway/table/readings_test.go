package table_test

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

// guarded generates routes. Some require a key from one of two Secrets.
func (d *draw) guarded() []slipwayv1alpha1.Route {
	out := make([]slipwayv1alpha1.Route, 2+d.below(4))
	for i := range out {
		route := slipwayv1alpha1.Route{
			Path:           pick(d, "/", "/", "/private", "/api/v1", "/api/v1/admin", "/x", "/private/x", "/pub"),
			PathType:       pick(d, slipwayv1alpha1.PathPrefix, slipwayv1alpha1.PathPrefix, slipwayv1alpha1.PathPrefix, slipwayv1alpha1.PathExact),
			BackendService: &slipwayv1alpha1.BackendService{Name: "users", Port: 8080},
		}
		if d.below(6) == 0 {
			route.Path, route.PathType = pick(d, "/private.*", "/api/.+/admin.*", "/x/.*", "/api/v[0-9]+/admin(/.*)?", "/(x|pub)(/v[0-9])?"), slipwayv1alpha1.PathRegularExpression
		}
		if secret := pick(d, "", "", "a", "b"); secret != "" {
			route.Auth = &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: secret}}}
		}
		out[i] = route
	}
	return out
}

// target generates a path from dangerous parts.
func (d *draw) target() string {
	target := &strings.Builder{}
	for range 1 + d.below(5) {
		target.WriteString(pick(d, "/", "/", "/", "/", "//", "", "%2F", `\`, "%5C"))
		target.WriteString(pick(d,
			"private", "private", "api", "v1", "admin", "pub", "x", "%70rivate", "priv%61te", "PRIVATE", "v.1", "a..b", "%20", "%C3%A4", `"`, "{", "ö", "",
			"..", "..", ".", "%2e%2e", "%2E", "..%2F", "..%5c", "..;", ".;", "...", ";", ";v=1", ";..", "%3B", "%3b..", "%2F", "%2f", "%5C", `\`,
			"%25", "%252F", "%252e%252e", "%255C", "%253B", "%2500", "%c0%af", "%c0%ae%c0%ae", "%e0%80%af", "%c1%9c", "%3F", "%23", "%0a", "%00", "%25u002f", "%25u002e%25u002e",
			"/;%2Fx", "/;%5Cx", `/;\x`, "..;/", "/..%2F..", "evil.test/", "%", "%zz"))
	}
	if d.below(8) == 0 {
		target.WriteString(pick(d, "%0a", "%0A", "%0d", "%0D%0A", "%0a%0a", "%250a", "%25u000a", "%C2%85", "%85", "%E2%80%A8", "%E2%80%A9", "%c0%8a", "%7f", "%09", "%1f", "%0a;", ";%0a", "%0a/x", "%0a/private/x", "%0a;/.."))
	}
	if text := target.String(); strings.HasPrefix(text, "/") {
		return text
	}
	return "/" + target.String()
}

// keyOf returns the name of the Secret with the keys of a route, or "".
func keyOf(route *slipwayv1alpha1.Route) string {
	if route.Auth == nil {
		return ""
	}
	return route.Auth.APIKey.SecretRef.Name
}

// fate is the result for a target.
type fate int

const (
	refused fate = iota
	unchanged
	resolved // the dots were resolved
)

// checkReadings checks that a target that gets through reaches, in no model, a route that
// requires another key, nor a path without a route.
func checkReadings(t *testing.T, in []slipwayv1alpha1.Route, compiled *table.Table, target string) fate {
	t.Helper()
	path, err := table.ParsePath(target)
	if err != nil {
		return refused
	}
	r := &table.Request{Method: "GET", Host: "a.test", Path: path.Match, Header: http.Header{}}
	route := compiled.Match(r)
	if route == nil || !compiled.ReadAlike(r, path, route) {
		return refused
	}
	asked := keyOf(&in[route.Index])
	known := map[string]bool{} // models agree about most targets
	for _, sent := range slices.Compact([]string{target, path.Forward}) {
		for _, model := range models {
			read, ok := model.read(sent)
			if !ok || known[read] {
				continue
			}
			known[read] = true
			for _, seen := range wholes(in, model.name, read) {
				at := reference(seen.routes, &table.Request{Method: "GET", Host: "a.test", Path: seen.text, Header: http.Header{}})
				if at < 0 && strings.Contains(seen.text, "//") {
					continue // no route matches an empty segment
				}
				if at < 0 || (keyOf(&in[at]) != "" && keyOf(&in[at]) != asked) {
					written, _ := yaml.Marshal(in)
					t.Fatalf("%q goes to route %d, as %q; %s reads %q and would have it at route %d of\n%s", target, route.Index, path.Forward, seen.model, seen.text, at, written)
				}
			}
		}
	}
	if path.Forward == target {
		return unchanged
	}
	return resolved
}

// compileGuarded compiles routes whose Secrets hold one key each.
func compileGuarded(t *testing.T, in []slipwayv1alpha1.Route) *table.Table {
	t.Helper()
	return compile(t, apiroutes.Input{Routes: in, Services: services(), Secrets: map[string]map[string][]byte{
		"a": {"somebody": []byte("sha256:" + strings.Repeat("a", 64))},
		"b": {"somebody": []byte("sha256:" + strings.Repeat("b", 64))},
	}})
}

func TestNoReadingOfATargetGetsAroundAKey(t *testing.T) {
	const shards, targets = 4, 400
	tables, random := property.Inputs(t, 125, 125)
	var mu sync.Mutex
	fates := map[fate]int{}
	t.Run("shards", func(t *testing.T) {
		for shard := range uint64(shards) {
			t.Run(strconv.FormatUint(shard, 10), func(t *testing.T) {
				t.Parallel()
				random := random(shard)
				for range tables {
					in := random64(random).guarded()
					compiled := compileGuarded(t, in)
					for range targets {
						fate := checkReadings(t, in, compiled, random64(random).target())
						mu.Lock()
						fates[fate]++
						mu.Unlock()
					}
				}
			})
		}
	})
	all := shards * tables * targets
	for fate, enough := range map[fate]int{refused: all / 10, unchanged: all / 10, resolved: all / 80} {
		if fates[fate] < enough {
			t.Errorf("of %d targets %v have fate %d: this shows too little", all, fates[fate], fate)
		}
	}
	t.Logf("refused, unchanged, resolved: %v", fates)
}

// random64 returns 64 random choices.
func random64(random *rand.Rand) *draw {
	choices := make(draw, 64)
	for i := range choices {
		choices[i] = byte(random.Uint32())
	}
	return &choices
}

func FuzzReadings(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), "/;%2Fx/private/x")
	f.Add([]byte{2, 0, 0, 0, 0}, "/api/v1;%5Cx/admin/x")
	f.Fuzz(func(t *testing.T, choices []byte, target string) {
		d := draw(choices)
		in := d.guarded()
		compiled := compileGuarded(t, in)
		checkReadings(t, in, compiled, target)
		checkReadings(t, in, compiled, d.target())
	})
}
