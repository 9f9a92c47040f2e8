package list_test

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/bodybound"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/feature/maintenance"
)

func names() []string {
	var all []string
	for i := range list.Entries {
		all = append(all, list.Entries[i].Name)
	}
	return all
}

// What a policy can ask for is in the list, and a policy that asks for one setting asks for no other.
func TestEverySettingOfAPolicyIsInTheList(t *testing.T) {
	var fields []string
	of := reflect.TypeFor[slipwayv1alpha1.GatewayPolicySettings]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		fields = append(fields, name)
		in := &slipwayv1alpha1.GatewayPolicySettings{}
		field := reflect.ValueOf(in).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		for k := range list.Entries {
			if got := list.Entries[k].Asked(in); got != (list.Entries[k].Name == name) {
				t.Errorf("a policy with %s asks for %s: %v", name, list.Entries[k].Name, got)
			}
		}
	}
	inList := names()
	slices.Sort(fields)
	slices.Sort(inList)
	if diff := cmp.Diff(fields, inList); diff != "" {
		t.Errorf("fields of GatewayPolicySettings and the list (-fields +list):\n%s", diff)
	}
}

// Each field of Settings is that of one entry, and Compiled has the same fields.
func TestEachEntryHasAFieldOfItsOwn(t *testing.T) {
	asked, served := reflect.TypeFor[list.Settings](), reflect.TypeFor[list.Compiled]()
	if asked.NumField() != list.Count || served.NumField() != list.Count {
		t.Fatalf("%d fields are asked for and %d served, and there are %d entries", asked.NumField(), served.NumField(), list.Count)
	}
	found := map[string]string{}
	for i := range asked.NumField() {
		name := asked.Field(i).Name
		if _, is := served.FieldByName(name); !is {
			t.Errorf("Compiled has no %s", name)
		}
		one := set(i)
		for k := range list.Entries {
			e := &list.Entries[k]
			if !e.IsSet(one) {
				continue
			}
			if other := found[e.Name]; other != "" {
				t.Errorf("%s is that of %s too", name, other)
			}
			found[e.Name] = name
			other := list.Settings{}
			e.Take(&other, one)
			if diff := cmp.Diff(*one, other, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Errorf("%s takes (-want +got):\n%s", e.Name, diff)
			}
			if e.Clear(&other); !reflect.ValueOf(other).IsZero() {
				t.Errorf("%s leaves %+v", e.Name, other)
			}
		}
	}
	if len(found) != list.Count {
		t.Errorf("%d of %d entries have a field", len(found), list.Count)
	}
}

// set are settings of which one is set.
func set(field int) *list.Settings {
	one := &list.Settings{}
	switch to := reflect.ValueOf(one).Elem().Field(field); to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
	default:
		to.SetInt(1)
	}
	return one
}

func TestEachOrderHasEverySettingOnce(t *testing.T) {
	want := names()
	slices.Sort(want)
	for name, order := range map[string][]*list.Entry{"routes": list.ForRoutes, "policies": list.ForPolicies, "the table": list.ForTable} {
		var got []string
		for _, e := range order {
			got = append(got, e.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the order of %s (-want +got):\n%s", name, diff)
		}
	}
}

// A relation that is wrong opens a way around what a route asks for: a path that a backend reads in another way would get through.
// So each is written down here once more.
func TestWhoPassesOnePassesAnother(t *testing.T) {
	type answers struct{ Without, With, Other bool } // mine without and theirs with, the other way round, and two that differ
	want := map[string]answers{
		"clientAddresses": {false, true, false},
		"auth":            {false, true, false},
		"rateLimit":       {false, true, false},
		"cors":            {true, false, false}, // it lets pages of others do more
		"maxBodyBytes":    {false, true, false},
		"backends":        {true, true, true}, // these keep nobody out
		"sessionAffinity": {true, true, true},
		"compression":     {true, true, true},
		"cache":           {true, true, true},
		"maintenance":     {false, true, false},
	}
	got := map[string]answers{}
	for i := range list.Entries {
		e := &list.Entries[i]
		got[e.Name] = answers{e.Covers("", "x"), e.Covers("x", ""), e.Covers("y", "x")}
		if !e.Covers("", "") || !e.Covers("x", "x") {
			t.Errorf("%s: one does not cover itself", e.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASmallerBodyPassesALargerBound(t *testing.T) {
	text := func(bound int64) string { return bodybound.Setting.Text(bound, feature.Rule{}) }
	bounds := []int64{1, 9, 10, 99, 1 << 20, 1<<63 - 1}
	for i, mine := range bounds {
		for k, theirs := range bounds {
			if got := bodybound.Setting.Covers(text(mine), text(theirs)); got != (i <= k) {
				t.Errorf("%d covers %d: %v", mine, theirs, got)
			}
		}
	}
}

// Without a text of its own a setting is compared by its JSON. That must not leave out anything by which two could differ.
func TestWhatIsComparedAsJSONIsPlainData(t *testing.T) {
	own := map[string]bool{
		auth.Setting.Name: auth.Setting.Text != nil, bodybound.Setting.Name: bodybound.Setting.Text != nil,
		maintenance.Setting.Name: maintenance.Setting.Text != nil,
	}
	asked := reflect.TypeFor[list.Settings]()
	for i := range asked.NumField() {
		for k := range list.Entries {
			if e := &list.Entries[k]; e.IsSet(set(i)) && e.Matters() && !own[e.Name] {
				plain(t, e.Name, asked.Field(i).Type)
			}
		}
	}
}

func plain(t *testing.T, path string, of reflect.Type) {
	t.Helper()
	for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if of.Implements(own) || reflect.PointerTo(of).Implements(own) {
			t.Errorf("%s writes its JSON itself: the setting needs a Text", path)
		}
	}
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		plain(t, path, of.Elem())
	case reflect.Map:
		if of.Key().Kind() != reflect.String {
			t.Errorf("%s has keys that JSON may not have: the setting needs a Text", path)
		}
		plain(t, path, of.Elem())
	case reflect.Struct:
		for i := range of.NumField() {
			field := of.Field(i)
			if !field.IsExported() || strings.HasPrefix(field.Tag.Get("json"), "-") {
				t.Errorf("%s.%s is not in the JSON: the setting needs a Text", path, field.Name)
			}
			plain(t, path+"."+field.Name, field.Type)
		}
	case reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer, reflect.Uintptr:
		t.Errorf("%s is no plain data: the setting needs a Text", path)
	}
}

// A GatewayPolicy says it in the same words as a route.
func TestAPolicyMayHaveALimitOfTheGateway(t *testing.T) {
	for count, want := range map[slipwayv1alpha1.RateLimitCount]struct{ shared, refused bool }{
		"":        {false, false},
		"Replica": {false, false},
		"Gateway": {true, false},
		"Cluster": {false, true},
	} {
		got := list.Settings{}
		in := &slipwayv1alpha1.GatewayPolicySettings{RateLimit: &slipwayv1alpha1.RateLimit{Requests: 1, Count: count}}
		f := list.Named("rateLimit").Read(&got, in, feature.Source{})
		if refused := f != nil && strings.Contains(f.Message, "rateLimit.count"); refused != want.refused {
			t.Errorf("count %q: the fault is %+v", count, f)
		}
		if !want.refused && got.RateLimit.Shared != want.shared {
			t.Errorf("count %q: shared is %v", count, got.RateLimit.Shared)
		}
	}
}
