package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNothingIsOpenedOutsideOfTheSource(t *testing.T) {
	outside := tree(t)
	folder := tree(t)
	for name, target := range map[string]string{
		"link-to-file": "a.txt", "link-to-folder": "sub", "link-up": "..", "link-out": outside, "link-to-outside": filepath.Join(outside, "a.txt"),
	} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	o, err := newOpener(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	for _, path := range []string{
		"link-to-file", "link-to-folder", "link-to-folder/b.txt", "link-up", "link-out/a.txt", "link-to-outside",
		"..", "../x", "sub/../../x", filepath.Join(outside, "a.txt"), "/etc/passwd", "/proc/self/exe",
	} {
		opened, err := o.open(path, os.O_RDONLY)
		if err == nil {
			t.Errorf("%s was opened", path)
			opened.Close()
			continue
		}
		s := &source{opener: o, escapes: unix.EXDEV}
		if strings.HasPrefix(path, "link-") && !errors.Is(s.opening(err), errReplaced) {
			t.Errorf("%s: %v does not say that something else is there", path, err)
		}
	}
	for _, path := range []string{"a.txt", "sub/deep/c.bin", ".", "sub"} {
		opened, err := o.open(path, os.O_RDONLY)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		opened.Close()
	}
}

// A call takes paths of up to 4 KiB. Folders may be deeper.
func TestAPathThatIsLongerThanACallTakesIsKept(t *testing.T) {
	folder := t.TempDir()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	deep := strings.TrimSuffix(strings.Repeat(strings.Repeat("d", 200)+"/", 25), "/")
	if err := root.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(deep+"/file", []byte("far down"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := created(t, inFolder(t))
	if made := kept(t, r, "run", folder); made.Stats.Files != 1 || made.Stats.Bytes != 8 || made.Stats.Folders != 25 {
		t.Errorf("%+v", made.Stats)
	}
	if _, err := r.Verify(t.Context(), VerifyOptions{Run: "run", ReadPercent: 100}); err != nil {
		t.Error(err)
	}
}
