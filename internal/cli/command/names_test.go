package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestThePluginKnowsEveryNameOfEveryKind compares what the plugin takes for a kind of Slipway with its definitions.
func TestThePluginKnowsEveryNameOfEveryKind(t *testing.T) {
	paths, err := filepath.Glob("../../../config/crd/slipway.dev_*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	var got, want []apiextensionsv1.CustomResourceDefinitionNames
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			t.Fatal(err)
		}
		names := crd.Spec.Names
		want = append(want, names)
		k := ourKindNamed(names.Plural)
		if k == nil || k.namespaced != (crd.Spec.Scope == apiextensionsv1.NamespaceScoped) {
			t.Fatalf("%s: %v", path, k)
		}
		mine := apiextensionsv1.CustomResourceDefinitionNames{Kind: k.kind, ListKind: k.kind + "List", Plural: k.Plural(), Singular: k.Singular()}
		if k.namespaced { // Who may list what is in one namespace only would get an error from kubectl get slipway.
			mine.Categories = []string{"slipway"}
		}
		for _, short := range k.Shorts {
			if short != "rs" { // kubectl's, for ReplicaSets
				mine.ShortNames = append(mine.ShortNames, short)
			}
		}
		got = append(got, mine)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions and plugin (-want +got):\n%s", diff)
	}
	if len(OurKinds) != len(paths) {
		t.Errorf("%d kinds, %d definitions", len(OurKinds), len(paths))
	}
}

// TestShortNamesAreOurs: what begins with slw is not in use by others, which is known of no shorter name.
func TestShortNamesAreOurs(t *testing.T) {
	for _, k := range OurKinds {
		if !strings.HasPrefix(k.Shorts[0], "slw") {
			t.Errorf("the short name of %s is %s", k.kind, k.Shorts[0])
		}
	}
}

func TestNamesOfKinds(t *testing.T) {
	cases := map[*OurKind][]string{
		WebAppKind:  {"webapp/a", "webapps/a", "slwapp/a", "app/a", "WebApp/a", "webapp.slipway.dev/a", "webapps.v1alpha1.slipway.dev/a"},
		GatewayKind: {"gw/a", "GW/a", "slwgw/a", "apigateway/a", "APIGateways.slipway.dev/a"},
		BackupKind:  {"backup/a", "bk/a", "slwbk/a", "Backups/a", "backups.slipway.dev/a"},
		RunKind:     {"BackupRuns/a", "bkr/a", "slwbkr/a"},
		RestoreKind: {"rs/a", "slwrs/a", "restores/a"},
		nil: {
			"a", "", "/a", "/", "webapp/", "webapp/a/b", "gw/", "gw", "gw/a/b", "pod/a", "gateways/a", "apps/a", "backups.k8up.io/a", "app.slipway.dev/a", "gw.slipway.dev/a",
			"webapps.v1.slipway.dev/a", "webapps.slipway.dev.example.com/a", "webapps./a",
		},
	}
	for want, arguments := range cases {
		for _, argument := range arguments {
			k, name := ParseOurs(argument)
			if k != want || k != nil && name != "a" {
				t.Errorf("%q is %v %q, want %v", argument, k, name, want)
			}
		}
	}
	for i, k := range OurKinds {
		for _, other := range OurKinds[:i] {
			if slices.ContainsFunc(append(other.Shorts, other.Singular(), other.Plural()), k.isNamed) {
				t.Errorf("%s and %s share a name", k.kind, other.kind)
			}
		}
	}
}
