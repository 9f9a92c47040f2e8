package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kopia/kopia/repo/blob/filesystem"
)

func TestWhatIsNoRepositoryIsAnError(t *testing.T) {
	folder := t.TempDir()
	if _, err := filesystem.New(t.Context(), &filesystem.Options{Path: folder}, true); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := run(t.Context(), folder, "password", "0", target); err == nil {
		t.Error("restored from nothing")
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("the target: %v", err)
	}
}
