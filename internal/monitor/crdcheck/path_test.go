package crdcheck

import (
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	root := (*path)(nil)
	for want, at := range map[string]*path{
		".":                      root,
		".spec":                  root.child("spec"),
		".spec.hosts[2].name":    root.child("spec").child("hosts").item(2).child("name"),
		".spec.hosts[*].*":       root.child("spec").child("hosts").items().values(),
		`.spec["a.b"]`:           root.child("spec").child("a.b"),
		`.spec["\x1b[2J"]["\""]`: root.child("spec").child("\x1b[2J").child(`"`),
		`[""]`:                   root.child(""),
	} {
		if got := at.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	long := root
	for range 1000 {
		long = long.child("aaaaaaaa")
	}
	if got := long.child("end").String(); len(got) > maxPath+3 || !strings.HasPrefix(got, "...aaaaaaaa.") && !strings.HasPrefix(got, "....") || !strings.HasSuffix(got, ".aaaaaaaa.end") {
		t.Errorf("a long path is %s", got)
	}
}

func TestLocate(t *testing.T) {
	object := objectFrom(t, `
spec:
  hosts: [{name: a}, {name: b}]
  labels: {app: x, "a.b/c": y, "a": {b: z}, "x[0]": {q: 1}}
`)
	for text, want := range map[string]string{
		"":                       ".",
		"spec":                   ".spec",
		".spec.hosts[1].name":    ".spec.hosts[1].name",
		"spec.hosts[1].missing":  ".spec.hosts[1]",
		"spec.hosts[7].name":     ".spec.hosts",
		"spec.labels[app]":       ".spec.labels.app",
		"spec.labels[a.b/c]":     `.spec.labels["a.b/c"]`,
		"spec.labels.a.b/c":      `.spec.labels["a.b/c"]`,
		"spec.labels.a.b":        ".spec.labels.a.b",
		"spec.labels.x[0].q":     `.spec.labels["x[0]"].q`,
		"spec.labels.nothing":    ".spec.labels",
		"nothing":                ".",
		"spec.hosts[9999999999]": ".spec.hosts",
	} {
		if got := locate(object, text).String(); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
