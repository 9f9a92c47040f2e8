package inspect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/hack/image/archive"
)

// imagePrograms are what hack/image makes an image of.
func imagePrograms(t *testing.T) []archive.Program {
	t.Helper()
	var all []archive.Program
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		all = append(all, archive.Program{
			Name:     "slipway-tiny",
			Binary:   programFor(t, platform, "-trimpath"),
			User:     archive.DefaultUser,
			Labels:   map[string]string{"org.opencontainers.image.version": "v1.2.3"},
			Licenses: map[string][]byte{"LICENSE": []byte("ours\n"), "THIRD-PARTY-LICENSES": []byte("of others\n")},
			Created:  this.Created,
		})
	}
	return all
}

// ociArchive writes an archive for several architectures.
func ociArchive(t *testing.T, tag string, created time.Time, programs ...archive.Program) []byte {
	t.Helper()
	index, err := archive.Index(programs...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := archive.WriteIndex(index, tag, file, created); err != nil {
		t.Fatal(err)
	}
	return read(t, file)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestImages(t *testing.T) {
	programs := imagePrograms(t)
	content := ociArchive(t, "slipway-tiny:v1.2.3", this.Created, programs...)
	if err := this.file("slipway-tiny-v1.2.3.oci.tar", content); err != nil {
		t.Error(err)
	}
	images, err := this.Images(content, "slipway-tiny")
	if err != nil || len(images) != 2 {
		t.Fatalf("%d images, %v, want 2", len(images), err)
	}
	for i, architecture := range []string{"amd64", "arm64"} {
		if got := images[i]; got.Architecture != architecture || !slices.Equal(got.Program, programs[i].Binary) || string(got.Licenses["LICENSE"]) != "ours\n" {
			t.Errorf("image %d is for %s, with a program of %d bytes and the licenses %q", i, got.Architecture, len(got.Program), got.Licenses)
		}
	}
}

func TestImagesThatAreRefused(t *testing.T) {
	// changed returns an archive after a change to its programs.
	changed := func(change func(program *archive.Program)) []byte {
		programs := imagePrograms(t)
		for i := range programs {
			change(&programs[i])
		}
		return ociArchive(t, "slipway-tiny:v1.2.3", this.Created, programs...)
	}
	good := changed(func(*archive.Program) {})
	flipped := slices.Clone(good)
	flipped[len(flipped)/2] ^= 1
	tests := map[string]struct {
		content []byte
		want    string
	}{
		"root":             {changed(func(p *archive.Program) { p.User = 1 }), "as 1:1"},
		"another program":  {changed(func(p *archive.Program) { p.Name = "sh" }), "it runs [/sh]"},
		"another version":  {changed(func(p *archive.Program) { p.Labels = nil }), "its label says version"},
		"no licenses":      {changed(func(p *archive.Program) { p.Licenses = nil }), "its files are"},
		"a file more":      {changed(func(p *archive.Program) { p.Licenses["more"] = []byte("x") }), "its files are"},
		"another time":     {changed(func(p *archive.Program) { p.Created = this.Created.Add(time.Hour) }), "of 2026-01-02 04:04:06"},
		"one architecture": {ociArchive(t, "slipway-tiny:v1.2.3", this.Created, imagePrograms(t)[0]), "want amd64 and arm64"},
		"another tag":      {ociArchive(t, "slipway-tiny:v1.2.2", this.Created, imagePrograms(t)...), "with the tag v1.2.3"},
		"a changed byte":   {flipped, ""},
		"something behind": {append(slices.Clone(good), "#!/bin/sh\n"...), "follows the end"},
	}
	for name, test := range tests {
		err := this.file("slipway-tiny-v1.2.3.oci.tar", test.content)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.want)
		}
	}
}

func TestDockerArchive(t *testing.T) {
	program := imagePrograms(t)[1]
	image, err := archive.Image(program)
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]string{
		"slipway-tiny:v1.2.3":                           "",
		"registry.example.com:5000/slipway-tiny:v1.2.3": "",
		"slipway-tiny:v1.2.4":                           "it is called",
		"registry.example.com/not-slipway-tiny:v1.2.3":  "it is called",
	} {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := archive.Write(image, tag, file); err != nil {
			t.Fatal(err)
		}
		err := this.file("slipway-tiny-v1.2.3-arm64.tar", read(t, file))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", tag, err, want)
		}
		if err := this.file("slipway-tiny-v1.2.3-amd64.tar", read(t, file)); err == nil {
			t.Errorf("%s: an image for arm64 is taken for one for amd64", tag)
		}
	}
}
