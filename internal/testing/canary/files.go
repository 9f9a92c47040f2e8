package canary

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files returns the content of all files of a folder, as they are on the disk. There must be some.
func Files(t testing.TB, folder string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all.Write(raw)
		return err
	})
	if err != nil || all.Len() == 0 {
		t.Fatalf("the files of %s have %d bytes: %v", folder, all.Len(), err)
	}
	return all.String()
}
