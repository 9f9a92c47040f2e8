package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Index builds one image for several architectures, as the OCI defines it: a machine
// that pulls it gets the program for its own architecture.
func Index(programs ...Program) (v1.ImageIndex, error) {
	if len(programs) == 0 {
		return nil, errors.New("no program")
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	seen := map[string]bool{}
	for _, program := range programs {
		base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		image, err := build(program, base, types.OCILayer)
		if err != nil {
			return nil, err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		if seen[config.Architecture] {
			return nil, fmt.Errorf("program %s: there is one for %s already", program.Name, config.Architecture)
		}
		seen[config.Architecture] = true
		platform := &v1.Platform{OS: config.OS, Architecture: config.Architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return index, nil
}

// WriteIndex saves the index under tag as an OCI image layout in a tar archive, whose
// files are all of the given time. The file appears whole or not at all.
func WriteIndex(index v1.ImageIndex, tag, output string, created time.Time) error {
	reference, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("tag %q: %w", tag, err)
	}
	folder, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	annotations := map[string]string{
		"org.opencontainers.image.ref.name": reference.TagStr(),
		"io.containerd.image.name":          containerdName(reference),
	}
	target, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := target.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return err
	}
	return writeWhole(output, func(file io.Writer) error {
		return writeFolder(file, os.DirFS(folder), created)
	})
}

// containerdName is the image's name in containerd after an import. Pods use this name.
func containerdName(reference name.Tag) string {
	if rest, ok := strings.CutPrefix(reference.Name(), name.DefaultRegistry+"/"); ok {
		return "docker.io/" + rest
	}
	return reference.Name()
}

// writeFolder writes the files of a folder in the order of their names.
func writeFolder(output io.Writer, folder fs.FS, created time.Time) error {
	writer := tar.NewWriter(output)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: created, Format: tar.FormatUSTAR}
		if entry.IsDir() {
			return writer.WriteHeader(header)
		}
		content, err := fs.ReadFile(folder, path.Clean(name))
		if err != nil {
			return err
		}
		header.Typeflag, header.Name, header.Mode, header.Size = tar.TypeReg, name, 0o644, int64(len(content))
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		_, err = writer.Write(content)
		return err
	})
	return errors.Join(err, writer.Close())
}
