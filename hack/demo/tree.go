package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// treeCommand makes a tree of files that are hard to keep, or one that cannot be read, or lists one so that two lists are
// equal when the trees are, or damages one: tests of backups run it in pods.
func treeCommand(arguments []string, output io.Writer) error {
	if len(arguments) != 2 {
		return errors.New("usage: demo tree (make|lock|list|mark|unmark|flip) FOLDER")
	}
	switch arguments[0] {
	case "make":
		return makeTree(arguments[1])
	case "lock":
		t := &tree{folder: arguments[1]}
		t.file("open", []byte("x"), 0o644)
		t.file("locked", []byte("x"), 0)
		return t.err
	case "list":
		return listTree(arguments[1], output)
	case "mark": // what a hook can do before a backup, and undo after it
		return os.WriteFile(filepath.Join(arguments[1], markFile), []byte("x"), 0o644)
	case "unmark":
		return os.Remove(filepath.Join(arguments[1], markFile))
	case "flip":
		return flip(arguments[1])
	default:
		return fmt.Errorf("unknown command %q", arguments[0])
	}
}

// markFile is what mark makes.
const markFile = "marked"

// flip changes one bit of the largest file below a folder, as a disk may do: of a repository that is a pack of contents.
func flip(folder string) error {
	var largest string
	var size int64
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	})
	if err == nil && size == 0 {
		err = fmt.Errorf("%s holds nothing to flip", folder)
	}
	if err != nil {
		return err
	}
	file, err := os.OpenFile(largest, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	at, bit := size/2, make([]byte, 1)
	_, read := file.ReadAt(bit, at)
	bit[0] ^= 1
	_, written := file.WriteAt(bit, at)
	return errors.Join(read, written, file.Close())
}

// Sizes of what makeTree makes.
const (
	sparseSize = 64 << 20
	largeSize  = 5 << 20
	smallFiles = 200
)

// makeTree makes the tree. Its contents are the same each time.
func makeTree(folder string) error {
	t := &tree{folder: folder}
	for _, name := range []string{
		"file", "with space", "new\nline", "-rf", `quote"'\`, "ünïcode 文", "\xff\xfe not UTF-8", ".hidden", "*", strings.Repeat("n", 255),
	} {
		t.file("names/"+name, []byte(name), 0o644)
	}
	for _, mode := range []fs.FileMode{0o400, 0o600, 0o640, 0o755, 0o777, 0o755 | fs.ModeSetuid, 0o755 | fs.ModeSetgid} {
		t.file(fmt.Sprintf("modes/%v", mode), []byte("x"), mode)
	}
	t.file("empty", nil, 0o644)
	t.file("large", noise(largeSize), 0o644)
	t.file("a/b/c/d/e/f/g/h/deep", []byte("deep"), 0o644)
	for i := range smallFiles {
		t.file(fmt.Sprintf("small/%d/%d", i%10, i), noise(i*37), 0o644)
	}
	t.sparse("sparse", sparseSize)
	t.link(os.Symlink("names/file", t.path("link")))
	t.link(os.Symlink("/nowhere/at all", t.path("dangling link")))
	t.link(os.Symlink("../a", t.path("names/link to a folder")))
	t.link(os.Link(t.path("large"), t.path("a/hard link")))
	t.link(syscall.Mkfifo(t.path("pipe"), 0o640))
	t.link(syscall.Setxattr(t.path("large"), "user.note", []byte("kept\x00as it is"), 0))
	t.folderOf("folders/empty", 0o755)
	t.folderOf("folders/shared", 0o777|fs.ModeSticky)
	t.folderOf("folders/group", 0o775|fs.ModeSetgid)
	t.file("folders/read-only/file", []byte("x"), 0o444)
	t.folderOf("folders/read-only", 0o555)
	old := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	t.link(os.Chtimes(t.path("names/file"), old, old))
	t.link(os.Chtimes(t.path("folders/empty"), old, old))
	return t.err
}

// noise is random, and the same each time.
func noise(size int) []byte {
	data := make([]byte, size)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(data) // it never fails
	return data
}

// tree makes files in a folder until something fails.
type tree struct {
	folder string
	err    error
}

func (t *tree) path(name string) string { return filepath.Join(t.folder, name) }

// link notes what came of something.
func (t *tree) link(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *tree) file(name string, content []byte, mode fs.FileMode) {
	if t.err != nil {
		return
	}
	t.err = errors.Join(
		os.MkdirAll(filepath.Dir(t.path(name)), 0o755),
		os.WriteFile(t.path(name), content, 0o600),
		os.Chmod(t.path(name), mode), // whatever the umask is
	)
}

func (t *tree) folderOf(name string, mode fs.FileMode) {
	if t.err != nil {
		return
	}
	t.err = errors.Join(os.MkdirAll(t.path(name), 0o755), os.Chmod(t.path(name), mode))
}

// sparse makes a file of holes with a little in between.
func (t *tree) sparse(name string, size int64) {
	if t.err != nil {
		return
	}
	file, err := os.Create(t.path(name))
	if err != nil {
		t.err = err
		return
	}
	_, middle := file.WriteAt([]byte("middle"), size/2)
	t.err = errors.Join(middle, file.Truncate(size), file.Close())
}

// listTree prints a line for each entry below the folder, with all that a backup keeps of it.
func listTree(folder string, output io.Writer) error {
	entries := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		line, err := describe(path)
		if err != nil {
			return err
		}
		entries++
		name, _ := filepath.Rel(folder, path)
		_, err = fmt.Fprintf(output, "%q %s\n", name, line)
		return err
	})
	if err == nil {
		_, err = fmt.Fprintf(output, "%d entries\n", entries)
	}
	return err
}

// describe says everything of an entry but its name.
func describe(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%q: the system says too little", path)
	}
	line := fmt.Sprintf("%v %d:%d", info.Mode(), of.Uid, of.Gid)
	switch {
	case info.Mode().IsRegular():
		sum, err := checksum(path)
		if err != nil {
			return "", err
		}
		holes := of.Blocks*512 < info.Size()/2
		line += fmt.Sprintf(" %d bytes %s links=%d holes=%t", info.Size(), sum, of.Nlink, holes)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		return line + fmt.Sprintf(" -> %q", target), nil
	}
	attributes, err := attributesOf(path)
	return line + " " + info.ModTime().UTC().Format(time.RFC3339Nano) + attributes, err
}

func checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

// attributesOf are the extended attributes that belong to the user.
func attributesOf(path string) (string, error) {
	buffer := make([]byte, 4096)
	length, err := syscall.Listxattr(path, buffer)
	if errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	names := strings.Split(strings.TrimSuffix(string(buffer[:length]), "\x00"), "\x00")
	slices.Sort(names)
	text := ""
	for _, name := range names {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 4096)
		length, err := syscall.Getxattr(path, name, value)
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf(" %s=%q", name, value[:length])
	}
	return text, nil
}
