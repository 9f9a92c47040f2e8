package inspect

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/hack/release/pack"
)

// maxUnpacked is more than any archive of a release holds.
const maxUnpacked = 1 << 30

// readTarGz reads an archive that holds plain files only.
func readTarGz(content []byte) ([]pack.File, error) {
	unpacked, err := gunzip(content)
	if err != nil {
		return nil, err
	}
	var files []pack.File
	err = eachEntry(unpacked, func(header *tar.Header, content []byte) error {
		if header.Typeflag != tar.TypeReg {
			return fmt.Errorf("%q is not a plain file but of type %q", header.Name, header.Typeflag)
		}
		if header.Mode != 0o644 && header.Mode != 0o755 {
			return fmt.Errorf("%q has the mode %04o", header.Name, header.Mode)
		}
		files = append(files, pack.File{Name: header.Name, Program: header.Mode == 0o755, Content: content})
		return nil
	})
	return files, err
}

func readZip(content []byte) ([]pack.File, error) {
	reader, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	var files []pack.File
	for _, entry := range reader.File {
		mode := entry.Mode()
		if !mode.IsRegular() || (mode != 0o644 && mode != 0o755) {
			return nil, fmt.Errorf("%q has the mode %s", entry.Name, mode)
		}
		if err := pack.CheckName(entry.Name); err != nil {
			return nil, err
		}
		opened, err := entry.Open()
		if err != nil {
			return nil, err
		}
		text, err := readAll(opened)
		if err != nil {
			return nil, err
		}
		files = append(files, pack.File{Name: entry.Name, Program: mode == 0o755, Content: text})
	}
	return files, nil
}

// gunzip unpacks a single gzip member, and refuses anything behind it.
func gunzip(content []byte) ([]byte, error) {
	source := bytes.NewReader(content)
	reader, err := gzip.NewReader(source)
	if err != nil {
		return nil, err
	}
	reader.Multistream(false)
	if reader.Name != "" || reader.Comment != "" || len(reader.Extra) > 0 || !reader.ModTime.IsZero() {
		return nil, errors.New("its gzip header says more than it has to")
	}
	unpacked, err := readAll(reader)
	if err != nil {
		return nil, err
	}
	if source.Len() > 0 {
		return nil, fmt.Errorf("%d bytes follow its end", source.Len())
	}
	return unpacked, nil
}

func readAll(reader io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(reader, maxUnpacked+1))
	if err == nil && len(content) > maxUnpacked {
		err = errors.New("is too large when it is unpacked")
	}
	return content, err
}

// eachEntry calls do with every entry of a tar archive. It refuses what no release may
// have: a name that leads out of the folder or comes twice, an owner, a link, a device,
// extended header fields, or anything behind the end.
func eachEntry(content []byte, do func(header *tar.Header, content []byte) error) error {
	source := bytes.NewReader(content)
	reader := tar.NewReader(source)
	seen := map[string]bool{}
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return onlyZeros(content[len(content)-source.Len():])
		}
		if err != nil {
			return err
		}
		name := header.Name
		if header.Typeflag == tar.TypeDir {
			name = strings.TrimSuffix(name, "/")
		}
		if err := pack.CheckName(strings.ReplaceAll(name, "sha256:", "sha256-")); err != nil {
			return err
		}
		folded := strings.ToLower(name)
		switch {
		case seen[folded]:
			return fmt.Errorf("%q is there twice", name)
		case header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "":
			return fmt.Errorf("%q belongs to %d:%d %q %q", name, header.Uid, header.Gid, header.Uname, header.Gname)
		case len(header.PAXRecords) > 0 || header.Linkname != "" || header.Devmajor != 0 || header.Devminor != 0:
			return fmt.Errorf("%q says more than a file needs", name)
		}
		seen[folded] = true
		text, err := readAll(reader)
		if err != nil {
			return err
		}
		if err := do(header, text); err != nil {
			return err
		}
	}
}

func onlyZeros(rest []byte) error {
	if len(bytes.Trim(rest, "\x00")) > 0 {
		return errors.New("something follows the end of the archive")
	}
	return nil
}

// sameTime reports whether an entry has the time of the release, in seconds.
func sameTime(got, want time.Time) bool { return got.Unix() == want.Unix() }

// Repack reads an archive of plain files, and writes these files in the form that this package accepts.
func Repack(content []byte, created time.Time) ([]byte, error) {
	unpacked, err := gunzipAny(content)
	if err != nil {
		return nil, err
	}
	var files []pack.File
	for reader := tar.NewReader(bytes.NewReader(unpacked)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return pack.TarGz(files, created)
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%q is not a plain file", header.Name)
		}
		text, err := readAll(reader)
		if err != nil {
			return nil, err
		}
		files = append(files, pack.File{Name: header.Name, Content: text})
	}
}

func gunzipAny(content []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return readAll(reader)
}
