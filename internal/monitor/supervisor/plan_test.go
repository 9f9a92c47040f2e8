package supervisor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

var widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}

func widget(version string, definition types.UID) change.Kind {
	return change.Kind{
		Group: "example.com", Version: version, Kind: "Widget", Resource: "widgets", Namespaced: true, Definition: definition,
	}
}

func TestWhatIsDoneForAKindFollowsFromWhatIsWantedAndWhatIsThere(t *testing.T) {
	const nothing = verb(-1)
	one, two := digest{1}, digest{2}
	other := widget("v1", "a")
	other.Namespaced = false
	for name, test := range map[string]struct {
		want       *want
		has        *has
		incomplete bool
		do         verb
	}{
		"a new kind is followed": {want: &want{kind: widget("v1", "a")}, do: start},
		"a kind that is not established waits": {
			want: &want{kind: widget("v1", "a"), mode: hold}, do: nothing,
		},
		"a kind that is left out is not followed": {want: &want{kind: widget("v1", "a"), mode: leaveOut}, do: nothing},
		"a kind of an earlier life goes on": {
			want: &want{kind: widget("v1", "a")}, has: &has{kind: widget("v1", "a"), phase: stored}, do: start,
		},
		"a kind of an earlier life goes on at another version": {
			want: &want{kind: widget("v2", "a")}, has: &has{kind: widget("v1", "a"), phase: stored}, do: start,
		},
		"a kind of an earlier life that is now left out stays stored": {
			want: &want{kind: widget("v1", "a"), mode: leaveOut}, has: &has{kind: widget("v1", "a"), phase: stored}, do: nothing,
		},
		"a kind of an earlier life that was made again is closed first": {
			want: &want{kind: widget("v1", "b")}, has: &has{kind: widget("v1", "a"), phase: stored}, do: closeKind,
		},
		"a kind of an earlier life is closed when its definition is gone": {
			has: &has{kind: widget("v1", "a"), phase: stored}, do: closeKind,
		},
		"a kind of an earlier life waits until all definitions are known": {
			has: &has{kind: widget("v1", "a"), phase: stored}, incomplete: true, do: nothing,
		},
		"a builtin kind that nobody wants any more was not deleted": {
			has: &has{kind: widget("v1", ""), phase: stored}, do: nothing,
		},
		"a kind that is followed as it should be is left alone": {
			want: &want{kind: widget("v1", "a"), content: one, generation: 1},
			has:  &has{kind: widget("v1", "a"), phase: following, content: one, generation: 1}, do: nothing,
		},
		"another schema is told": {
			want: &want{kind: widget("v1", "a"), content: two, generation: 2},
			has:  &has{kind: widget("v1", "a"), phase: following, content: one, generation: 1}, do: update,
		},
		"another generation lets a kind that fails try again": {
			want: &want{kind: widget("v1", "a"), content: one, generation: 2},
			has:  &has{kind: widget("v1", "a"), phase: following, content: one, generation: 1}, do: update,
		},
		"another version ends the follower of the old one": {
			want: &want{kind: widget("v2", "a")}, has: &has{kind: widget("v1", "a"), phase: following}, do: stop,
		},
		"a kind that is excluded ends": {
			want: &want{kind: widget("v1", "a"), mode: leaveOut}, has: &has{kind: widget("v1", "a"), phase: following}, do: stop,
		},
		"a kind that is followed stays when its definition is not established for a while": {
			want: &want{kind: widget("v1", "a"), mode: hold}, has: &has{kind: widget("v1", "a"), phase: following}, do: nothing,
		},
		"a kind that was made again is closed first": {
			want: &want{kind: widget("v1", "b")}, has: &has{kind: widget("v1", "a"), phase: following}, do: closeKind,
		},
		"a kind that was made again with another scope is closed first": {
			want: &want{kind: func() change.Kind { k := other; k.Definition = "b"; return k }()},
			has:  &has{kind: widget("v1", "a"), phase: following}, do: closeKind,
		},
		"a kind is closed when its definition is gone":        {has: &has{kind: widget("v1", "a"), phase: following}, do: closeKind},
		"a kind that ends is waited for":                      {want: &want{kind: widget("v2", "a")}, has: &has{kind: widget("v1", "a"), phase: ending}, do: nothing},
		"a kind that ends is not closed twice":                {has: &has{kind: widget("v1", "a"), phase: ending}, do: nothing},
		"a kind that ends is waited for before the next life": {want: &want{kind: widget("v1", "b")}, has: &has{kind: widget("v1", "a"), phase: ending}, do: nothing},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, actual := map[schema.GroupResource]want{}, map[schema.GroupResource]has{}
			if test.want != nil {
				wanted[widgets] = *test.want
			}
			if test.has != nil {
				actual[widgets] = *test.has
			}
			got := plan(wanted, actual, !test.incomplete)
			var expected []action
			if test.do != nothing {
				expected = []action{{test.do, widgets}}
			}
			if diff := cmp.Diff(expected, got, cmp.AllowUnexported(action{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheStoredVersionIsFollowedAndElseTheHighest(t *testing.T) {
	for name, test := range map[string]struct {
		versions []servedVersion
		want     string
	}{
		"stored":            {[]servedVersion{{name: "v1alpha1", storage: true}, {name: "v1"}}, "v1alpha1"},
		"stored not served": {[]servedVersion{{name: "v1beta1"}, {name: "v1"}, {name: "v2alpha1"}}, "v1"},
		"strange names":     {[]servedVersion{{name: "zebra"}, {name: "v1alpha1"}}, "v1alpha1"},
		"none":              {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := definition{versions: test.versions}.choose()
			if got.name != test.want || found != (test.want != "") {
				t.Errorf("%q %v, want %q", got.name, found, test.want)
			}
		})
	}
}

func TestNewDefinitionsCannotEndWhatIsFollowed(t *testing.T) {
	at := func(name string, minute int) definition {
		return definition{
			name: name + ".example.com", group: "example.com", resource: name, uid: types.UID(name), established: true,
			created: time.Unix(0, 0).Add(time.Duration(minute) * time.Minute), versions: []servedVersion{{name: "v1", storage: true}},
		}
	}
	own := change.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments"}
	chosen, err := selection.New(nil, []string{"secret.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	got := desired([]definition{at("aaa", 3), at("old", 1), at("older", 0), at("secret", 2)}, []change.Kind{own}, chosen, 3)
	modes := map[string]mode{}
	for key, w := range got {
		modes[key.String()] = w.mode
	}
	want := map[string]mode{
		"deployments.apps": follow, "older.example.com": follow, "old.example.com": follow, "aaa.example.com": leaveOut, "secret.example.com": leaveOut,
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Error(diff)
	}
}

func TestADefinitionCannotTakeTheNameOfABuiltinKind(t *testing.T) {
	own := change.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments"}
	fake := definition{name: "deployments.apps", group: "apps", resource: "deployments", uid: "x", established: true, versions: []servedVersion{{name: "v1"}}}
	got := desired([]definition{fake}, []change.Kind{own}, selection.Kinds{}, 10)
	if len(got) != 1 || got[own.GroupResource()].kind != own {
		t.Errorf("%+v", got)
	}
}
