package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// small is a repository with all that decides: imports, build tags, files that are read, modules and a table.
var small = fstest.MapFS{
	"go.mod":                text("module example.com/m\n"),
	"ground/ground.go":      text("package ground"),
	"ground/ground_test.go": text("package ground\nfunc TestGround(t *testing.T) {}"),
	"middle/middle.go":      text(`package middle; import _ "example.com/m/ground"`),
	"middle/middle_test.go": text("package middle\nfunc TestMiddle(t *testing.T) {}\nfunc FuzzMiddle(f *testing.F) {}"),
	"middle/testdata/case":  text("x"),
	"middle/page.tmpl":      text("x"),
	"cmd/program/main.go":   text(`package main; import _ "example.com/m/middle"`),
	"alone/alone.go":        text("package alone"),
	"alone/alone_test.go":   text("package alone\nimport _ \"example.com/m/helper\"\nfunc TestAlone(t *testing.T) {}"),
	"helper/helper.go":      text(`package helper; var _ = filepath.Join(root(), "config", "crd", name)`),
	"reader/reader_test.go": text("package reader\nvar _ = \"../docs/page_\" + name\nfunc TestReader(t *testing.T) {}"),
	"builds/builds_test.go": text("package builds\nvar _ = filepath.Join(\"..\", \"cmd\", \"program\")\nfunc TestBuilds(t *testing.T) {}"),
	"tagged/tagged_test.go": text("//go:build heavy\n\npackage tagged\nimport _ \"example.com/m/middle\"\nfunc TestTagged(t *testing.T) {}"),
	"tagged/other_test.go":  text("package tagged\nvar _ = \"../docs/page_a\"\nfunc TestOther(t *testing.T) {}"),
	"rooms/red/red.go":      text("package red"),
	"rooms/blue/blue.go":    text("package blue"),
	"rooms/all.go":          text("package rooms\nimport _ \"example.com/m/rooms/red\"\nimport _ \"example.com/m/rooms/blue\""),
	"kinds/kinds_test.go":   text("//go:build kinds\n\npackage kinds\nimport _ \"example.com/m/rooms\"\nfunc TestKinds(t *testing.T) {}"),
	"sub/go.mod":            text("module example.com/m/sub\n"),
	"sub/deep/sub.go":       text("package sub"),
	"sub/deep/sub_test.go":  text("package sub\nfunc TestSub(t *testing.T) {}"),
	"config/crd/a.yaml":     text("x"),
	"docs/page_a.md":        text("x"),
	"docs/else.md":          text("x"),
}

const smallTable = `
suite go
suite fuzz fuzz
suite heavy tag=heavy
uses heavy cmd/program config   # and a word
without heavy rooms
suite kinds tag=kinds
part kinds KIND=red rooms/red
part kinds KIND=blue rooms/blue
known docs
all tool
`

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func smallRepository(t *testing.T, changed []string) (*code, *table) {
	t.Helper()
	var names []string
	for name := range small {
		names = append(names, name)
	}
	slices.Sort(names)
	c, err := readCode(small, names, changed)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readTable(smallTable)
	if err != nil {
		t.Fatal(err)
	}
	return c, rows
}

// none is a draw that does not exist, so that only what is affected is chosen.
const none = -1

