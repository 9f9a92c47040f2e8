package fault

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// relayOf returns a kind of a relay that sees only what a test shows it, and a lister of
// the namespace of those objects that are selected.
func relayOf(selector labels.Selector) (*relayed, *relayLister) {
	kind := newRelayed()
	kind.begin = func() error { return nil }
	return kind, &relayLister{kind: kind, namespace: "team", selector: selector}
}

// saw shows a version to a kind of a relay.
func saw(t *testing.T, kind *relayed, object runtime.Object, deleted bool) {
	t.Helper()
	if err := kind.report(object, deleted); err != nil {
		t.Fatal(err)
	}
}

func labelled(name, version, label string) *corev1.Secret {
	o := object(name, version)
	o.Labels = map[string]string{"of": label}
	return o
}

// listed lists, and returns what of that is compared.
func listed(t *testing.T, from *relayLister, options metav1.ListOptions) []string {
	t.Helper()
	list, err := from.list(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	at, err := meta.ListAccessor(list)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{"at " + at.GetResourceVersion()}
	for _, o := range objects {
		got = append(got, reported(watch.Event{Object: o}))
	}
	return got
}

// events watches from a version, and returns what that tells until nothing more comes. It
// is for the inside of a synctest bubble.
func events(t *testing.T, from *relayLister, version string) []string {
	t.Helper()
	w, err := from.watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var got []string
	for {
		synctest.Wait()
		select {
		case event := <-w.ResultChan():
			got = append(got, reported(event))
		default:
			return got
		}
	}
}

func TestARelayShowsANamespaceAndWhatHappensInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind, lister := relayOf(labels.Everything())
		other := object("a", "4")
		other.Namespace = "other"
		saw(t, kind, object("b", "2"), false)
		saw(t, kind, object("a", "1"), false)
		saw(t, kind, object("gone", "3"), false)
		saw(t, kind, object("gone", "5"), true)
		saw(t, kind, other, false)
		if diff := cmp.Diff([]string{"at 5", " a1", " b2"}, listed(t, lister, metav1.ListOptions{})); diff != "" {
			t.Errorf("listed, -want +got:\n%s", diff)
		}
		saw(t, kind, object("a", "1"), false) // again, because its own watch was broken
		saw(t, kind, object("a", "6"), false)
		saw(t, kind, object("c", "7"), false)
		saw(t, kind, object("b", "8"), true)
		if diff := cmp.Diff([]string{"MODIFIED a6", "ADDED c7", "DELETED b8"}, events(t, lister, "5")); diff != "" {
			t.Errorf("watched, -want +got:\n%s", diff)
		}
	})
}

func TestARelayTellsAWatchOfWhatComesLater(t *testing.T) {
	kind, lister := relayOf(labels.Everything())
	w, err := lister.watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1", "2", "3"} {
		saw(t, kind, object("a", version), false)
		if got := (<-w.ResultChan()).Object.(*corev1.Secret).ResourceVersion; got != version {
			t.Errorf("told of version %s, want %s", got, version)
		}
	}
	w.Stop()
	if event, open := <-w.ResultChan(); open {
		t.Errorf("still told %s after the end", reported(event))
	}
}

func TestARelaySelectsAsTheAPIServerDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind, lister := relayOf(labels.SelectorFromSet(labels.Set{"of": "ours"}))
		saw(t, kind, labelled("a", "1", "ours"), false)
		saw(t, kind, labelled("b", "2", "others"), false)
		if diff := cmp.Diff([]string{"at 2", " a1"}, listed(t, lister, metav1.ListOptions{})); diff != "" {
			t.Errorf("listed, -want +got:\n%s", diff)
		}
		saw(t, kind, labelled("a", "3", "others"), false)
		saw(t, kind, labelled("a", "4", "others"), false)
		saw(t, kind, labelled("b", "5", "ours"), false)
		saw(t, kind, labelled("a", "6", "others"), true)
		saw(t, kind, labelled("b", "7", "ours"), true)
		if diff := cmp.Diff([]string{"DELETED a3", "ADDED b5", "DELETED b7"}, events(t, lister, "2")); diff != "" {
			t.Errorf("watched, -want +got:\n%s", diff)
		}
	})
}

