package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatWasVerifiedIsKept(t *testing.T) {
	options := inFolder(t)
	clock := &fakeClock{}
	options.Clock = clock
	r := created(t, options)
	first, second := kept(t, r, "one", tree(t)), kept(t, r, "two", tree(t))
	note := func(percent float64, ids ...string) {
		t.Helper()
		other := opened(t, options)
		result, err := other.Verify(t.Context(), VerifyOptions{Snapshots: ids, ReadPercent: percent})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.NoteVerified(t.Context(), result, percent); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, percents map[string]float64) {
		t.Helper()
		all, err := opened(t, options).List(t.Context(), ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, s := range all {
			if s.Verified == nil {
				continue
			}
			got[s.ID] = s.Verified.ReadPercent
			if age := clock.Since(s.Verified.Time); age < 0 || age > 12*time.Hour {
				t.Errorf("%s: verified %v ago", what, age)
			}
		}
		if diff := cmp.Diff(percents, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}

	want("nothing was verified", map[string]float64{})
	note(5, first.ID)
	want("one was verified", map[string]float64{first.ID: 5})
	clock.step(48 * time.Hour)
	note(100, first.ID, second.ID)
	want("both were verified, one again", map[string]float64{first.ID: 100, second.ID: 100})
	if _, err := r.Expire(t.Context(), ExpireOptions{Snapshots: []string{first.ID}}); err != nil {
		t.Fatal(err)
	}
	want("one has expired", map[string]float64{second.ID: 100})
	left, err := verifications(t.Context(), opened(t, options).rep)
	if err != nil || len(left) != 1 {
		t.Errorf("noted are %v, %v, want the one of the snapshot that is left", left, err)
	}
}

// Two volumes may hold files of the same path, size and time, and of other content: a restored copy of a database beside it.
func TestNothingOfAnotherVolumeIsReused(t *testing.T) {
	r := created(t, inFolder(t))
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	sources := map[string]string{"data-0": "content of the first", "data-1": "content of the other"}
	for _, volume := range []string{"data-0", "data-1"} {
		source := t.TempDir()
		write(t, source, "sub/file", sources[volume][:20])
		for _, path := range []string{"sub/file", "sub", "."} {
			if err := os.Chtimes(filepath.Join(source, path), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: volume, Volume: volume, IgnoreChangeTime: true}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.List(t.Context(), ListOptions{})
	if err != nil || len(all) != 2 || all[0].Volume != "data-0" || all[1].Volume != "data-1" {
		t.Errorf("listed %+v, %v", all, err)
	}
	for volume, content := range sources {
		target, _ := restored(t, r, volume)
		got, err := os.ReadFile(filepath.Join(target, "sub/file"))
		if err != nil || string(got) != content {
			t.Errorf("restored of %s: %q, %v, want %q", volume, got, err, content)
		}
	}
	if _, err := r.Snapshot(t.Context(), SnapshotOptions{Source: t.TempDir(), Run: "x", Volume: "../data"}); KindOf(err) != KindInvalid {
		t.Errorf("a volume with a slash: %v", err)
	}
}
