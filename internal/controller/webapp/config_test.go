package webapp

import (
	"crypto/sha256"
	"testing"

	"github.com/google/go-cmp/cmp"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func TestConfigRefsNameTheFieldTheyComeFrom(t *testing.T) {
	ref := func(name string) *slipwayv1alpha1.LocalReference { return &slipwayv1alpha1.LocalReference{Name: name} }
	spec := slipwayv1alpha1.WebAppSpec{
		EnvFrom: []slipwayv1alpha1.EnvFromSource{{SecretRef: ref("db"), Keys: []string{"B", "A"}}, {ConfigMapRef: ref("settings"), Optional: true}},
		Files:   []slipwayv1alpha1.FileSource{{SecretRef: ref("tls"), MountPath: "/tls"}},
	}
	want := []configRef{
		{kind: "Secret", name: "db", keys: []string{"A", "B"}, field: "spec.envFrom[0].secretRef"},
		{kind: "ConfigMap", name: "settings", optional: true, field: "spec.envFrom[1].configMapRef"},
		{kind: "Secret", name: "tls", field: "spec.files[0].secretRef"},
	}
	if diff := cmp.Diff(want, configRefs(spec), cmp.AllowUnexported(configRef{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestADigestChangesWithTheKeysThatAreUsed(t *testing.T) {
	data := func(pairs ...string) map[string][]byte {
		content := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			content[pairs[i]] = []byte(pairs[i+1])
		}
		return content
	}
	whole, keyed := configRef{}, configRef{keys: []string{"A"}}
	tests := map[string]struct {
		ref  configRef
		a, b map[string][]byte
		same bool
	}{
		"same content":               {whole, data("A", "1", "B", "2"), data("B", "2", "A", "1"), true},
		"another value":              {whole, data("A", "1"), data("A", "2"), false},
		"a new key":                  {whole, data("A", "1"), data("A", "1", "B", ""), false},
		"a key that is not used":     {keyed, data("A", "1", "B", "1"), data("A", "1", "B", "2"), true},
		"a key that is used":         {keyed, data("A", "1"), data("A", "2"), false},
		"the border moved":           {whole, data("A", "1B", "C", ""), data("A", "1", "BC", ""), false},
		"key and value change sides": {whole, data("AB", "C"), data("A", "BC"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, _ := hashOf(sha256.New(), tc.ref, tc.a)
			b, _ := hashOf(sha256.New(), tc.ref, tc.b)
			if (a == b) != tc.same {
				t.Errorf("hashes %s and %s, same: %v", a, b, tc.same)
			}
		})
	}
	if _, missing := hashOf(sha256.New(), keyed, data("B", "1")); missing != "A" {
		t.Errorf("missing key %q, want A", missing)
	}
}

func TestRecordedDigestsAreReadBack(t *testing.T) {
	digests := map[string]digest{
		"Secret/db#A,B": {version: "7", hash: "c0ffee"}, "ConfigMap/settings": {}, "ConfigMap/settings#A": {},
		"Secret/db#A,C": {version: "7", hash: "cafe", missingKey: "C"},
	}
	if diff := cmp.Diff(digests, recordedDigests(encodeDigests(digests)), cmp.AllowUnexported(digest{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatV010RecordedDoesNotTellWhetherAKeyIsMissing(t *testing.T) {
	want := map[string]digest{"Secret/db#A,B": {version: "7", hash: "c0ffee", missingUnknown: true}, "Secret/db": {version: "7", hash: "cafe"}}
	if diff := cmp.Diff(want, recordedDigests(`{"Secret/db#A,B":"7/c0ffee","Secret/db":"7/cafe"}`), cmp.AllowUnexported(digest{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Somebody may write anything into the annotation: the content is then read again.
func FuzzRecordedDigests(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"Secret/db":"7/c0ffee"}`, `{"Secret/db":7}`, `[`, `null`, `{"a":"/"}`, `{"Secret/db#A":"7:A/c0ffee"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		digests := recordedDigests(annotation)
		if again := recordedDigests(encodeDigests(digests)); combine(again) != combine(digests) {
			t.Errorf("%q is read as %v and then as %v", annotation, digests, again)
		}
	})
}
