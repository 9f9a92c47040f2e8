package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	modified = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	files    = []File{{Name: "tool", Program: true, Content: []byte("#!/bin/sh\n")}, {Name: "LICENSE", Content: []byte("free\n")}}
	reversed = []File{files[1], files[0]}
)

func TestTarGz(t *testing.T) {
	content, err := TarGz(files, modified)
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %c %o %d:%d %q %s %q", header.Name, header.Typeflag, header.Mode, header.Uid, header.Gid,
			header.Uname+header.Gname, header.ModTime.UTC().Format(time.RFC3339), text))
	}
	want := []string{
		`LICENSE 0 644 0:0 "" 2026-01-02T03:04:06Z "free\n"`,
		`tool 0 755 0:0 "" 2026-01-02T03:04:06Z "#!/bin/sh\n"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestZip(t *testing.T) {
	content, err := Zip(files, modified)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range reader.File {
		opened, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(opened)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %q", file.Name, file.Mode(), file.Modified.UTC().Format(time.RFC3339), text))
	}
	want := []string{`LICENSE -rw-r--r-- 2026-01-02T03:04:06Z "free\n"`, `tool -rwxr-xr-x 2026-01-02T03:04:06Z "#!/bin/sh\n"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The order of the files and the zone of the time make no difference.
func TestArchivesAreReproducible(t *testing.T) {
	zone := time.FixedZone("elsewhere", 7*60*60)
	for name, write := range map[string]func([]File, time.Time) ([]byte, error){"tar": TarGz, "zip": Zip} {
		first, err := write(files, modified)
		if err != nil {
			t.Fatal(err)
		}
		second, err := write(reversed, modified.In(zone))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s: two archives of the same files differ", name)
		}
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	tests := map[string][]File{
		"absolute":                    {{Name: "/etc/passwd"}},
		"out of the folder":           {{Name: "../evil"}},
		"out by a detour":             {{Name: "a/../../evil"}},
		"not clean":                   {{Name: "a//b"}},
		"empty":                       {{Name: ""}},
		"the folder":                  {{Name: "."}},
		"out on Windows":              {{Name: `..\evil`}},
		"a drive":                     {{Name: "C:evil"}},
		"twice":                       {{Name: "a"}, {Name: "a"}},
		"twice where case is nothing": {{Name: "License"}, {Name: "LICENSE"}},
	}
	for name, files := range tests {
		if _, err := TarGz(files, modified); err == nil {
			t.Errorf("tar: %s: no error", name)
		}
		if _, err := Zip(files, modified); err == nil {
			t.Errorf("zip: %s: no error", name)
		}
	}
}
