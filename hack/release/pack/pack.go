// Package pack writes archives that depend only on the names and content of their
// files, on which are programs, and on the given time. Files have no owner, and are
// sorted by name.
package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// File is a file of an archive.
type File struct {
	// Name is its path in the archive, with slashes.
	Name string
	// Program reports whether it is executable.
	Program bool
	Content []byte
}

// Mode is the mode that the file has in an archive.
func (f File) Mode() fs.FileMode {
	if f.Program {
		return 0o755
	}
	return 0o644
}

// TarGz packs files into a compressed tar archive.
func TarGz(files []File, modified time.Time) ([]byte, error) {
	files, err := prepare(files)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	writer := tar.NewWriter(compressed)
	for _, file := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     file.Name,
			Mode:     int64(file.Mode()),
			Size:     int64(len(file.Content)),
			ModTime:  modified,
			Format:   tar.FormatUSTAR,
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(file.Content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(writer.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// Zip packs files into a zip archive.
func Zip(files []File, modified time.Time) ([]byte, error) {
	files, err := prepare(files)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	writer := zip.NewWriter(&buffer)
	for _, file := range files {
		header := &zip.FileHeader{Name: file.Name, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(file.Mode())
		entry, err := writer.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(file.Content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// prepare checks the names of the files, and returns the files sorted by name.
func prepare(files []File) ([]File, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	seen := map[string]bool{}
	for _, file := range files {
		if err := CheckName(file.Name); err != nil {
			return nil, err
		}
		if folded := strings.ToLower(file.Name); seen[folded] {
			return nil, fmt.Errorf("%q is there twice", file.Name)
		}
		seen[strings.ToLower(file.Name)] = true
	}
	return files, nil
}

// CheckName refuses a name that could lead out of the folder into which an archive is
// unpacked, on any system.
func CheckName(name string) error {
	switch {
	case !fs.ValidPath(name) || name == ".":
		return fmt.Errorf("%q is not a path below a folder", name)
	case strings.ContainsAny(name, "\\:\x00"):
		return fmt.Errorf("%q leads elsewhere on Windows", name)
	}
	return nil
}