// What happened while the relay's own watch was broken is told of when it lists again.
func TestARelayTellsOfWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind, lister := relayOf(labels.Everything())
		if err := kind.Replace([]any{object("changed", "1"), object("gone", "2"), object("same", "3")}, "5"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"at 5", " changed1", " gone2", " same3"}, listed(t, lister, metav1.ListOptions{})); diff != "" {
			t.Errorf("listed, -want +got:\n%s", diff)
		}
		if err := kind.Replace([]any{object("changed", "6"), object("made", "7"), object("same", "3")}, "9"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"MODIFIED changed6", "ADDED made7", "DELETED gone9"}, events(t, lister, "5")); diff != "" {
			t.Errorf("watched, -want +got:\n%s", diff)
		}
	})
}

// Whatever a cache does with an object that it was shown, others do not see it.
func TestARelayShowsEachACopy(t *testing.T) {
	kind, lister := relayOf(labels.Everything())
	saw(t, kind, labelled("a", "1", "ours"), false)
	for range 2 {
		w, err := lister.watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		shown := (<-w.ResultChan()).Object.(*corev1.Secret)
		if shown.Labels["of"] != "ours" {
			t.Error("changed by another")
		}
		shown.Labels["of"] = "changed"
		w.Stop()
	}
}

// A list of the past is the API server's, and what happened since is told.
func TestARelayGoesOnFromAListOfThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind, lister := relayOf(labels.Everything())
		lister.exact = toolscache.ToListerWatcherWithContext(&toolscache.ListWatch{
			ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: options.ResourceVersion}, Items: []corev1.Secret{*object("a", "1")}}, nil
			},
		})
		saw(t, kind, object("a", "1"), false)
		saw(t, kind, object("a", "3"), false)
		saw(t, kind, object("b", "4"), false)
		past := metav1.ListOptions{ResourceVersion: "2", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		if diff := cmp.Diff([]string{"at 2", " a1"}, listed(t, lister, past)); diff != "" {
			t.Errorf("listed, -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"MODIFIED a3", "ADDED b4"}, events(t, lister, "2")); diff != "" {
			t.Errorf("watched, -want +got:\n%s", diff)
		}
	})
}

func TestARelayForgetsANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind, lister := relayOf(labels.Everything())
		saw(t, kind, object("a", "1"), false)
		w, err := lister.watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop() // who still watches can
		synctest.Wait()
		kind.forget("team")
		saw(t, kind, object("a", "2"), false)
		if diff := cmp.Diff([]string{"at 1"}, listed(t, lister, metav1.ListOptions{})); diff != "" {
			t.Errorf("listed, -want +got:\n%s", diff)
		}
		if got := events(t, lister, "0"); len(got) > 0 {
			t.Errorf("still told %s", got)
		}
	})
}

// A namespace that is forgotten is not looked at when somebody wants to see another kind.
func TestWhatIsForgottenStaysForgotten(t *testing.T) {
	relay := NewRelay(t.Context(), nil, nil)
	relay.Forget("team")
	kind := relay.kind(corev1.SchemeGroupVersion.WithKind("Secret"), &corev1.Secret{})
	saw(t, kind, object("a", "1"), false)
	if s := kind.space("team"); s != nil {
		t.Errorf("it has %d versions", len(s.versions))
	}
}

func TestAKindIsAskedForAgainWhenThatFailed(t *testing.T) {
	kind, lister := relayOf(labels.Everything())
	begun := 0
	kind.begin = func() error {
		if begun++; begun == 1 {
			return errors.New("not yet")
		}
		return nil
	}
	if _, err := lister.list(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("it does not say that it failed")
	}
	for range 2 {
		listed(t, lister, metav1.ListOptions{})
	}
	if begun != 2 {
		t.Errorf("begun %d times, want 2", begun)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheKindsAreAskedForOnce(t *testing.T) {
	code, asked := http.StatusServiceUnavailable, 0
	ask := discovery{known: &sync.Map{}, next: roundTrip(func(*http.Request) (*http.Response, error) {
		asked++
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader("kinds"))}, nil
	})}
	tests := []struct {
		path  string
		code  int
		asked int
	}{
		{"/apis", http.StatusServiceUnavailable, 1}, // what is no answer is asked for again
		{"/apis", http.StatusOK, 2},
		{"/apis", http.StatusOK, 2},
		{"/api", http.StatusOK, 3},
		{"/api/v1/namespaces/team/secrets/a", http.StatusOK, 4},
		{"/api/v1/namespaces/team/secrets/a", http.StatusOK, 5},
	}
	for i, tc := range tests {
		code = tc.code
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api"+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := ask.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != tc.code || string(body) != "kinds" || asked != tc.asked {
			t.Errorf("question %d: answered %d %q, the API server was asked %d times, want %d and %d times", i+1, response.StatusCode, body, asked, tc.code, tc.asked)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
