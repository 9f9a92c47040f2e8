package webapp

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two uses at their second version. A hash ends with the letter of its content.
const (
	plainA, plainB    = "00000000000000000a", "00000000000000000b"
	keyedA, keyedB    = "hmac-c0ffee00-0a", "hmac-c0ffee00-0b"
	earlierA          = "hmac-decade00-0a"
	secretID, filesID = "Secret/db#PASSWORD", "ConfigMap/files"
)

func useOf(id string, recorded *digest, read *content) use {
	refs := map[string]configRef{
		secretID: {kind: "Secret", name: "db", keys: []string{"PASSWORD"}}, filesID: {kind: "ConfigMap", name: "files"},
	}
	return use{ref: refs[id], recorded: recorded, read: read}
}

func readA() *content { return &content{version: "2", plain: plainA, keyed: keyedA} }

func readB() *content { return &content{version: "2", plain: plainB, keyed: keyedB} }

func TestWhatIsWrittenIsKeyedUnlessTheSameIsWrittenAlready(t *testing.T) {
	noKey := errors.New("no key")
	keyless := func(c *content) *content {
		c.keyed, c.noKey = "", noKey
		return c
	}
	record := func(secret, files string) map[string]digest {
		return map[string]digest{secretID: {version: "1", hash: secret}, filesID: {version: "1", hash: files}}
	}
	both := func(secret, files *content) []use {
		return []use{useOf(secretID, nil, secret), useOf(filesID, nil, files)}
	}
	tests := map[string]struct {
		uses     []use
		recorded map[string]digest
		running  map[string]digest
		// want are the hashes.
		want map[string]string
		err  error
	}{
		"nothing is recorded":                                   {both(readA(), readB()), nil, nil, map[string]string{secretID: keyedA, filesID: keyedB}, nil},
		"the same is recorded, keyed":                           {both(readA(), readB()), record(keyedA, keyedB), record(keyedA, keyedB), map[string]string{secretID: keyedA, filesID: keyedB}, nil},
		"the same is recorded without a key":                    {both(readA(), readB()), record(plainA, plainB), record(plainA, plainB), map[string]string{secretID: plainA, filesID: plainB}, nil},
		"something else is recorded without a key":              {both(readA(), readB()), record(plainB, plainB), record(plainB, plainB), map[string]string{secretID: keyedA, filesID: keyedB}, nil},
		"the record is gone, and the pods have none with a key": {both(readA(), readB()), nil, record(plainA, plainB), map[string]string{secretID: plainA, filesID: plainB}, nil},
		"a failed change without a key is recorded":             {both(readA(), readB()), record(plainA, plainB), record(plainB, plainB), map[string]string{secretID: plainA, filesID: plainB}, nil},
		"a failed change is taken back to what has no key":      {both(readA(), readB()), record(keyedB, keyedB), record(plainA, plainB), map[string]string{secretID: plainA, filesID: plainB}, nil},
		"it was recorded with another key":                      {both(readA(), readB()), record(earlierA, keyedB), record(earlierA, keyedB), map[string]string{secretID: keyedA, filesID: keyedB}, nil},
		"a use more than without a key":                         {both(readA(), readB()), map[string]digest{secretID: {hash: plainA}}, map[string]digest{secretID: {hash: plainA}}, map[string]string{secretID: keyedA, filesID: keyedB}, nil},
		"one does not exist":                                    {both(readA(), nil), nil, nil, map[string]string{secretID: keyedA, filesID: ""}, nil},
		"there is no key":                                       {both(keyless(readA()), readB()), record(plainB, plainB), record(plainB, plainB), nil, noKey},
		"there is no key, and none is needed":                   {both(keyless(readA()), keyless(readB())), record(plainA, plainB), record(plainA, plainB), map[string]string{secretID: plainA, filesID: plainB}, nil},
		"there is no key, and no content":                       {both(nil, nil), nil, nil, map[string]string{secretID: "", filesID: ""}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			running := ""
			if tc.running != nil {
				running = combine(tc.running)
			}
			digests, err := choose(tc.uses, tc.recorded, running)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if err != nil {
				return
			}
			got := map[string]string{}
			for id, d := range digests {
				got[id] = d.hash
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The record of the versions that exist is a record of their content, whatever it was made
// with.
func TestWhatIsRecordedOfTheSameVersionsStays(t *testing.T) {
	at := func(hash string) *digest { return &digest{version: "2", hash: hash} }
	record := func(secret, files digest) map[string]digest {
		return map[string]digest{secretID: secret, filesID: files}
	}
	tests := map[string]struct {
		uses     []use
		recorded map[string]digest
		want     bool
	}{
		"without a key":       {[]use{useOf(secretID, at(plainA), nil), useOf(filesID, at(plainB), nil)}, record(*at(plainA), *at(plainB)), true},
		"with another key":    {[]use{useOf(secretID, at(earlierA), nil), useOf(filesID, at(earlierA), nil)}, record(*at(earlierA), *at(earlierA)), true},
		"one does not exist":  {[]use{useOf(secretID, at(keyedA), nil), useOf(filesID, nil, nil)}, record(*at(keyedA), digest{}), true},
		"one is used twice":   {[]use{useOf(secretID, at(keyedA), nil), useOf(secretID, at(keyedA), nil)}, map[string]digest{secretID: *at(keyedA)}, true},
		"one is another":      {[]use{useOf(secretID, at(keyedA), nil), useOf(filesID, nil, readB())}, record(*at(keyedA), digest{version: "1", hash: keyedB}), false},
		"one is gone":         {[]use{useOf(secretID, at(keyedA), nil), useOf(filesID, nil, nil)}, record(*at(keyedA), digest{version: "1", hash: keyedB}), false},
		"one has come":        {[]use{useOf(secretID, at(keyedA), nil), useOf(filesID, nil, readB())}, record(*at(keyedA), digest{}), false},
		"one is used no more": {[]use{useOf(secretID, at(keyedA), nil)}, record(*at(keyedA), *at(keyedB)), false},
		"one is not recorded": {[]use{useOf(secretID, at(keyedA), nil), useOf(filesID, nil, nil)}, map[string]digest{secretID: *at(keyedA)}, false},
		"nothing is recorded": {[]use{useOf(secretID, nil, readA())}, nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			digests, ok := asRecorded(tc.uses, tc.recorded)
			if ok != tc.want {
				t.Fatalf("it stays: %v, want %v", ok, tc.want)
			}
			if diff := cmp.Diff(tc.recorded, digests, cmp.AllowUnexported(digest{})); ok && diff != "" {
				t.Errorf("-recorded +got:\n%s", diff)
			}
		})
	}
}

// Somebody may write another hash beside the right version.
func TestWhatWasReadIsBelievedBeforeWhatIsRecorded(t *testing.T) {
	tests := map[string]struct {
		read *content
		hash string
		want bool
	}{
		"nothing was read":       {nil, plainB, false},
		"the same":               {readA(), keyedA, false},
		"the same without a key": {readA(), plainA, false},
		"another":                {readA(), keyedB, true},
		"another without a key":  {readA(), plainB, true},
		"nothing":                {readA(), "", true},
		"that of another key":    {readA(), earlierA, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.read.contradicts(digest{version: "2", hash: tc.hash}); got != tc.want {
				t.Errorf("contradicted: %v, want %v", got, tc.want)
			}
		})
	}
}

// A node gives the content of an immutable object that it has once read, as long as a pod of it uses the object.
func TestAnImmutableObjectThatWasMadeAgainIsNotWhatPodsGet(t *testing.T) {
	made := metav1.NewTime(time.Unix(1000, 0))
	older, younger := metav1.NewTime(time.Unix(999, 0)), metav1.NewTime(time.Unix(1000, 0))
	pod := func(created metav1.Time, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}, Status: corev1.PodStatus{Phase: phase}}
	}
	tests := map[string]struct {
		hash      string
		immutable bool
		pod       corev1.Pod
		want      bool
	}{
		"other content, an older pod":    {keyedB, true, pod(older, corev1.PodRunning), true},
		"other content, without a key":   {plainB, true, pod(older, corev1.PodPending), true},
		"the same content":               {keyedA, true, pod(older, corev1.PodRunning), false},
		"nobody can tell":                {earlierA, true, pod(older, corev1.PodRunning), false},
		"it was not there":               {"", true, pod(older, corev1.PodRunning), false},
		"it can change":                  {keyedB, false, pod(older, corev1.PodRunning), false},
		"a younger pod":                  {keyedB, true, pod(younger, corev1.PodRunning), false},
		"a pod that has ended":           {keyedB, true, pod(older, corev1.PodFailed), false},
		"another one that has ended too": {keyedB, true, pod(older, corev1.PodSucceeded), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			read := readA()
			read.immutable, read.created = tc.immutable, made
			got := useOf(filesID, nil, read).replaced(map[string]digest{filesID: {version: "1", hash: tc.hash}}, []corev1.Pod{tc.pod})
			if (got != nil) != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}
