package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inAnotherProcess runs a test again, as another user. It returns true in that process.
func inAnotherProcess(t *testing.T, attributes *syscall.SysProcAttr) bool {
	t.Helper()
	const variable = "SLIPWAY_TEST_IN_ANOTHER_PROCESS"
	if os.Getenv(variable) != "" {
		return true
	}
	folder := t.TempDir()
	for path, mode := range map[string]os.FileMode{folder: 0o777, filepath.Dir(folder): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1")
	command.Env = append(os.Environ(), variable+"=yes", "TMPDIR="+folder)
	command.Dir = "/"
	command.SysProcAttr = attributes
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return false
}

// becameRoot runs a test as root: in a namespace, when it is not already. It returns true in the process that is root.
func becameRoot(t *testing.T) bool {
	t.Helper()
	if os.Getuid() == 0 {
		return true
	}
	return inAnotherProcess(t, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	})
}

// becameNobody runs a test as a user without rights. It returns true in the process that has none.
func becameNobody(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	return inAnotherProcess(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
}

func TestAnUnreadableSourceFails(t *testing.T) {
	if !becameNobody(t) {
		return
	}
	r := created(t, inFolder(t))
	source := tree(t)
	at := func(name string) string { return filepath.Join(source, name) }
	write(t, source, "locked/inside", "x")
	for _, name := range []string{"a.txt", "locked"} {
		if err := os.Chmod(at(name), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(at(name), 0o700) })
	}
	_, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "whole"})
	wantKind(t, err, KindSourceUnreadable)
	if listed, err := r.List(t.Context(), ListOptions{}); err != nil || len(listed) != 0 {
		t.Errorf("listed %+v, %v", listed, err)
	}
	made, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "part", AllowPartial: true})
	if err != nil || made.Stats.Unreadable != 2 || len(made.Stats.UnreadableExamples) != 2 || made.Stats.Files != 2 {
		t.Errorf("got %+v, %v", made, err)
	}
	verified, err := r.Verify(t.Context(), VerifyOptions{Run: "part", ReadPercent: 100})
	if err != nil || verified.Snapshots[0].Stats.Unreadable != 2 {
		t.Errorf("verified %+v, %v", verified, err)
	}

	if err := os.Chmod(source, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(source, 0o700) })
	_, err = r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "root", AllowPartial: true})
	wantKind(t, err, KindSourceUnreadable)
}

func TestARestoreWithoutRightsSaysWhatItCouldNotKeep(t *testing.T) {
	if os.Getuid() == 0 {
		options := inFolder(t)
		r := created(t, options)
		source := tree(t)
		if err := os.Chown(filepath.Join(source, "a.txt"), 1234, 5678); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(filepath.Join(source, "a.txt"), "security.capability", []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0); err != nil {
			t.Fatal(err)
		}
		kept(t, r, "one", source)
		shared := t.TempDir()
		if err := os.CopyFS(shared, os.DirFS(options.Location.Filesystem.Path)); err != nil {
			t.Fatal(err)
		}
		openToAll(t, shared)
		t.Setenv("SHARED_REPOSITORY", shared)
	}
	if !becameNobody(t) {
		return
	}
	shared := os.Getenv("SHARED_REPOSITORY")
	if shared == "" {
		return // nobody could make a file of somebody else
	}
	r := opened(t, Options{Location: Location{Filesystem: &Filesystem{Path: shared}}, Password: inFolder(t).Password, WorkFolder: t.TempDir()})
	target, result := restored(t, r, "one")
	if result.OwnersNotKept < 1 || result.AttributesNotKept != 1 || len(result.Examples) == 0 {
		t.Errorf("got %+v", result)
	}
	if content, err := os.ReadFile(filepath.Join(target, "a.txt")); err != nil || string(content) != "first" {
		t.Errorf("got %q, %v", content, err)
	}
	_, err := r.Restore(t.Context(), RestoreOptions{Run: "one", Target: "/proc", Overwrite: true})
	wantKind(t, err, KindTargetUnwritable)
}

func openToAll(t *testing.T, folder string) {
	t.Helper()
	if err := filepath.Walk(folder, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o777)
	}); err != nil {
		t.Fatal(err)
	}
}
