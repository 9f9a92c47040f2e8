package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Tree says what goes into an image that is made of a folder, such as unpacked packages. It is for tests: the images of
// a release hold one program and nothing beside it.
type Tree struct {
	// Folder becomes the root directory. It must not hold etc/passwd and etc/group: every image gets its own.
	Folder string
	// Architecture is Go's name of what the programs are for.
	Architecture string
	// User is the numeric user and group that programs run as.
	User int
	// Env is the environment, such as PATH=/usr/bin.
	Env []string
	// Labels are the image's labels.
	Labels map[string]string
	// Created is the time of the image and of its files. The zero value means 1970.
	Created time.Time
}

// TreeImage builds the image: one layer, in which root owns everything and nothing is setuid or setgid. Nothing outside
// of the folder is read: links stay links, whatever they point to. A file that is neither a regular file, a folder nor a
// symbolic link is refused.
func TreeImage(tree Tree) (v1.Image, error) {
	program := Program{User: tree.User, Labels: tree.Labels, Created: tree.Created}
	content, err := treeContent(tree, program.created())
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.DockerLayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	if image, err = withConfig(image, program, tree.Architecture); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Config.Entrypoint, config.Config.Env = nil, tree.Env
	return mutate.ConfigFile(image, config)
}

// treeContent writes the layer.
func treeContent(tree Tree, created time.Time) ([]byte, error) {
	root, err := os.OpenRoot(tree.Folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := treeEntries(root, tree.User)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, entry := range entries {
		entry.header.ModTime = created
		if err := entry.write(writer, root); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.header.Name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// treeEntry is a file of the layer.
type treeEntry struct {
	header *tar.Header
	// content is that of a file which is not in the folder.
	content []byte
}

// treeEntries lists what goes into the layer, in the order of the names.
func treeEntries(root *os.Root, user int) ([]treeEntry, error) {
	var entries []treeEntry
	seen := map[string]bool{}
	err := fs.WalkDir(root.FS(), ".", func(name string, found fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		header, err := treeHeader(root, name, found)
		if err != nil {
			return err
		}
		seen[header.Name] = true
		entries = append(entries, treeEntry{header: header})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, base := range baseFiles(user) {
		isFolder := strings.HasSuffix(base.path, "/")
		switch {
		case isFolder && seen[base.path]:
			continue
		case seen[strings.TrimSuffix(base.path, "/")]:
			return nil, fmt.Errorf("the folder has a file %s, and every image gets its own", strings.TrimSuffix(base.path, "/"))
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: base.path, Mode: base.mode, Size: int64(len(base.content))}
		if isFolder {
			header.Typeflag = tar.TypeDir
		}
		entries = append(entries, treeEntry{header: header, content: base.content})
	}
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(a.header.Name, b.header.Name) })
	return entries, nil
}

// treeHeader describes a file of the folder. Owner, times and extended attributes are not asked for.
func treeHeader(root *os.Root, name string, found fs.DirEntry) (*tar.Header, error) {
	info, err := found.Info()
	if err != nil {
		return nil, err
	}
	header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm())}
	switch {
	case info.Mode().IsRegular():
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		if info.Mode()&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
	case info.Mode().Type() == fs.ModeSymlink:
		header.Typeflag, header.Mode = tar.TypeSymlink, 0o777
		header.Linkname, err = root.Readlink(name)
	default:
		return nil, fmt.Errorf("%s is neither a file, a folder nor a link: %s", name, info.Mode())
	}
	return header, err
}

func (e treeEntry) write(writer *tar.Writer, root *os.Root) error {
	if err := writer.WriteHeader(e.header); err != nil {
		return err
	}
	if e.header.Typeflag != tar.TypeReg {
		return nil
	}
	if e.content != nil {
		_, err := writer.Write(e.content)
		return err
	}
	file, err := root.Open(e.header.Name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(writer, file)
	return err
}
