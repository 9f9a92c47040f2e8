// Package archive turns one static program into a container image, without a
// container engine and without a registry.
//
// The same input always gives the same image digest: every time stamp is given
// and every file is written in a fixed order.
//
//	archive.go  an image of one program
//	index.go    an image for several architectures
//	layer.go    the files of the layer of a program
//	tree.go     an image that is made of a folder
package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// DefaultUser is the user that images run as by default. It is a number, because
// the kubelet cannot tell whether a user name means root.
const DefaultUser = 65532

// Program says what goes into an image.
type Program struct {
	// Name is the file name of the program in the image's root directory.
	Name string
	// Binary is the content of the statically linked program.
	Binary []byte
	// User is the numeric user and group the program runs as.
	User int
	// Labels are the image's labels.
	Labels map[string]string
	// Licenses are the texts that have to travel with the program, by file name. They
	// are put into the folder /licenses.
	Licenses map[string][]byte
	// Created is the time of the image and of its files. The zero value means 1970.
	Created time.Time
}

// created is the time that the image shows.
func (p Program) created() time.Time {
	if p.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return p.Created.UTC().Truncate(time.Second)
}

var programName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

// Image builds the image: the program at /<name>, a user, a group and /tmp. Its
// architecture is the program's.
func Image(program Program) (v1.Image, error) {
	return build(program, empty.Image, types.DockerLayer)
}

// build adds the program's files and configuration to an empty image.
func build(program Program, base v1.Image, layerType types.MediaType) (v1.Image, error) {
	if !programName.MatchString(program.Name) || slices.Contains(folders, program.Name) {
		return nil, fmt.Errorf("program name %q is not a plain file name", program.Name)
	}
	architecture, err := architecture(program.Binary)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", program.Name, err)
	}
	content, err := layerContent(program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(layerType))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	return withConfig(image, program, architecture)
}

func withConfig(image v1.Image, program Program, architecture string) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS = "linux"
	config.Architecture = architecture
	config.Created = v1.Time{Time: program.created()}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", program.User, program.User),
		Entrypoint: []string{"/" + program.Name},
		Env:        []string{"PATH=/"},
		WorkingDir: "/",
		Labels:     program.Labels,
	}
	return mutate.ConfigFile(image, config)
}

// Write saves the image under tag as an archive that docker load and ctr images
// import both read. The file appears whole or not at all.
func Write(image v1.Image, tag, output string) error {
	reference, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("tag %q: %w", tag, err)
	}
	return writeWhole(output, func(file io.Writer) error {
		return tarball.Write(reference, image, file)
	})
}

// writeWhole lets write fill a file. The file gets its name when it is complete, so
// nobody sees a part of it.
func writeWhole(output string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(path.Dir(output), path.Base(output)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := write(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Chmod(0o644); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), output)
}
