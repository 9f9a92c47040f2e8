package inspect

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/hack/release/pack"
)

var this = Release{Version: "v1.2.3", Created: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)}

// programs are compiled once for each platform.
var programs sync.Map

// programFor compiles the smallest program there is.
func programFor(t *testing.T, platform string, flags ...string) []byte {
	t.Helper()
	key := platform + strings.Join(flags, " ")
	if program, known := programs.Load(key); known {
		return program.([]byte)
	}
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "main.go"), filepath.Join(folder, "tiny")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	system, architecture, _ := strings.Cut(platform, "/")
	build := exec.Command("go", append(append([]string{"build"}, flags...), "-o", binary, source)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+architecture)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	programs.Store(key, content)
	return content
}

// pluginFiles are what an archive of the plugin has to hold.
func pluginFiles(t *testing.T, platform string) []pack.File {
	t.Helper()
	name := "kubectl-slipway"
	if strings.HasPrefix(platform, "windows/") {
		name += ".exe"
	}
	return []pack.File{
		{Name: "LICENSE", Content: []byte("ours\n")},
		{Name: "THIRD-PARTY-LICENSES", Content: []byte("of others\n")},
		{Name: name, Program: true, Content: programFor(t, platform, "-trimpath")},
	}
}

func tarGz(t *testing.T, files []pack.File) []byte {
	t.Helper()
	content, err := pack.TarGz(files, this.Created)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestPlugin(t *testing.T) {
	if err := this.file("kubectl-slipway-v1.2.3-linux-amd64.tar.gz", tarGz(t, pluginFiles(t, "linux/amd64"))); err != nil {
		t.Error(err)
	}
	zipped, err := pack.Zip(pluginFiles(t, "windows/amd64"), this.Created)
	if err != nil {
		t.Fatal(err)
	}
	if err := this.file("kubectl-slipway-v1.2.3-windows-amd64.zip", zipped); err != nil {
		t.Error(err)
	}
}

// with returns the files of a plugin after a change.
func with(t *testing.T, change func(files []pack.File) []pack.File) []byte {
	t.Helper()
	return tarGz(t, change(pluginFiles(t, "linux/amd64")))
}

func TestPluginsThatAreRefused(t *testing.T) {
	tests := map[string]struct {
		content []byte
		want    string
	}{
		"a file more": {with(t, func(files []pack.File) []pack.File {
			return append(files, pack.File{Name: "install.sh", Program: true, Content: []byte("#!/bin/sh\n")})
		}), `"install.sh" has no place in it`},
		"a license less": {with(t, func(files []pack.File) []pack.File { return files[1:] }), `"LICENSE" is missing`},
		"an empty license": {with(t, func(files []pack.File) []pack.File {
			files[0].Content = nil
			return files
		}), "LICENSE is empty"},
		"a license that runs": {with(t, func(files []pack.File) []pack.File {
			files[0].Program = true
			return files
		}), "LICENSE has the mode"},
		"a program for another machine": {with(t, func(files []pack.File) []pack.File {
			files[2].Content = programFor(t, "linux/arm64", "-trimpath")
			return files
		}), "is for linux/arm64, not for linux/amd64"},
		"a program that names the folder it was built in": {with(t, func(files []pack.File) []pack.File {
			files[2].Content = programFor(t, "linux/amd64")
			return files
		}), "-trimpath"},
		"a script for a program": {with(t, func(files []pack.File) []pack.File {
			files[2].Content = []byte("#!/bin/sh\n")
			return files
		}), "is for unknown"},
		"a second archive behind it": {bytes.Repeat(tarGz(t, pluginFiles(t, "linux/amd64")), 2), "follow its end"},
		"another time": {func() []byte {
			content, err := pack.TarGz(pluginFiles(t, "linux/amd64"), this.Created.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			return content
		}(), "or other owners, times"},
		"no archive": {bytes.Repeat([]byte("hello"), 100), "gzip"},
	}
	for name, test := range tests {
		err := this.file("kubectl-slipway-v1.2.3-linux-amd64.tar.gz", test.content)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.want)
		}
	}
}

