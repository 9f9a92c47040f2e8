package controller_test

import (
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/operator"
)

// A kind of the API is known to programs that do not link its controller: to the monitor, which judges it, and to the command
// line. These are the kinds of which they know nothing of their own, and why.
var (
	// judgedByConvention are kinds without a profile: their condition Ready says all there is to say.
	judgedByConvention = map[string]bool{"MonitorRule": true}
	// explainedLikeAny are kinds of which `why` says what it says of any kind: nothing belongs to them that could be the cause.
	explainedLikeAny = map[string]bool{"GatewayParameters": true, "GatewayPolicy": true, "MonitorRule": true}
)

// definitions are those of the kinds of the API, by kind. There is one for every kind of the scheme.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := slipwayv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "config/crd/slipway.dev_*.yaml"))
	if err != nil || len(files) < 8 {
		t.Fatalf("found the definitions %q: %v", files, err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		of := &apiextensionsv1.CustomResourceDefinition{}
		readYAML(t, file, of)
		all[of.Spec.Names.Kind] = of
	}
	for kind, of := range scheme.KnownTypes(slipwayv1alpha1.SchemeGroupVersion) {
		if _, is := reflect.New(of).Interface().(client.Object); is && all[kind] == nil {
			t.Errorf("%s has no definition in config/crd", kind)
		}
	}
	return all
}

// Whoever may view a namespace may read what is in it, and how it is.
func TestPeopleHaveRightsToEveryKind(t *testing.T) {
	people := map[string]kit.People{}
	for _, kind := range operator.Kinds() {
		for _, of := range kind.People {
			people[of.Resource] = of
		}
	}
	for kind, of := range definitions(t) {
		has, is := people[of.Spec.Names.Plural]
		delete(people, of.Spec.Names.Plural)
		if of.Spec.Scope != apiextensionsv1.NamespaceScoped {
			continue // the roles of people are those of a namespace
		}
		if !is {
			t.Errorf("the Kind of the room of %s says nothing of the rights of people (kit.People)", kind)
			continue
		}
		for _, version := range of.Spec.Versions {
			status := version.Subresources != nil && version.Subresources.Status != nil
			scale := version.Subresources != nil && version.Subresources.Scale != nil
			if status != has.Status || scale != has.Scale {
				t.Errorf("%s has a status: %v, is scaled: %v, and people have rights to %+v", kind, status, scale, has)
			}
		}
	}
	for resource := range people {
		t.Errorf("people have rights to %s, which is no kind", resource)
	}
}

func TestTheMonitorCanJudgeEveryKind(t *testing.T) {
	for kind := range definitions(t) {
		profiled := slices.ContainsFunc(health.Shipped().List(), func(profile health.Profile) bool {
			return profile.Group == slipwayv1alpha1.GroupName && slices.Contains(profile.Kinds, kind)
		})
		if profiled == judgedByConvention[kind] {
			t.Errorf("%s has a profile in internal/health/profiles_slipway.go: %v, is on the list of those that need none: %v", kind, profiled, judgedByConvention[kind])
		}
	}
}

// The command line knows every kind by its names, and explains those that lead to something.
func TestTheCommandLineKnowsEveryKind(t *testing.T) {
	names, explained := read(t, "internal/cli/command/names.go"), read(t, "internal/cli/why/kinds.go")
	for kind, of := range definitions(t) {
		row := regexp.MustCompile(`\{"` + kind + `", "(\w+)"`).FindStringSubmatch(names)
		if row == nil || strings.ToLower(row[1]) != of.Spec.Names.Plural {
			t.Errorf("internal/cli/command/names.go has no row for %s and %s: %q", kind, of.Spec.Names.Plural, row)
		}
		if strings.Contains(explained, `{"`+kind+`"}`) == explainedLikeAny[kind] {
			t.Errorf("%s is either explained by a row of internal/cli/why/kinds.go, or on the list of those that are explained like any: %v", kind, explainedLikeAny[kind])
		}
	}
}
