package component

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The versions in the code and in the pinned modules are the same.
func TestVersionsArePinned(t *testing.T) {
	sources := realSources(t)
	tests := map[string]string{
		"kubernetes": "k8s.io/kubernetes " + KubernetesVersion,
		"etcd":       "go.etcd.io/etcd/server/v3 " + EtcdVersion,
		"containerd": "github.com/containerd/containerd/v2 " + ContainerdVersion,
		"coredns":    "github.com/coredns/coredns " + CoreDNSVersion,
	}
	for name, want := range tests {
		content, err := os.ReadFile(filepath.Join(sources, name, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), want) {
			t.Errorf("%s/go.mod does not require %s", name, want)
		}
	}
}

func TestEveryComponentHasSources(t *testing.T) {
	sources := realSources(t)
	for _, c := range All() {
		if _, err := os.Stat(filepath.Join(sources, c.Name, "go.mod")); err != nil {
			t.Error(err)
		}
		if _, err := c.Hash(sources); err != nil {
			t.Error(err)
		}
	}
}

func TestHash(t *testing.T) {
	base := Component{Name: "x", Packages: []Package{{Program: "x", Path: "."}}}
	files := map[string]string{"go.mod": "module x\n", "main.go": "package main\n"}
	first := hash(t, base, files)
	if first != hash(t, base, files) {
		t.Error("the same input has two hashes")
	}
	flags := base
	flags.LinkerFlags = "-X main.version=1"
	tests := map[string]string{
		"other flags":      hash(t, flags, files),
		"other content":    hash(t, base, map[string]string{"go.mod": "module x\n", "main.go": "package main // changed\n"}),
		"one file more":    hash(t, base, map[string]string{"go.mod": "module x\n", "main.go": "package main\n", "go.sum": ""}),
		"moved characters": hash(t, base, map[string]string{"go.mod": "module x\np", "main.go": "ackage main\n"}),
	}
	for name, other := range tests {
		if other == first {
			t.Errorf("%s: the hash is the same", name)
		}
	}
}

func hash(t *testing.T, c Component, files map[string]string) string {
	t.Helper()
	sources := t.TempDir()
	for name, content := range files {
		path := filepath.Join(sources, c.Name, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	result, err := c.Hash(sources)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestBuild(t *testing.T) {
	sources, cache := t.TempDir(), t.TempDir()
	files := map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n"}
	for name, content := range files {
		path := filepath.Join(sources, "tiny", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	leftover := filepath.Join(cache, "tiny.building.1")
	if err := os.Mkdir(leftover, 0o755); err != nil {
		t.Fatal(err)
	}
	tiny := Component{Name: "tiny", Packages: []Package{{Program: "tiny", Path: "."}}, Links: []string{"small"}}
	var progress strings.Builder
	builder := Builder{Sources: sources, Cache: cache, Progress: &progress}
	folders, err := builder.Build(context.Background(), []Component{tiny})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tiny", "small"} {
		if _, err := os.Stat(filepath.Join(folders["tiny"], name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("the leftover of an interrupted build is still there (%v)", err)
	}
	if !strings.Contains(progress.String(), "built tiny in ") {
		t.Errorf("progress = %q", progress.String())
	}

	// What is built stays built.
	progress.Reset()
	again, err := builder.Build(context.Background(), []Component{tiny})
	if err != nil || again["tiny"] != folders["tiny"] || progress.Len() > 0 {
		t.Errorf("second build = %v, %v, progress %q", again, err, progress.String())
	}
}

func TestBuildSaysWhatFailed(t *testing.T) {
	sources := t.TempDir()
	folder := filepath.Join(sources, "broken")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte("package main\n\nfunc main() { undefinedName() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module example.com/broken\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	builder := Builder{Sources: sources, Cache: t.TempDir(), Progress: io.Discard}
	_, err := builder.Build(context.Background(), []Component{{Name: "broken", Packages: []Package{{Program: "broken", Path: "."}}}})
	if err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("err = %v, want the compiler's message", err)
	}
}

func realSources(t *testing.T) string {
	t.Helper()
	sources, err := FindSources()
	if err != nil {
		t.Fatal(err)
	}
	return sources
}
