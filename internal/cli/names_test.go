package cli

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
	paths, err := filepath.Glob("../../config/crd/slipway.dev_*.yaml")
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
		mine := apiextensionsv1.CustomResourceDefinitionNames{Kind: k.kind, ListKind: k.kind + "List", Plural: k.plural(), Singular: k.singular()}
		if k.namespaced { // Who may list what is in one namespace only would get an error from kubectl get slipway.
			mine.Categories = []string{"slipway"}
		}
		for _, short := range k.shorts {
			if short != "rs" { // kubectl's, for ReplicaSets
				mine.ShortNames = append(mine.ShortNames, short)
			}
		}
		got = append(got, mine)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions and plugin (-want +got):\n%s", diff)
	}
	if len(ourKinds) != len(paths) {
		t.Errorf("%d kinds, %d definitions", len(ourKinds), len(paths))
	}
}

// TestShortNamesAreOurs: what begins with slw is not in use by others, which is known of no shorter name.
func TestShortNamesAreOurs(t *testing.T) {
	for _, k := range ourKinds {
		if !strings.HasPrefix(k.shorts[0], "slw") {
			t.Errorf("the short name of %s is %s", k.kind, k.shorts[0])
		}
	}
}

func TestNamesOfKinds(t *testing.T) {
	cases := map[*ourKind][]string{
		webAppKind:  {"webapp/a", "webapps/a", "slwapp/a", "app/a", "WebApp/a", "webapp.slipway.dev/a", "webapps.v1alpha1.slipway.dev/a"},
		gatewayKind: {"gw/a", "GW/a", "slwgw/a", "apigateway/a", "APIGateways.slipway.dev/a"},
		backupKind:  {"backup/a", "bk/a", "slwbk/a", "Backups/a", "backups.slipway.dev/a"},
		runKind:     {"BackupRuns/a", "bkr/a", "slwbkr/a"},
		restoreKind: {"rs/a", "slwrs/a", "restores/a"},
		nil: {
			"a", "", "/a", "/", "webapp/", "webapp/a/b", "gw/", "gw", "gw/a/b", "pod/a", "gateways/a", "apps/a", "backups.k8up.io/a", "app.slipway.dev/a", "gw.slipway.dev/a",
			"webapps.v1.slipway.dev/a", "webapps.slipway.dev.example.com/a", "webapps./a",
		},
	}
	for want, arguments := range cases {
		for _, argument := range arguments {
			k, name := parseOurs(argument)
			if k != want || k != nil && name != "a" {
				t.Errorf("%q is %v %q, want %v", argument, k, name, want)
			}
		}
	}
	for i, k := range ourKinds {
		for _, other := range ourKinds[:i] {
			if slices.ContainsFunc(append(other.shorts, other.singular(), other.plural()), k.isNamed) {
				t.Errorf("%s and %s share a name", k.kind, other.kind)
			}
		}
	}
}
