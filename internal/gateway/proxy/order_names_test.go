package proxy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
	addresssetting "github.com/slipway-dev/slipway/internal/gateway/feature/address"
	affinitysetting "github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	affinityserve "github.com/slipway-dev/slipway/internal/gateway/feature/affinity/serve"
	authsetting "github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	cachesetting "github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	corssetting "github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	maintenancesetting "github.com/slipway-dev/slipway/internal/gateway/feature/maintenance"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// boundTo returns the names of the steps that a route has, by list: the room of a feature, and the method.
func boundTo(route *table.Route) map[string]string {
	h := New(Options{})
	s := &state{Config: Config{Table: &table.Table{Routes: []*table.Route{route}, Backends: []*model.Backend{{}}}}, services: make([]*upstream.Service, 1)}
	s.bound.auth, s.bound.cache = h.features.auth.Table(), h.features.cache.Table(s.Table.Backends)
	s.bound.affinity = affinityserve.New(nil, []affinityserve.Route{{Policy: &affinitysetting.Policy{}}})
	s.everywhere = everywhere(&s.bound)
	bound := reflect.ValueOf(h.features.stepsOf(s, route))
	lists := map[string]string{}
	for i := range bound.NumField() {
		var names []string
		list := bound.Field(i)
		for n := 0; list.Kind() == reflect.Slice && n < list.Len(); n++ {
			name := runtime.FuncForPC(list.Index(n).Pointer()).Name()
			_, name, _ = strings.Cut(name, "/feature/")
			name = strings.TrimSuffix(strings.Replace(name, "/serve", "", 1), "-fm")
			names = append(names, strings.NewReplacer(".(*Step)", "", ".Step", "").Replace(name))
		}
		if len(names) > 0 {
			lists[bound.Type().Field(i).Name] = strings.Join(names, " ")
		}
	}
	return lists
}

// askingForAll returns a route that asks for every feature.
func askingForAll() *table.Route {
	return &table.Route{
		Compiled: list.Compiled{
			ClientAddresses: &addresssetting.Addresses{}, CORS: &corssetting.Policy{}, Auth: &authsetting.Policy{}, RateLimit: &ratelimit.Limit{Per: ratelimit.PerKey},
			MaxBodyBytes: 1, Affinity: &affinitysetting.Policy{}, Cache: &cachesetting.Policy{}, Maintenance: &maintenancesetting.Policy{}, Compression: &compress.Policy{},
		},
		Mirrors: []table.Mirror{{Backend: &model.Backend{}}},
	}
}

// What is bound, and in which order: constraints 1 to 7 for a route that asks for everything, and 8 for one that asks for nothing.
func TestFeaturesAreBoundInOrder(t *testing.T) {
	everything := askingForAll()
	bound := boundTo(everything)
	for list, names := range map[string]string{
		"Admit":   "address.Admit cors.Admit maintenance.Admit auth.Admit ratelimit.Admit bodybound.Admit",
		"Send":    "cache.LookUp mirror.Send cache.Ask",
		"Receive": "cache.Guard.Receive affinity.Keep cache.Confirm cache.Record",
		"Failed":  "cache.Guard.Failed affinity.Failed",
		"Filter":  "cors.Filter",
		"Head":    "cache.Head",
		"Tell":    "affinity.Tell auth.Guard.Tell",
		"Hint":    "auth.Guard.Hint",
		"Body":    "cache.Body compression.Body",
		"End":     "cache.End compression.End",
	} {
		want(t, list, bound[list], names)
		delete(bound, list)
	}
	want(t, "other lists", len(bound), 0)
	everything.RateLimit.Per = ratelimit.PerClientAddress
	want(t, "a limit for addresses", boundTo(everything)["Admit"], "address.Admit cors.Admit maintenance.Admit ratelimit.Admit auth.Admit bodybound.Admit")
	everything.Redirect = &table.CompiledRedirect{}
	want(t, "a redirect", boundTo(everything)["Admit"], "address.Admit cors.Admit maintenance.Admit ratelimit.Admit auth.Admit")

	bare := boundTo(&table.Route{})
	for list, names := range map[string]string{
		"Receive": "cache.Guard.Receive", "Failed": "cache.Guard.Failed", "Tell": "auth.Guard.Tell", "Hint": "auth.Guard.Hint",
	} {
		want(t, "everywhere, "+list, bare[list], names)
		delete(bare, list)
	}
	want(t, "other lists everywhere", len(bare), 0)
}

// What a feature can do in a step is bound, and what a route can ask for is looked at. What belongs to no feature is listed.
func TestEveryFeatureIsInTheOrder(t *testing.T) {
	core := strings.Fields("Name Index Place Transport Unavailable Backends Redirect Direct StrictShares Rewrite RequestHeaders ResponseHeaders Timeouts Retries BackendSettings Mirrors")
	named, kinds := map[string]bool{}, map[string]bool{}
	for _, file := range parseAll(t, "order.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				named[selector.Sel.Name] = true
			}
			return true
		})
	}
	for _, file := range parseAll(t, "../exchange/steps.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "Steps" {
				for _, list := range spec.Type.(*ast.StructType).Fields.List {
					kinds[strings.ReplaceAll(strings.ReplaceAll(signature(list.Type), "*Exchange", "*exchange.Exchange"), " BodyWriter", " exchange.BodyWriter")] = true
				}
			}
			return true
		})
	}
	bound := map[string]bool{}
	for _, names := range boundTo(askingForAll()) {
		for name := range strings.FieldsSeq(names) {
			bound[name] = true
		}
	}
	found := 0
	for path, file := range parseAll(t, "../feature/*/serve/*.go") {
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() || !kinds[signature(f.Type)] {
				continue
			}
			found++
			name := strings.Split(path, "/")[2] + "." + strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
			if name = strings.Replace(name, ".Step.", ".", 1); !bound[name] && name != "affinity.Choose" {
				t.Errorf("%s is a step, and order.go does not bind it", name)
			}
		}
	}
	if found < len(bound) {
		t.Errorf("%d steps are declared, and %d are bound", found, len(bound))
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[table.Route]()) {
		if field.IsExported() && !field.Anonymous && named[field.Name] == slices.Contains(core, field.Name) && field.Name != "Redirect" && field.Name != "Direct" && field.Name != "Name" && field.Name != "Place" {
			t.Errorf("order.go does not look at %s of a route, or it belongs to no feature", field.Name)
		}
	}
}

// parseAll parses the files of a pattern, without tests.
func parseAll(t *testing.T, pattern string) map[string]*ast.File {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// signature returns the types of a function, without names, or of the functions of a list.
func signature(of ast.Expr) string {
	if list, ok := of.(*ast.ArrayType); ok {
		of = list.Elt
	}
	function, ok := of.(*ast.FuncType)
	if !ok {
		return ""
	}
	var all []string
	for _, fields := range []*ast.FieldList{function.Params, function.Results} {
		for i := 0; fields != nil && i < len(fields.List); i++ {
			for range max(1, len(fields.List[i].Names)) {
				all = append(all, types.ExprString(fields.List[i].Type))
			}
		}
		all = append(all, "->")
	}
	return strings.Join(all, " ")
}
