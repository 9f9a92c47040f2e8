package app

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestReadKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	first, err := readKey(path)
	if err != nil || len(first) != keyBytes {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	again, err := readKey(path)
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("another key is read (%v)", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readKey(path); err == nil {
		t.Error("a key that is too short is taken")
	}
}
