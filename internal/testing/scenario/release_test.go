package scenario

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFixturesOfAReleaseAreNeverRewritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "v1.0.0", "create.yaml")
	first := &Release{Declared: []Step{{Manager: "first"}}, Statuses: map[string]any{}}
	if err := first.Write(file); err != nil {
		t.Fatal(err)
	}
	second := &Release{Declared: []Step{{Manager: "second"}}, Statuses: map[string]any{}}
	if err := second.Write(file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the error is %v, want one that says that it exists", err)
	}
	got, err := ReadRelease(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