// raw writes a tar archive with any headers.
func raw(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(compressed)
	for _, header := range headers {
		if header.Mode == 0 {
			header.Mode = 0o644
		}
		header.ModTime = this.Created
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// Unpacking such an entry could harm somebody's machine.
func TestEntriesThatAreRefused(t *testing.T) {
	tests := map[string]struct {
		headers []tar.Header
		want    string
	}{
		"a link":            {[]tar.Header{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, "more than a file needs"},
		"a hard link":       {[]tar.Header{{Name: "a", Typeflag: tar.TypeLink, Linkname: "b"}}, "more than a file needs"},
		"a device":          {[]tar.Header{{Name: "a", Typeflag: tar.TypeBlock, Devmajor: 8}}, "more than a file needs"},
		"a pipe":            {[]tar.Header{{Name: "a", Typeflag: tar.TypeFifo}}, "not a plain file"},
		"a folder":          {[]tar.Header{{Name: "a/", Typeflag: tar.TypeDir}}, "not a plain file"},
		"above":             {[]tar.Header{{Name: "../a", Typeflag: tar.TypeReg}}, "not a path below"},
		"the root":          {[]tar.Header{{Name: "/a", Typeflag: tar.TypeReg}}, "not a path below"},
		"above on Windows":  {[]tar.Header{{Name: `..\a`, Typeflag: tar.TypeReg}}, "on Windows"},
		"an owner":          {[]tar.Header{{Name: "a", Typeflag: tar.TypeReg, Uid: 1000}}, "belongs to"},
		"an owner by name":  {[]tar.Header{{Name: "a", Typeflag: tar.TypeReg, Uname: "builder"}}, "belongs to"},
		"a set-user-id bit": {[]tar.Header{{Name: "a", Typeflag: tar.TypeReg, Mode: 0o4755}}, "mode 4755"},
		"for all to write":  {[]tar.Header{{Name: "a", Typeflag: tar.TypeReg, Mode: 0o666}}, "mode 0666"},
		"twice":             {[]tar.Header{{Name: "a", Typeflag: tar.TypeReg}, {Name: "A", Typeflag: tar.TypeReg}}, "twice"},
		"extended headers": {[]tar.Header{{
			Name: "a", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"},
		}}, "more than a file needs"},
	}
	for name, test := range tests {
		if _, err := readTarGz(raw(t, test.headers...)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.want)
		}
	}
}

func TestZipsThatAreRefused(t *testing.T) {
	tests := map[string]struct {
		name string
		mode fs.FileMode
	}{
		"a link":            {"a", fs.ModeSymlink | 0o777},
		"a folder":          {"a/", fs.ModeDir | 0o755},
		"above":             {"../a", 0o644},
		"above on Windows":  {`..\a`, 0o644},
		"a set-user-id bit": {"a", fs.ModeSetuid | 0o755},
	}
	for name, test := range tests {
		var buffer bytes.Buffer
		writer := zip.NewWriter(&buffer)
		header := &zip.FileHeader{Name: test.name}
		header.SetMode(test.mode)
		if _, err := writer.CreateHeader(header); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := readZip(buffer.Bytes()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// Some programs read an archive from its end, others from its start: they would see different things.
	zipped, err := pack.Zip(pluginFiles(t, "windows/amd64"), this.Created)
	if err != nil {
		t.Fatal(err)
	}
	if err := this.file("kubectl-slipway-v1.2.3-windows-amd64.zip", append([]byte("#!/bin/sh\n"), zipped...)); err == nil {
		t.Error("something in front of the archive: no error")
	}
}

func TestCharts(t *testing.T) {
	chart := pack.File{Name: "slipway/Chart.yaml", Content: []byte("name: slipway\n")}
	tests := map[string]struct {
		files []pack.File
		want  string
	}{
		"a chart":             {[]pack.File{chart, {Name: "slipway/templates/crd.yaml"}}, ""},
		"a file beside it":    {[]pack.File{chart, {Name: "other/Chart.yaml"}}, "not a file of the chart"},
		"a program in it":     {[]pack.File{chart, {Name: "slipway/hook", Program: true}}, "not a file of the chart"},
		"without description": {[]pack.File{{Name: "slipway/values.yaml"}}, "has no slipway/Chart.yaml"},
	}
	for name, test := range tests {
		err := this.file("slipway-1.2.3.tgz", tarGz(t, test.files))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Repack turns a chart that helm packaged into one that this package accepts.
func TestRepack(t *testing.T) {
	packaged := raw(t, tar.Header{Name: "slipway/values.yaml", Typeflag: tar.TypeReg, Uid: 1000, Uname: "builder", Mode: 0o600},
		tar.Header{Name: "slipway/Chart.yaml", Typeflag: tar.TypeReg})
	if err := this.file("slipway-1.2.3.tgz", packaged); err == nil {
		t.Error("an archive with an owner is accepted")
	}
	again, err := Repack(packaged, this.Created)
	if err != nil {
		t.Fatal(err)
	}
	if err := this.file("slipway-1.2.3.tgz", again); err != nil {
		t.Error(err)
	}
	if _, err := Repack(raw(t, tar.Header{Name: "slipway/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), this.Created); err == nil {
		t.Error("a chart with a link is accepted")
	}
}

func TestFolder(t *testing.T) {
	write := func(folder, name string, content []byte, mode fs.FileMode) {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		change func(folder string)
		want   string
	}{
		"a release":            {func(string) {}, ""},
		"a file of no kind":    {func(folder string) { write(folder, "run.sh", nil, 0o644) }, "run.sh: no such file is part of a release"},
		"a file that runs":     {func(folder string) { write(folder, "install.yaml", nil, 0o755) }, "install.yaml: mode"},
		"of another version":   {func(folder string) { write(folder, "slipway-1.2.4.tgz", tarGz(t, nil), 0o644) }, "is of v1.2.4"},
		"a program for a text": {func(folder string) { write(folder, "install.yaml", []byte("\x7fELF\x00"), 0o644) }, "is not text"},
		"a link": {func(folder string) {
			if err := os.Symlink("/etc/passwd", filepath.Join(folder, "slipway.yaml")); err != nil {
				t.Fatal(err)
			}
		}, "slipway.yaml: mode"},
	}
	for name, test := range tests {
		folder := t.TempDir()
		write(folder, "install.yaml", []byte("kind: List\n"), 0o644)
		test.change(folder)
		err := this.Folder(folder)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