func TestWhatAChangeAffects(t *testing.T) {
	everything := "go\nfuzz\nheavy\nkinds\n"
	for name, tc := range map[string]struct {
		changed []string
		want    string
	}{
		"nothing":                                {nil, ""},
		"a package, and who imports it":          {[]string{"ground/ground.go"}, "go\tPACKAGES=./builds ./ground ./middle\tMODULES=\nfuzz\nheavy\n"},
		"a package nobody imports":               {[]string{"alone/alone.go"}, "go\tPACKAGES=./alone\tMODULES=\n"},
		"a test":                                 {[]string{"ground/ground_test.go"}, "go\tPACKAGES=./ground\tMODULES=\n"},
		"a deleted test":                         {[]string{"ground/gone_test.go"}, "go\tPACKAGES=./ground\tMODULES=\n"},
		"a deleted file":                         {[]string{"middle/gone.go"}, "go\tPACKAGES=./builds ./middle\tMODULES=\nfuzz\nheavy\n"},
		"data of a test":                         {[]string{"middle/testdata/case"}, "go\tPACKAGES=./middle\tMODULES=\nfuzz\n"},
		"what may be embedded":                   {[]string{"middle/page.tmpl"}, "go\tPACKAGES=./builds ./middle\tMODULES=\nfuzz\nheavy\n"},
		"what only tests import":                 {[]string{"helper/helper.go"}, "go\tPACKAGES=./alone\tMODULES=\n"},
		"a file that a helper of tests reads":    {[]string{"config/crd/a.yaml"}, "go\tPACKAGES=./alone\tMODULES=\nheavy\n"},
		"a file that a suite uses":               {[]string{"config/else"}, "heavy\n"},
		"a page that is read by its begin":       {[]string{"docs/page_a.md"}, "go\tPACKAGES=./reader ./tagged\tMODULES=\n"},
		"a deleted file that is read by name":    {[]string{"config/crd/gone.yaml", "docs/page_gone.md"}, "go\tPACKAGES=./alone ./reader ./tagged\tMODULES=\nheavy\n"},
		"a program that a test builds":           {[]string{"cmd/program/main.go"}, "go\tPACKAGES=./builds\tMODULES=\nheavy\n"},
		"a test with the tag of a suite":         {[]string{"tagged/tagged_test.go"}, "heavy\n"},
		"a test beside those of a suite":         {[]string{"tagged/other_test.go"}, "go\tPACKAGES=./tagged\tMODULES=\nheavy\n"},
		"a room of one part":                     {[]string{"rooms/red/red.go"}, "kinds\tKIND=red\n"},
		"rooms of both parts":                    {[]string{"rooms/red/red.go", "rooms/blue/blue.go"}, "kinds\n"},
		"what no part has for itself":            {[]string{"rooms/all.go"}, "kinds\n"},
		"a module of its own":                    {[]string{"sub/deep/sub.go"}, "go\tPACKAGES=\tMODULES=sub\n"},
		"what a module requires":                 {[]string{"sub/go.sum"}, "go\tPACKAGES=\tMODULES=sub\n"},
		"what affects everything":                {[]string{"tool/x"}, everything},
		"a file that nobody knows":               {[]string{"strange"}, everything},
		"a folder that nobody knows, and a page": {[]string{"docs/else.md", "new/x.yaml"}, everything},
	} {
		t.Run(name, func(t *testing.T) {
			c, rows := smallRepository(t, tc.changed)
			got := choose(c, rows, tc.changed, false, none).String()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// A fault in what a change does not affect is found within five draws: each thing that is left out by one is in another.
func TestFiveDrawsHaveEverything(t *testing.T) {
	c, rows := repository(t)
	for name, changed := range map[string][]string{"nothing": nil, "a page": {"docs/tutorial.md"}} {
		found, all := map[string]int{}, 0
		for draw := range shares {
			p := choose(c, rows, changed, false, draw)
			if p.all {
				t.Fatalf("%s changes, and everything runs because of %v", name, p.why)
			}
			all = 0
			for _, r := range p.runs {
				all += len(r.units)
				for _, u := range r.units {
					if u.chosen && !u.affected {
						found[r.suite.name+" "+u.name]++
					} else if u.affected {
						found[r.suite.name+" "+u.name] = 1
					}
				}
			}
			if draw == 0 && len(found) > all*2/3 {
				t.Errorf("%s changes, and one draw has %d of %d", name, len(found), all)
			}
		}
		if len(found) != all {
			t.Errorf("%s changes, and five draws have %d of %d", name, len(found), all)
		}
		for unit, times := range found {
			if times != 1 {
				t.Errorf("%s changes, and %s is in %d draws", name, unit, times)
			}
		}
	}
}

func TestDrawn(t *testing.T) {
	for _, tc := range []struct {
		draw, seed string
		want       int
	}{
		{"0", "", 0},
		{"4", "", 4},
		{"7", "", 2},
		{"1", "abc", 1},
		{"", "1", 1},
		{"", "2", 2},
		{"", "5", 0},
		{"", "9e0f3a1b2c3d", 3},
		{"", "a seed", 0},
	} {
		if got, err := drawn(tc.draw, tc.seed); err != nil || got != tc.want {
			t.Errorf("DRAW=%s SEED=%s is draw %d, %v, want %d", tc.draw, tc.seed, got, err, tc.want)
		}
	}
	if _, err := drawn("x", ""); err == nil {
		t.Error("DRAW=x is taken for a number")
	}
}

func TestReadTableRefuses(t *testing.T) {
	for _, row := range []string{"suites x", "suite", "uses x y", "suite x tag=x\npart x KIND=a", "suite x\nhas x y"} {
		if _, err := readTable(row); err == nil {
			t.Errorf("%q is taken for a table", row)
		}
	}
}

// A row for what has moved would say nothing, and nobody would notice.
func TestTheTableNamesWhatThereIs(t *testing.T) {
	c, rows := repository(t)
	raw, err := fs.ReadFile(c.files, "hack/make/test.mk")
	if err != nil {
		t.Fatal(err)
	}
	named := slices.Concat(rows.known, rows.all)
	for folder, reads := range rows.reads {
		named = append(named, append(reads, folder)...)
	}
	for _, s := range rows.suites {
		if !strings.Contains(string(raw), "\n"+s.name+": ") {
			t.Errorf("%s is no target of make", s.name)
		}
		named = append(named, slices.Concat(s.uses, s.without)...)
		for _, p := range s.parts {
			named = append(named, p.folders...)
		}
		if s.tag != "" && !c.hasTag(s.tag) {
			t.Errorf("no test has the build tag %s", s.tag)
		}
	}
	for _, name := range named {
		if !c.exists(name) {
			t.Errorf("there is no %s", name)
		}
	}
}

// What no part has would run only where all parts do.
func TestPartsAreAllThatThereIs(t *testing.T) {
	c, rows := repository(t)
	kinds, err := fs.Glob(c.files, "test/fault/testdata/*/kind.yaml")
	if err != nil {
		t.Fatal(err)
	}
	script, err := fs.ReadFile(c.files, "hack/test-e2e.sh")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, kind := range kinds {
		want["test-fault-sample"] = append(want["test-fault-sample"], path.Base(path.Dir(kind)))
	}
	for _, area := range regexp.MustCompile(`\) echo ([a-z]+) ;;`).FindAllStringSubmatch(string(script), -1) {
		want["test-e2e"] = append(want["test-e2e"], area[1])
	}
	got := map[string][]string{}
	for _, s := range rows.suites {
		for _, p := range s.parts {
			got[s.name] = append(got[s.name], p.value)
		}
		slices.Sort(got[s.name])
		slices.Sort(want[s.name])
		if diff := cmp.Diff(want[s.name], got[s.name]); diff != "" {
			t.Errorf("parts of %s in suites.txt: -want +got\n%s", s.name, diff)
		}
	}
}

// The faults of a kind are played with some controllers, so a change of each of them plays the faults.
func TestAPartHasTheControllersOfItsKind(t *testing.T) {
	c, rows := repository(t)
	for _, s := range rows.suites {
		for _, p := range s.parts {
			raw, err := fs.ReadFile(c.files, "test/fault/testdata/"+p.value+"/kind.yaml")
			if p.variable != "KIND" {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			named := regexp.MustCompile(`(?m)^controllers: \[(.+)\]$`).FindSubmatch(raw)
			if named == nil {
				t.Fatalf("the kind.yaml of %s names no controllers", p.value)
			}
			for controller := range strings.SplitSeq(string(named[1]), ", ") {
				room := "internal/controller/" + controller
				if c.exists(room) && !slices.Contains(p.folders, room) {
					t.Errorf("%s=%s of %s lacks %s", p.variable, p.value, s.name, room)
				}
			}
		}
	}
}

func (c *code) hasTag(tag string) bool {
	for _, f := range c.folders {
		if slices.ContainsFunc(f.tests, func(test testFile) bool { return test.asksFor(tag) }) {
			return true
		}
	}
	return false
}

func repository(t *testing.T) (*code, *table) {
	t.Helper()
	c, err := wholeRepository()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("suites.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readTable(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return c, rows
}

// wholeRepository reads it once, which takes longest.
var wholeRepository = sync.OnceValues(func() (*code, error) {
	const root = "../.."
	return readCode(os.DirFS(root), lines(git("-C", root, "ls-files", "--cached", "--others", "--exclude-standard")), nil)
})
