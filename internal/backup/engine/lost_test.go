package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wreck does something to every pack whose name begins so, and returns how many there were.
func wreck(t *testing.T, options Options, prefix string, do func(path string) error) int {
	t.Helper()
	found := packs(t, options, prefix)
	for _, path := range found {
		if err := do(path); err != nil {
			t.Fatal(err)
		}
	}
	return len(found)
}

// What is missing in the repository is read again from the source, whether its files have changed or not. Then the new snapshot
// is whole, and so are older ones of the same content. Until then nothing is verified that needs what is missing.
func TestWhatIsLostIsReadAgain(t *testing.T) {
	cut := func(path string) error { return os.Truncate(path, 64) }
	for name, damage := range map[string]func(t *testing.T, options Options) int{
		"a pack is missing": func(t *testing.T, options Options) int { return wreck(t, options, "p", os.Remove) },
		"a pack is cut":     func(t *testing.T, options Options) int { return wreck(t, options, "p", cut) },
	} {
		t.Run(name, func(t *testing.T) {
			options := inFolder(t)
			r := created(t, options)
			source := tree(t)
			write(t, source, "large", noise(1, 5<<20))
			kept(t, r, "one", source)
			stream := noise(2, 3<<20)
			dump := func(r *Repository, run string) {
				t.Helper()
				read := ofStream(&fakeStream{Reader: strings.NewReader(stream)})
				if _, err := r.Snapshot(t.Context(), SnapshotOptions{Run: run, Volume: "dump", Stream: read}); err != nil {
					t.Fatal(err)
				}
			}
			dump(r, "dumped")
			if damage(t, options) == 0 {
				t.Fatal("there was nothing to damage")
			}
			// Some files are as they were, one is elsewhere, one has changed in part.
			if err := os.Rename(filepath.Join(source, "sub/b.txt"), filepath.Join(source, "moved.txt")); err != nil {
				t.Fatal(err)
			}
			write(t, source, "large", "new"+noise(1, 5<<20))
			write(t, source, "sub/b.txt", "second")

			later := opened(t, options)
			for _, run := range []string{"one", "dumped"} {
				_, err := later.Verify(t.Context(), VerifyOptions{Run: run})
				wantKind(t, err, KindCorrupt)
			}
			kept(t, later, "two", source)
			dump(later, "dumped again")
			if err := os.Remove(filepath.Join(source, "moved.txt")); err != nil {
				t.Fatal(err)
			}
			write(t, source, "large", noise(1, 5<<20))
			kept(t, later, "three", source)

			verifier := opened(t, options)
			for _, run := range []string{"two", "three", "dumped again", "dumped", "one"} {
				if _, err := verifier.Verify(t.Context(), VerifyOptions{Run: run, ReadPercent: 100}); err != nil {
					t.Errorf("%s: %v", run, err)
				}
			}
			target, _ := restored(t, verifier, "three")
			if diff := cmp.Diff(look(t, source), look(t, target)); diff != "" {
				t.Errorf("(-source +target):\n%s", diff)
			}
			if _, err := verifier.Maintain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is lost and not in the source any more stays lost: the old snapshot is never verified, and the new one is.
func TestWhatIsLostForGoodIsNotVerified(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	source := tree(t)
	kept(t, r, "one", source)
	wreck(t, options, "p", os.Remove)
	if err := os.Remove(filepath.Join(source, "sub/deep/c.bin")); err != nil {
		t.Fatal(err)
	}
	later := opened(t, options)
	kept(t, later, "two", source)
	for range 2 {
		verifier := opened(t, options)
		_, err := verifier.Verify(t.Context(), VerifyOptions{Run: "one"})
		wantKind(t, err, KindCorrupt)
		if _, err := verifier.Verify(t.Context(), VerifyOptions{Run: "two", ReadPercent: 100}); err != nil {
			t.Error(err)
		}
		// Maintenance takes nothing for done that it cannot do, and makes nothing worse.
		_, err = verifier.Maintain(t.Context())
		wantKind(t, err, KindCorrupt)
	}
	verifier := opened(t, options)
	listed, err := verifier.List(t.Context(), ListOptions{Run: "one"})
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	if _, err := verifier.Expire(t.Context(), ExpireOptions{Snapshots: []string{listed[0].ID}}); err != nil {
		t.Fatal(err)
	}
	if _, err := verifier.Maintain(t.Context()); err != nil {
		t.Errorf("when nothing needs it any more: %v", err)
	}
}

// A pack that was away for a time only does no harm when it is back.
func TestWhatWasAwayIsNotLost(t *testing.T) {
	options := inFolder(t)
	clock := &fakeClock{}
	options.Clock = clock
	r := created(t, options)
	source, other := tree(t), tree(t)
	write(t, source, "once", noise(3, 1<<20))
	kept(t, r, "one", source)
	wreck(t, options, "p", func(path string) error { return os.Rename(path, path+".away") })
	kept(t, opened(t, options), "two", other)
	back, err := filepath.Glob(filepath.Join(options.Location.Filesystem.Path, "p*", "*", "*.away"))
	if err != nil || len(back) == 0 {
		t.Fatal(back, err)
	}
	for _, path := range back {
		if err := os.Rename(path, path[:len(path)-len(".away")]); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 {
		clock.step(25 * time.Hour)
		if _, err := opened(t, options).Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	verifier := opened(t, options)
	if _, err := verifier.Verify(t.Context(), VerifyOptions{ReadPercent: 100}); err != nil {
		t.Error(err)
	}
	target, _ := restored(t, verifier, "one")
	if diff := cmp.Diff(look(t, source), look(t, target)); diff != "" {
		t.Errorf("(-source +target):\n%s", diff)
	}
}

// Data that are damaged, and not missing, are found by who reads them. A new snapshot shares them, so it is not verified either.
func TestWhatIsDamagedIsNotVerified(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	source := tree(t)
	kept(t, r, "one", source)
	wreck(t, options, "p", func(path string) error {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i := 64; i < len(raw); i += 16 {
			raw[i] ^= 1
		}
		return os.WriteFile(path, raw, 0o600)
	})
	later := opened(t, options)
	for _, run := range []string{"two", "three"} {
		if _, err := later.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: run, ReadAll: run == "three"}); err != nil {
			t.Fatal(err)
		}
		_, err := opened(t, options).Verify(t.Context(), VerifyOptions{Run: run, ReadPercent: 100})
		wantKind(t, err, KindCorrupt)
	}
}
