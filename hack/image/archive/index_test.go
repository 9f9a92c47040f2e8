package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// both is one program for each architecture that images are for.
func both(t *testing.T) []Program {
	t.Helper()
	licenses := map[string][]byte{"NOTICES": []byte("of others\n"), "LICENSE": []byte("ours\n")}
	return []Program{
		{Name: "tiny", Binary: programFor(t, "amd64"), User: DefaultUser, Licenses: licenses, Created: created},
		{Name: "tiny", Binary: programFor(t, "arm64"), User: DefaultUser, Licenses: licenses, Created: created},
	}
}

// unpack writes the files of an archive into a folder, and returns a line for each.
func unpack(t *testing.T, archive string) (folder string, lines []string) {
	t.Helper()
	folder = t.TempDir()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return folder, lines
		}
		if err != nil {
			t.Fatal(err)
		}
		name := header.Name
		if strings.HasPrefix(name, "blobs/sha256/") && len(name) > len("blobs/sha256/") {
			name = "blobs/sha256/HASH"
		}
		lines = append(lines, fmt.Sprintf("%s %c %04o %d:%d %s", name, header.Typeflag, header.Mode, header.Uid, header.Gid, header.ModTime.UTC().Format(time.RFC3339)))
		path := filepath.Join(folder, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else if content, readErr := io.ReadAll(reader); readErr != nil {
			err = readErr
		} else {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestIndex(t *testing.T) {
	index, err := Index(both(t)...)
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "tiny.oci.tar")
	if err := WriteIndex(index, "slipway-tiny:v1.2.3", output, created); err != nil {
		t.Fatal(err)
	}
	folder, lines := unpack(t, output)
	want := []string{"blobs/ 5 0755 0:0 2026-01-02T03:04:05Z", "blobs/sha256/ 5 0755 0:0 2026-01-02T03:04:05Z"}
	for range 7 { // a layer, a configuration and a manifest of each, and the index
		want = append(want, "blobs/sha256/HASH 0 0644 0:0 2026-01-02T03:04:05Z")
	}
	want = append(want, "index.json 0 0644 0:0 2026-01-02T03:04:05Z", "oci-layout 0 0644 0:0 2026-01-02T03:04:05Z")
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	outer, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	annotations := map[string]string{
		"org.opencontainers.image.ref.name": "v1.2.3",
		"io.containerd.image.name":          "docker.io/library/slipway-tiny:v1.2.3",
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].MediaType != types.OCIImageIndex {
		t.Fatalf("index.json names %+v, want one index", manifest.Manifests)
	}
	if diff := cmp.Diff(annotations, manifest.Manifests[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	inner, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(inner); err != nil {
		t.Error(err)
	}
	checkPlatforms(t, inner)
}

// checkPlatforms checks that each manifest is of the platform that the index says.
func checkPlatforms(t *testing.T, index v1.ImageIndex) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, descriptor := range manifest.Manifests {
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		media, err := layers[0].MediaType()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s/%s is %s/%s, %s, %s", descriptor.Platform.OS, descriptor.Platform.Architecture,
			config.OS, config.Architecture, config.Created.UTC().Format(time.RFC3339), media))
	}
	want := []string{
		"linux/amd64 is linux/amd64, 2026-01-02T03:04:05Z, application/vnd.oci.image.layer.v1.tar+gzip",
		"linux/arm64 is linux/arm64, 2026-01-02T03:04:05Z, application/vnd.oci.image.layer.v1.tar+gzip",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestLicenses(t *testing.T) {
	content, err := layerContent(both(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "layer.tar")
	if err := os.WriteFile(archive, content, 0o600); err != nil {
		t.Fatal(err)
	}
	_, lines := unpack(t, archive)
	want := []string{
		"etc/ 5 0755 0:0 2026-01-02T03:04:05Z", "etc/group 0 0644 0:0 2026-01-02T03:04:05Z", "etc/passwd 0 0644 0:0 2026-01-02T03:04:05Z",
		"tmp/ 5 1777 0:0 2026-01-02T03:04:05Z", "licenses/ 5 0755 0:0 2026-01-02T03:04:05Z", "licenses/LICENSE 0 0644 0:0 2026-01-02T03:04:05Z",
		"licenses/NOTICES 0 0644 0:0 2026-01-02T03:04:05Z", "tiny 0 0755 0:0 2026-01-02T03:04:05Z",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestContainerdName(t *testing.T) {
	for tag, want := range map[string]string{
		"slipway-tiny:v1":                       "docker.io/library/slipway-tiny:v1",
		"registry.example.com/team/tiny:v1":     "registry.example.com/team/tiny:v1",
		"registry.example.com:5000/team/tiny:2": "registry.example.com:5000/team/tiny:2",
	} {
		reference, err := name.NewTag(tag)
		if err != nil {
			t.Fatal(err)
		}
		if got := containerdName(reference); got != want {
			t.Errorf("%s is %s, want %s", tag, got, want)
		}
	}
}

func TestIndexRefuses(t *testing.T) {
	programs := both(t)
	tests := map[string][]Program{
		"none":                     nil,
		"two for one architecture": {programs[0], programs[0]},
		"what is not a program":    {programs[0], {Name: "tiny", Binary: []byte("#!/bin/sh\n")}},
	}
	for name, programs := range tests {
		if _, err := Index(programs...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The same programs give the same archive, byte for byte.
func TestWriteIndexIsReproducible(t *testing.T) {
	programs := both(t)
	write := func() string {
		index, err := Index(programs...)
		if err != nil {
			t.Fatal(err)
		}
		output := filepath.Join(t.TempDir(), "tiny.oci.tar")
		if err := WriteIndex(index, "slipway-tiny:v1.2.3", output, created); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if first, second := write(), write(); first != second {
		t.Error("two archives of the same programs differ")
	}
}
