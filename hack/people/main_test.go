package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/operator"
)

func TestTheRolesAreUpToDate(t *testing.T) {
	want, err := render(operator.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../config/rbac/users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run make generate; -kinds +config/rbac/users.yaml\n%s", diff)
	}
}

func TestKindsOfOneShapeShareARule(t *testing.T) {
	kinds := []kit.Kind{
		{People: []kit.People{{Resource: "zebras", Edit: true, Status: true, Scale: true}}},
		{People: []kit.People{{Resource: "apes", Edit: true, Status: true, Scale: true}}},
		{}, // in no namespace
		{People: []kit.People{{Resource: "cages"}, {Resource: "keepers", Edit: true, Status: true}}},
	}
	want := resources{
		View:   [][]string{{"zebras", "zebras/status", "zebras/scale", "apes", "apes/status", "apes/scale"}, {"cages", "keepers", "keepers/status"}},
		Edit:   []string{"apes", "keepers", "zebras"},
		Scale:  []string{"apes/scale", "zebras/scale"},
		Status: []string{"apes/status", "keepers/status", "zebras/status"},
	}
	if diff := cmp.Diff(want, resourcesOf(kinds)); diff != "" {
		t.Error(diff)
	}
}
