package generated

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAFileThatIsUpToDateIsNotWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	long := time.Unix(1000000000, 0)
	for _, step := range []struct {
		content string
		written bool
	}{{"one", true}, {"one", false}, {"two", true}} {
		if err := os.Chtimes(file, long, long); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := write(file, func() ([]byte, error) { return []byte(step.content), nil }); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if written := !info.ModTime().Equal(long); written != step.written {
			t.Errorf("%s: written %v, want %v", step.content, written, step.written)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != step.content {
			t.Errorf("the file has %q, %v", got, err)
		}
	}
}

func TestWhatCannotBeMadeWritesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := write(file, func() ([]byte, error) { return Fill("{{.none}}", nil, map[string]string{}) }); err == nil {
		t.Error("a key that there is not is filled in")
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
	if err := write("", func() ([]byte, error) { return nil, nil }); err == nil {
		t.Error("it writes without a name")
	}
}
