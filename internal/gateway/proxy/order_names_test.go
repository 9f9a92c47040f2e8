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
	authsetting "github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	cachesetting "github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	corssetting "github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	maintenancesetting "github.com/slipway-dev/slipway/internal/gateway/feature/maintenance"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// boundTo returns the names of the steps that a route has, by list.
func boundTo(route *table.Route) map[string]string {
	h := New(Options{})
	bound := reflect.ValueOf(h.stepsOf(&state{affinities: affinities{routes: []*affinity{{}}}}, route))
	lists := map[string]string{}
	for i := range bound.NumField() {
		var names []string
		list := bound.Field(i)
		for n := 0; list.Kind() == reflect.Slice && n < list.Len(); n++ {
			name := runtime.FuncForPC(list.Index(n).Pointer()).Name()
			name = strings.TrimSuffix(name[strings.LastIndex(name, "/proxy.")+len("/proxy."):], "-fm")
			names = append(names, strings.NewReplacer("(*", "", ")", "").Replace(name))
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
		Compiled: list.Compiled{ClientAddresses: &addresssetting.Addresses{}, CORS: &corssetting.Policy{}, Auth: &authsetting.Policy{}, RateLimit: &ratelimit.Limit{Per: ratelimit.PerKey}, MaxBodyBytes: 1, Affinity: &affinitysetting.Policy{}, Cache: &cachesetting.Policy{}, Maintenance: &maintenancesetting.Policy{}, Compression: &compress.Policy{}}, Mirrors: make([]table.Mirror, 1),
	}
}

// What is bound, and in which order: constraints 1 to 7 for a route that asks for everything, and 8 for one that asks for nothing.
func TestFeaturesAreBoundInOrder(t *testing.T) {
	everything := askingForAll()
	bound := boundTo(everything)
	for list, names := range map[string]string{
		"admit":   "address.admit cors.admit maintenance.admit auth.admit rateLimit.admit bodyBound.admit",
		"send":    "cached.lookUp mirror.send cached.ask",
		"receive": "exchange.forgetAnswered affinity.keep cached.confirm cached.record",
		"failed":  "exchange.forgetFailed affinity.failed",
		"filter":  "cors.filter",
		"head":    "cached.head",
		"tell":    "affinity.tell exchange.tellCookies",
		"hint":    "exchange.dropForged",
		"body":    "cached.body compression.body",
		"end":     "cached.end compression.end",
	} {
		want(t, list, bound[list], names)
		delete(bound, list)
	}
	want(t, "other lists", len(bound), 0)
	everything.RateLimit.Per = ratelimit.PerClientAddress
	want(t, "a limit for addresses", boundTo(everything)["admit"], "address.admit cors.admit maintenance.admit rateLimit.admit auth.admit bodyBound.admit")
	everything.Redirect = &table.CompiledRedirect{}
	want(t, "a redirect", boundTo(everything)["admit"], "address.admit cors.admit maintenance.admit rateLimit.admit auth.admit")

	bare := boundTo(&table.Route{})
	for list, names := range map[string]string{
		"receive": "exchange.forgetAnswered", "failed": "exchange.forgetFailed", "tell": "exchange.tellCookies", "hint": "exchange.dropForged",
	} {
		want(t, "everywhere, "+list, bare[list], names)
		delete(bare, list)
	}
	want(t, "other lists everywhere", len(bare), 0)
}

// Each setting alone makes a route have steps of its own.
func TestEachStepCounts(t *testing.T) {
	of := reflect.TypeFor[steps]()
	for i := range of.NumField() {
		if of.Field(i).Type.Kind() != reflect.Slice {
			continue
		}
		one := reflect.New(of)
		field := reflect.NewAt(of.Field(i).Type, one.Elem().Field(i).Addr().UnsafePointer()).Elem()
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		want(t, of.Field(i).Name, one.Interface().(*steps).count(), 1)
	}
}

// What a feature can do in a step is bound, and what a route can ask for is looked at. What belongs to no feature is listed.
func TestEveryFeatureIsInTheOrder(t *testing.T) {
	core := strings.Fields("Name Index Place Transport Unavailable Backends Redirect Direct StrictShares Rewrite RequestHeaders ResponseHeaders Timeouts Retries BackendSettings")
	paths, err := filepath.Glob("*.go")
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
	named, kinds := map[string]bool{}, map[string]bool{}
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && name == "order.go" {
				named[selector.Sel.Name] = true
			}
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "steps" {
				for _, list := range spec.Type.(*ast.StructType).Fields.List {
					kinds[signature(list.Type)] = true
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
	for _, file := range files {
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !kinds[signature(f.Type)] {
				continue
			}
			feature := strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")
			if name := feature + "." + f.Name.Name; feature != "exchange" && !bound[name] && name != "affinity.choose" {
				t.Errorf("%s is a step, and order.go does not bind it", name)
			}
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[table.Route]()) {
		if field.IsExported() && !field.Anonymous && named[field.Name] == slices.Contains(core, field.Name) && field.Name != "Redirect" && field.Name != "Direct" && field.Name != "Name" && field.Name != "Place" {
			t.Errorf("order.go does not look at %s of a route, or it belongs to no feature", field.Name)
		}
	}
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
