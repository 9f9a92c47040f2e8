// Package archive turns one static program into a container image, without a
// container engine and without a registry.
//
// The same input always gives the same image digest: every time stamp is zero
// and every file is written in a fixed order.
package archive

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// DefaultUser is the user that images run as unless told otherwise: a number,
// because the kubelet can prove of a number that it is not root.
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
}

var programName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

// Image builds the image: the program at /<name>, a user, a group and /tmp.
func Image(program Program) (v1.Image, error) {
	if !programName.MatchString(program.Name) {
		return nil, fmt.Errorf("program name %q is not a plain file name", program.Name)
	}
	if err := checkStatic(program.Binary); err != nil {
		return nil, fmt.Errorf("program %s: %w", program.Name, err)
	}
	content, err := layerContent(program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	return withConfig(image, program)
}

func withConfig(image v1.Image, program Program) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS = "linux"
	config.Architecture = runtime.GOARCH
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", program.User, program.User),
		Entrypoint: []string{"/" + program.Name},
		Env:        []string{"PATH=/"},
		WorkingDir: "/",
		Labels:     program.Labels,
	}
	return mutate.ConfigFile(image, config)
}

// layerContent writes the image's files in a fixed order with zero times.
func layerContent(program Program) ([]byte, error) {
	user := fmt.Sprintf("root:x:0:0:root:/:/nologin\napp:x:%d:%d:app:/tmp:/nologin\n", program.User, program.User)
	group := fmt.Sprintf("root:x:0:\napp:x:%d:\n", program.User)
	files := []struct {
		path    string
		mode    int64
		content []byte
	}{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, content: []byte(group)},
		{path: "etc/passwd", mode: 0o644, content: []byte(user)},
		{path: "tmp/", mode: 0o1777},
		{path: program.Name, mode: 0o755, content: program.Binary},
	}

	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, file := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     file.path,
			Mode:     file.mode,
			Size:     int64(len(file.content)),
			ModTime:  time.Unix(0, 0).UTC(),
			Format:   tar.FormatUSTAR,
		}
		if path.Clean(file.path)+"/" == file.path {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(file.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// checkStatic refuses a program that needs a dynamic linker: an image without
// one would only say "no such file or directory" when it starts.
func checkStatic(binary []byte) error {
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("not a Linux program: %w", err)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("it is linked dynamically; build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// Write saves the image under tag as an archive that docker load and ctr images
// import both read. The file appears whole or not at all.
func Write(image v1.Image, tag, output string) error {
	reference, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("tag %q: %w", tag, err)
	}
	file, err := os.CreateTemp(path.Dir(output), path.Base(output)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := tarball.Write(reference, image, file); err != nil {
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
