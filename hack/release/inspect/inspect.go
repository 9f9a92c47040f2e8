// Package inspect looks into the files of a release the way somebody would who does not
// trust them: what unpacking writes, where, with which mode, and what runs afterwards.
//
//	image.go    images: index, configuration and layer
//	inspect.go  a folder with a release, the kubectl plugin and the chart
//	program.go  a program: which system it is for, and what it says about the machine that built it
//	read.go     reading archives strictly, and packing them once more
package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/hack/release/pack"
)

// Release is what a folder is compared with.
type Release struct {
	Version string
	// Created is the time of everything in the release.
	Created time.Time
}

// LicenseFiles are in every archive and image, beside the program.
var LicenseFiles = []string{"LICENSE", "THIRD-PARTY-LICENSES"}

var (
	plugin = regexp.MustCompile(`^kubectl-slipway-(v[^/]*?)-(linux|darwin|windows)-(amd64|arm64)\.(tar\.gz|zip)$`)
	multi  = regexp.MustCompile(`^(slipway-[a-z]+)-(v[^/]*?)\.oci\.tar$`)
	single = regexp.MustCompile(`^(slipway-[a-z]+)-(v[^/]*?)-(amd64|arm64)\.tar$`)
	chart  = regexp.MustCompile(`^slipway-(\d[^/]*)\.tgz$`)
	text   = regexp.MustCompile(`^(install\.yaml|slipway\.yaml|SHA256SUMS|[a-z-]+-v[^/]*\.cdx\.json)$`)
)

// Folder inspects every file of a release. It does not read SHA256SUMS.sig, which package seal checks.
func (r Release) Folder(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var problems []error
	for _, entry := range entries {
		info, err := entry.Info()
		switch {
		case err != nil:
			problems = append(problems, err)
			continue
		case !info.Mode().IsRegular() || info.Mode().Perm() != 0o644:
			problems = append(problems, fmt.Errorf("%s: mode %s, want a plain file with 0644", entry.Name(), info.Mode()))
			continue
		case entry.Name() == "SHA256SUMS.sig":
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err == nil {
			err = r.file(entry.Name(), content)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", entry.Name(), err))
		}
	}
	return errors.Join(problems...)
}

func (r Release) file(name string, content []byte) error {
	if parts := plugin.FindStringSubmatch(name); parts != nil {
		return errors.Join(r.version(parts[1]), r.plugin(content, parts[2], parts[3], parts[4]))
	}
	if parts := multi.FindStringSubmatch(name); parts != nil {
		_, err := r.Images(content, parts[1])
		return errors.Join(r.version(parts[2]), err)
	}
	if parts := single.FindStringSubmatch(name); parts != nil {
		return errors.Join(r.version(parts[2]), r.dockerArchive(content, parts[1], parts[3]))
	}
	if parts := chart.FindStringSubmatch(name); parts != nil {
		return errors.Join(r.version("v"+parts[1]), r.chart(content))
	}
	if !text.MatchString(name) {
		return errors.New("no such file is part of a release")
	}
	if bytes.IndexByte(content, 0) >= 0 {
		return errors.New("is not text")
	}
	return nil
}

func (r Release) version(got string) error {
	if got != r.Version {
		return fmt.Errorf("is of %s, not of %s", got, r.Version)
	}
	return nil
}

// plugin inspects an archive of the kubectl plugin. It must hold the program and the
// licences, and nothing else.
func (r Release) plugin(content []byte, system, architecture, format string) error {
	read, write := readTarGz, pack.TarGz
	program := "kubectl-slipway"
	if format == "zip" {
		read, write = readZip, pack.Zip
	}
	if system == "windows" {
		program += ".exe"
	}
	files, err := read(content)
	if err != nil {
		return err
	}
	want := append([]string{program}, LicenseFiles...)
	if err := sameNames(files, want); err != nil {
		return err
	}
	for _, file := range files {
		if file.Program != (file.Name == program) {
			return fmt.Errorf("%s has the mode %s", file.Name, file.Mode())
		}
		if file.Name == program {
			err = errors.Join(err, checkProgram(file.Content, system, architecture))
		} else if len(file.Content) == 0 {
			err = errors.Join(err, fmt.Errorf("%s is empty", file.Name))
		}
	}
	if err != nil {
		return err
	}
	return sameBytes(content, files, write, r.Created)
}

// chart inspects a Helm chart: plain files in one folder.
func (r Release) chart(content []byte) error {
	files, err := readTarGz(content)
	if err != nil {
		return err
	}
	described := false
	for _, file := range files {
		if !strings.HasPrefix(file.Name, "slipway/") || file.Program {
			return fmt.Errorf("%s with the mode %s is not a file of the chart", file.Name, file.Mode())
		}
		described = described || file.Name == "slipway/Chart.yaml"
	}
	if !described {
		return errors.New("has no slipway/Chart.yaml")
	}
	return sameBytes(content, files, pack.TarGz, r.Created)
}

// sameBytes packs the files that were read once more, and compares the archives. A
// difference may hide something that only some programs see: a link, an owner, a second
// archive behind the first.
func sameBytes(content []byte, files []pack.File, write func([]pack.File, time.Time) ([]byte, error), created time.Time) error {
	again, err := write(files, created)
	if err != nil {
		return err
	}
	if !bytes.Equal(content, again) {
		return errors.New("holds more than its files, or other owners, times or an order that hack/release does not write")
	}
	return nil
}

func sameNames(files []pack.File, want []string) error {
	left := map[string]bool{}
	for _, name := range want {
		left[name] = true
	}
	for _, file := range files {
		if !left[file.Name] {
			return fmt.Errorf("%q has no place in it", file.Name)
		}
		delete(left, file.Name)
	}
	for name := range left {
		return fmt.Errorf("%q is missing", name)
	}
	return nil
}
