package watch

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// newKindStore makes a store whose sightings are collected.
func newKindStore(t *testing.T) (store *kindStore, seen *[]sighting) {
	t.Helper()
	policy, err := change.NewPolicy(change.Options{Key: []byte("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	seen = &[]sighting{}
	return &kindStore{
		kind:   change.Kind{Group: "example.com", Version: "v1", Kind: "Database", Resource: "databases", Namespaced: true},
		policy: policy, now: func() metav1.Time { return metav1.NewTime(clitest.Now) }, known: map[types.NamespacedName]known{},
		send: func(s sighting) { s.resource = "databases.example.com"; *seen = append(*seen, s) },
	}, seen
}

// databaseAt is a version of an object.
func databaseAt(name, version string, spec, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Database", "spec": spec, "status": status,
		"metadata": map[string]any{"name": name, "namespace": "team-a", "uid": "uid-of-" + name, "resourceVersion": version},
	}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// history plays the life of some objects.
func history(t *testing.T) []sighting {
	store, seen := newKindStore(t)
	isReady := map[string]any{"phase": "Ready"}
	must(t, store.Replace([]any{databaseAt("orders", "5", map[string]any{"size": int64(1), "old": true}, isReady), databaseAt("users", "6", nil, isReady)}, "7"))
	must(t, store.Update(databaseAt("orders", "8", map[string]any{"size": int64(3), "owner": "shop", "password": "first"}, map[string]any{"phase": "Failed", "message": "no \x1b[2Jdisk"})))
	must(t, store.Update(databaseAt("orders", "9", map[string]any{"size": int64(3), "owner": "shop", "password": "second"}, map[string]any{"phase": "Failed", "message": "no \x1b[2Jdisk"})))
	must(t, store.Add(databaseAt("carts", "10", nil, nil)))
	must(t, store.Delete(databaseAt("carts", "11", nil, nil)))
	must(t, store.Replace([]any{databaseAt("orders", "12", map[string]any{"size": int64(4), "owner": "shop", "password": "second"}, isReady)}, "12"))
	return *seen
}

func TestWatchPrintsChanges(t *testing.T) {
	events := append([]sighting{{begun: []string{"databases.example.com"}}}, history(t)...)
	for name, printer := range map[string]*watchPrinter{
		"watch/plain.txt":   {output: command.FormatTable},
		"watch/colours.txt": {output: command.FormatTable, Painter: command.Painter{Colours: true}},
		"watch/stream.json": {output: command.FormatJSON},
	} {
		t.Run(name, func(t *testing.T) {
			errOut := &bytes.Buffer{}
			clitest.Golden(t, name, func(out *bytes.Buffer) error {
				printer.out, printer.errOut, printer.waiting = out, errOut, map[string]bool{}
				for _, s := range events {
					must(t, printer.show(s))
				}
				odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
				if !printer.Colours && strings.ContainsFunc(out.String(), odd) {
					t.Errorf("printed %q", out)
				}
				for _, secret := range []string{"first", "second"} {
					if strings.Contains(out.String(), secret) {
						t.Errorf("the secret %q is shown:\n%s", secret, out)
					}
				}
				return nil
			})
			if errOut.Len() > 0 {
				t.Errorf("errors: %s", errOut)
			}
		})
	}
}

// What happened while a watch was interrupted is found by comparing, and an object that came back is another one.
func TestWatchFindsWhatHappenedInAGap(t *testing.T) {
	store, seen := newKindStore(t)
	must(t, store.Replace([]any{databaseAt("a", "1", nil, nil), databaseAt("b", "2", map[string]any{"size": int64(1)}, nil), databaseAt("c", "3", nil, nil)}, "3"))
	other := databaseAt("c", "9", nil, nil)
	other.SetUID("another")
	must(t, store.Replace([]any{databaseAt("b", "8", map[string]any{"size": int64(2)}, nil), other, databaseAt("d", "7", nil, nil)}, "9"))
	var got []string
	for _, s := range *seen {
		if s.record != nil {
			got = append(got, string(s.record.Type)+" "+s.record.Name)
			if !s.record.InGap {
				t.Errorf("%s %s is not marked as found later", s.record.Type, s.record.Name)
			}
		}
	}
	want := []string{"Updated b", "Deleted c", "Created c", "Created d", "Deleted a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWatchSaysWhatIsNotWatched(t *testing.T) {
	out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
	printer := &watchPrinter{out: out, errOut: errOut, output: command.FormatTable, waiting: map[string]bool{}}
	for _, s := range []sighting{
		{begun: []string{"as.example.com", "bs.example.com"}},
		{resource: "as.example.com", problem: "you may not list and watch it\x1b"},
		{resource: "bs.example.com", synced: true, count: 4},
		{resource: "bs.example.com", problem: "no answer"},
		{resource: "cs.example.com", synced: true, count: 100},
	} {
		must(t, printer.show(s))
	}
	if want := "Watching 1 kind with 4 objects. Ctrl-C ends it.\n"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
	if want := "not watched: as.example.com: you may not list and watch it\uFFFD\nnot watched: bs.example.com: no answer\n"; errOut.String() != want {
		t.Errorf("%q, want %q", errOut, want)
	}
}

func TestWatchTarget(t *testing.T) {
	for _, tc := range []struct {
		args       []string
		kind, name string
		fails      bool
	}{
		{},
		{args: []string{"deployments"}, kind: "deployments"},
		{args: []string{"deployment/shop"}, kind: "deployment", name: "shop"},
		{args: []string{"deployment", "shop"}, kind: "deployment", name: "shop"},
		{args: []string{"a", "b", "c"}, fails: true},
		{args: []string{"a/b", "c"}, fails: true},
		{args: []string{"a,b"}, fails: true},
		{args: []string{"/b"}, fails: true},
	} {
		kind, name := watchTarget(tc.args)
		if err := watchArguments(nil, tc.args); (err != nil) != tc.fails || !tc.fails && (kind != tc.kind || name != tc.name) {
			t.Errorf("%q: %q %q %v", tc.args, kind, name, err)
		}
	}
}

// TestOneObjectIsNoPlural looks at a line that counts what may be one.
func TestOneObjectIsNoPlural(t *testing.T) {
	out := &bytes.Buffer{}
	printer := &watchPrinter{out: out, output: command.FormatTable, kinds: 1, objects: 1}
	if err := printer.begin(); err != nil || !strings.Contains(out.String(), "Watching 1 kind with 1 object. ") {
		t.Errorf("%v: %s", err, out)
	}
}
