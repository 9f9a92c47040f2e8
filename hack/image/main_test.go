package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestSourceDate(t *testing.T) {
	for text, want := range map[string]time.Time{
		"":           time.Unix(0, 0).UTC(),
		"0":          time.Unix(0, 0).UTC(),
		"1767323045": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		if got, err := sourceDate(text); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1", "1.5", "99999999999999999999"} {
		if _, err := sourceDate(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestTree(t *testing.T) {
	output := filepath.Join(t.TempDir(), "image.tar")
	arguments := []string{"tree", "--folder", "archive", "--architecture", "amd64", "--env", "PATH=/", "--tag", "a:b", "--output", output}
	if err := run(arguments); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(output, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Env, []string{"PATH=/"}) {
		t.Errorf("the configuration is %+v", config.Config)
	}
}

func TestRunRefuses(t *testing.T) {
	output := filepath.Join(t.TempDir(), "image.tar")
	for name, arguments := range map[string][]string{
		"no command":        nil,
		"another command":   {"push"},
		"no program":        {"build", "--tag", "a:b", "--output", output},
		"no tag":            {"build", "--binary", "main.go", "--output", output},
		"root":              {"build", "--binary", "main.go", "--tag", "a:b", "--output", output, "--user", "0"},
		"what does not run": {"build", "--binary", "main.go", "--tag", "a:b", "--output", output},
		"two for one image": {"build", "--binary", "main.go", "--binary", "main.go", "--tag", "a:b", "--output", output},
		"no folder":         {"tree", "--architecture", "amd64", "--tag", "a:b", "--output", output},
		"no architecture":   {"tree", "--folder", "archive", "--tag", "a:b", "--output", output},
		"a folder for root": {"tree", "--folder", "archive", "--architecture", "amd64", "--tag", "a:b", "--output", output, "--user", "0"},
		"another setting":   {"tree", "--folder", "archive", "--architecture", "amd64", "--tag", "a:b", "--output", output, "--env", "PATH"},
		"a missing license": {"index", "--binary", "main.go", "--tag", "a:b", "--output", output, "--license", "missing"},
	} {
		if err := run(arguments); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
