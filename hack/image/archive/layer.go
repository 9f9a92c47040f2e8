package archive

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// folders are the names in the root directory that no program can have.
var folders = []string{"etc", "tmp", "licenses"}

// file is a file of the layer, or a folder when its path ends with a slash.
type file struct {
	path    string
	mode    int64
	content []byte
}

// baseFiles are in every image: a user, a group and /tmp.
func baseFiles(user int) []file {
	passwd := fmt.Sprintf("root:x:0:0:root:/:/nologin\napp:x:%d:%d:app:/tmp:/nologin\n", user, user)
	group := fmt.Sprintf("root:x:0:\napp:x:%d:\n", user)
	return []file{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, content: []byte(group)},
		{path: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{path: "tmp/", mode: 0o1777},
	}
}

// layerContent writes the image's files in a fixed order, all of one time.
func layerContent(program Program) ([]byte, error) {
	files := baseFiles(program.User)
	if len(program.Licenses) > 0 {
		files = append(files, file{path: "licenses/", mode: 0o755})
	}
	for _, name := range slices.Sorted(maps.Keys(program.Licenses)) {
		if !programName.MatchString(name) {
			return nil, fmt.Errorf("name of a license %q is not a plain file name", name)
		}
		files = append(files, file{path: "licenses/" + name, mode: 0o644, content: program.Licenses[name]})
	}
	files = append(files, file{path: program.Name, mode: 0o755, content: program.Binary})

	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, file := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     file.path,
			Mode:     file.mode,
			Size:     int64(len(file.content)),
			ModTime:  program.created(),
			Format:   tar.FormatUSTAR,
		}
		if strings.HasSuffix(file.path, "/") {
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

// architecture returns Go's name of the architecture that a program is for. It refuses
// a program that needs a dynamic linker: the image has none, so a container would only
// say "no such file or directory" when it starts.
func architecture(binary []byte) (string, error) {
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return "", fmt.Errorf("not a Linux program: %w", err)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return "", errors.New("it is linked dynamically; build it with CGO_ENABLED=0")
		}
	}
	switch {
	case file.Machine == elf.EM_X86_64 && file.Class == elf.ELFCLASS64:
		return "amd64", nil
	case file.Machine == elf.EM_AARCH64 && file.Data == elf.ELFDATA2LSB:
		return "arm64", nil
	}
	return "", fmt.Errorf("it is for %s; images are for amd64 and arm64 only", file.Machine)
}
