package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unpacked is a folder as packages leave it, and what it must not be mistaken for.
func unpacked(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"usr/bin", "etc", "data"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"usr/bin/dash": "shell", "usr/bin/su": "root for everybody", "etc/services": "ssh\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{
		"usr/bin/dash": 0o755, "usr/bin/su": 0o755 | os.ModeSetuid | os.ModeSetgid, "data": 0o777 | os.ModeSticky, "etc": 0o750 | os.ModeSetgid,
	} {
		if err := os.Chmod(filepath.Join(folder, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"usr/bin/sh": "dash", "lib": "/usr/lib", "usr/out": "../../../../etc/shadow"} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// listed is a line for each file of a layer.
func listed(t *testing.T, layer io.Reader) []string {
	t.Helper()
	var lines []string
	reader := tar.NewReader(layer)
	for {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %c %04o %d:%d %d %q %q", h.Name, h.Typeflag, h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), h.Linkname, content))
	}
}

func TestTreeImage(t *testing.T) {
	tree := Tree{Folder: unpacked(t), Architecture: "arm64", User: 1000, Env: []string{"PATH=/usr/bin"}, Labels: map[string]string{"a": "b"}}
	image, err := TreeImage(tree)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{config.OS, config.Architecture, config.Config.User, len(config.Config.Entrypoint), config.Config.Env, config.Config.Labels, config.Created.Unix()}
	want := []any{"linux", "arm64", "1000:1000", 0, []string{"PATH=/usr/bin"}, tree.Labels, int64(0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
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
	files := []string{
		`data/ 5 1777 0:0 0 "" ""`,
		`etc/ 5 0750 0:0 0 "" ""`,
		`etc/group 0 0644 0:0 0 "" "root:x:0:\napp:x:1000:\n"`,
		`etc/passwd 0 0644 0:0 0 "" "root:x:0:0:root:/:/nologin\napp:x:1000:1000:app:/tmp:/nologin\n"`,
		`etc/services 0 0644 0:0 0 "" "ssh\n"`,
		`lib 2 0777 0:0 0 "/usr/lib" ""`,
		`tmp/ 5 1777 0:0 0 "" ""`,
		`usr/ 5 0755 0:0 0 "" ""`,
		`usr/bin/ 5 0755 0:0 0 "" ""`,
		`usr/bin/dash 0 0755 0:0 0 "" "shell"`,
		`usr/bin/sh 2 0777 0:0 0 "dash" ""`,
		`usr/bin/su 0 0755 0:0 0 "" "root for everybody"`,
		`usr/out 2 0777 0:0 0 "../../../../etc/shadow" ""`,
	}
	if diff := cmp.Diff(files, listed(t, content)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestTreeImageIsReproducible(t *testing.T) {
	digest := func() string {
		image, err := TreeImage(Tree{Folder: unpacked(t), Architecture: "amd64", User: DefaultUser, Created: created})
		if err != nil {
			t.Fatal(err)
		}
		d, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d.String()
	}
	if first, second := digest(), digest(); first != second {
		t.Errorf("the same files give %s and %s", first, second)
	}
}

func TestTreeImageRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		add  func(folder string) error
		says string
	}{
		"a named pipe": {func(folder string) error { return syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o644) }, "pipe is neither"},
		"a user list": {func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "etc/passwd"), []byte("root::0:0::/:/bin/sh\n"), 0o644)
		}, "etc/passwd"},
		"a user list elsewhere": {func(folder string) error { return os.Symlink("/etc/passwd", filepath.Join(folder, "etc/passwd")) }, "etc/passwd"},
		"a link in the place of a folder": {func(folder string) error {
			return os.Symlink("/var/tmp", filepath.Join(folder, "tmp"))
		}, "tmp"},
		"no folder": {os.RemoveAll, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := unpacked(t)
			if err := tc.add(folder); err != nil {
				t.Fatal(err)
			}
			_, err := TreeImage(Tree{Folder: folder, Architecture: "amd64", User: DefaultUser})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("the error is %v, want one that says %q", err, tc.says)
			}
		})
	}
}

// A file that is exchanged for a link after it was listed is not read from outside of the folder.
func TestTreeReadsNothingOutsideOfItsFolder(t *testing.T) {
	folder := unpacked(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("shell"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	entries, err := treeEntries(root, DefaultUser)
	if err != nil {
		t.Fatal(err)
	}
	dash := filepath.Join(folder, "usr/bin/dash")
	if err := errors.Join(os.Remove(dash), os.Symlink(secret, dash)); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(entries, func(e treeEntry) bool { return e.header.Name == "usr/bin/dash" })
	var layer bytes.Buffer
	if err := entries[at].write(tar.NewWriter(&layer), root); err == nil || strings.Contains(layer.String(), "shell") {
		t.Errorf("a link out of the folder was followed: %v", err)
	}
}
