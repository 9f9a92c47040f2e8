package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A list that does not show a difference would make a restore that loses something look good.
func TestAListShowsWhatHasChanged(t *testing.T) {
	tests := map[string]func(folder string) error{
		"content":   func(f string) error { return os.WriteFile(filepath.Join(f, "large"), noise(largeSize)[1:], 0o644) },
		"mode":      func(f string) error { return os.Chmod(filepath.Join(f, "empty"), 0o600) },
		"a file":    func(f string) error { return os.Remove(filepath.Join(f, "small/0/0")) },
		"a link":    func(f string) error { return os.Remove(filepath.Join(f, "dangling link")) },
		"hard link": func(f string) error { return os.Remove(filepath.Join(f, "a/hard link")) },
		"time": func(f string) error {
			return os.Rename(filepath.Join(f, "names/file"), filepath.Join(f, "names/other"))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := treeCommand([]string{"make", folder}, nil); err != nil {
				t.Fatal(err)
			}
			before := listed(t, folder)
			if again := listed(t, folder); again != before {
				t.Errorf("two lists differ:\n%s\n%s", before, again)
			}
			if err := change(folder); err != nil {
				t.Fatal(err)
			}
			if listed(t, folder) == before {
				t.Error("the list is the same")
			}
		})
	}
}

// What is flipped is one bit of the largest file, and nothing else.
func TestAFlip(t *testing.T) {
	folder := t.TempDir()
	if err := treeCommand([]string{"flip", folder}, nil); err == nil {
		t.Error("there was nothing to flip")
	}
	for name, size := range map[string]int{"small": 10, "a/large": 1000} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), noise(size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := treeCommand([]string{"flip", folder}, nil); err != nil {
		t.Fatal(err)
	}
	small, err := os.ReadFile(filepath.Join(folder, "small"))
	if err != nil || !bytes.Equal(small, noise(10)) {
		t.Errorf("the small file has changed, %v", err)
	}
	large, err := os.ReadFile(filepath.Join(folder, "a/large"))
	want := noise(1000)
	want[500] ^= 1
	if err != nil || !bytes.Equal(large, want) {
		t.Errorf("the large file is not as it was but for one bit, %v", err)
	}
}

func listed(t *testing.T, folder string) string {
	t.Helper()
	var output bytes.Buffer
	if err := treeCommand([]string{"list", folder}, &output); err != nil {
		t.Fatal(err)
	}
	return output.String()
}

func TestNotesAreKept(t *testing.T) {
	folder := t.TempDir()
	handler := newApp(func(key string) string { return map[string]string{"NOTES_FOLDER": folder}[key] }, "", 0).handler()
	do := func(method, body string) string {
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequest(method, "/notes", strings.NewReader(body)))
		return response.Body.String()
	}
	if got := do(http.MethodGet, ""); got != "there are no notes\n" {
		t.Errorf("before the first note: %q", got)
	}
	do(http.MethodPost, "one")
	do(http.MethodPost, "two")
	if got := do(http.MethodGet, ""); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
}
