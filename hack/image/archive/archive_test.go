package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// staticProgram compiles the smallest program there is.
func staticProgram(t *testing.T) []byte {
	t.Helper()
	return programFor(t, runtime.GOARCH)
}

// programFor compiles it for an architecture.
func programFor(t *testing.T, architecture string) []byte {
	t.Helper()
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "main.go"), filepath.Join(folder, "tiny")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-o", binary, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestImage(t *testing.T) {
	program := Program{Name: "tiny", Binary: staticProgram(t), User: DefaultUser, Labels: map[string]string{"org.opencontainers.image.title": "tiny"}}
	output := filepath.Join(t.TempDir(), "tiny.tar")
	image, err := Image(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(image, "slipway-tiny:dev", output); err != nil {
		t.Fatal(err)
	}

	written, err := tarball.ImageFromPath(output, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := written.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{config.OS, config.Config.User, config.Config.Entrypoint, config.Config.WorkingDir, config.Config.Labels, config.Created.Unix()}
	want := []any{"linux", "65532:65532", []string{"/tiny"}, "/", program.Labels, int64(0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(output) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"slipway-tiny:dev"}, manifest[0].RepoTags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestLayer(t *testing.T) {
	program := Program{Name: "tiny", Binary: staticProgram(t), User: 1000}
	image, err := Image(program)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v, want one", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var got []string
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %c %04o %d:%d %d", header.Name, header.Typeflag, header.Mode, header.Uid, header.Gid, header.ModTime.Unix()))
		if header.Name == "etc/passwd" {
			text, _ := io.ReadAll(reader)
			want := "root:x:0:0:root:/:/nologin\napp:x:1000:1000:app:/tmp:/nologin\n"
			if diff := cmp.Diff(want, string(text)); diff != "" {
				t.Errorf("passwd (-want +got):\n%s", diff)
			}
		}
	}
	want := []string{
		"etc/ 5 0755 0:0 0", "etc/group 0 0644 0:0 0", "etc/passwd 0 0644 0:0 0", "tmp/ 5 1777 0:0 0", "tiny 0 0755 0:0 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestImageIsReproducible(t *testing.T) {
	program := Program{Name: "tiny", Binary: staticProgram(t), User: DefaultUser, Labels: map[string]string{"a": "1", "b": "2", "c": "3"}}
	digest := func() string {
		image, err := Image(program)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest.String()
	}
	first := digest()
	for range 5 {
		if again := digest(); again != first {
			t.Fatalf("digest %s, then %s", first, again)
		}
	}
}

func TestImageRefuses(t *testing.T) {
	binary := staticProgram(t)
	tests := map[string]Program{
		"path as a name":  {Name: "bin/tiny", Binary: binary},
		"no name":         {Binary: binary},
		"not a program":   {Name: "tiny", Binary: []byte("#!/bin/sh\n")},
		"nothing":         {Name: "tiny"},
		"parent's folder": {Name: "..", Binary: binary},
		"folder's name":   {Name: "etc", Binary: binary},
		"license's path":  {Name: "tiny", Binary: binary, Licenses: map[string][]byte{"../LICENSE": nil}},
		"for riscv64":     {Name: "tiny", Binary: programFor(t, "riscv64")},
	}
	for name, program := range tests {
		if _, err := Image(program); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
