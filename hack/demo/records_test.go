package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRecordsAreOfOneMomentOrNot(t *testing.T) {
	tests := map[string]struct {
		first, second string
		want          string
	}{
		"nothing yet":                    {"", "", "0\n"},
		"the same":                       {"0\n1\n", "0\n1\n", "2\n"},
		"one ahead":                      {"0\n1\n2\n", "0\n1\n", "3\n"},
		"the first is too far ahead":     {"0\n1\n2\n", "0\n", "not of one moment"},
		"the second is ahead":            {"0\n", "0\n1\n", "not of one moment"},
		"a number is missing":            {"0\n2\n", "0\n1\n", `line 1 is "2"`},
		"a number is there for a second": {"0\n0\n", "0\n", `line 1 is "0"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, content := range map[string]string{"first": tc.first, "second": tc.second} {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			got := ""
			if err := recordsCommand(t.Context(), []string{"check", folder}, &out); err != nil {
				got = err.Error()
			}
			if got += out.String(); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A writer that is ended at any point goes on where it was.
func TestAWriterOfRecordsGoesOn(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "first"), []byte("0\n1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "second"), []byte("0\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- recordsCommand(ctx, []string{"write", folder}, nil) }()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for wrote := false; !wrote; { // go test ends it when nothing is ever written
		<-ticker.C
		second, err := os.ReadFile(filepath.Join(folder, "second"))
		wrote = err != nil || bytes.Count(second, []byte("\n")) > 3
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := recordsCommand(t.Context(), []string{"check", folder}, &out); err != nil || out.String() == "3\n" {
		t.Errorf("got %q, %v, want more than 3", out.String(), err)
	}
}
