//go:build backupfaults

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// row is a kind of fault.
type row struct {
	name   string
	places string // f: a folder, s: the S3 server
	times  int    // on each place; default 3
	inject func(*injection)
	want   []string // the ends that are right; Completed where the fault may do no harm, which restoring proves
	// lasting is damage that nobody takes away, so that no next attempt is made.
	lasting bool
	// patience is how long one call of the storage may take. Default: a minute.
	patience time.Duration
	tls      bool
}

const short = 2 * time.Second

// later calls a function at a random moment of a step.
func (i *injection) later(step mover.Step, most time.Duration, do func(*os.Process)) {
	after := time.Duration(i.random.Int64N(int64(most)))
	i.during[step] = func(p *os.Process) { time.AfterFunc(after, func() { do(p) }) }
}

func signaled(step mover.Step, s os.Signal) func(*injection) {
	return func(i *injection) { i.later(step, 1200*time.Millisecond, func(p *os.Process) { _ = p.Signal(s) }) }
}

// damage does something to a file of the repository between the two processes.
func damage(prefix string, written bool, do func(i *injection, path string)) func(*injection) {
	return func(i *injection) { i.between = func() { do(i, i.pick(prefix, written)) } }
}

func flip(i *injection, path string) {
	content, err := os.ReadFile(path)
	i.check(err)
	if len(content) > 0 {
		content[i.random.IntN(len(content))] ^= 1 << i.random.IntN(8)
	}
	i.check(os.WriteFile(path, content, 0o600))
}

func truncate(i *injection, path string) {
	info, err := os.Stat(path)
	i.check(err)
	if err == nil && info.Size() > 0 {
		i.check(os.Truncate(path, i.random.Int64N(info.Size())))
	}
}

func remove(i *injection, path string) { i.check(os.Remove(path)) }

// exchange puts a file of another repository in the place of one.
func exchange(i *injection, path string) {
	from := blobsOf(filepath.Join(i.arena.folder, "repositories", "other"), "")
	if i.s3 {
		from = blobsOf(filepath.Join(i.arena.bucket, "other"), "")
	}
	kind := filepath.Base(path)[:1]
	relative, _ := filepath.Rel(i.stored(), path)
	if !i.s3 {
		kind = strings.ReplaceAll(relative, "/", "")[:1]
	}
	for _, other := range from {
		root := filepath.Dir(other)
		if !i.s3 {
			root = filepath.Join(i.arena.folder, "repositories", "other")
		}
		name, _ := filepath.Rel(root, other)
		if name = strings.ReplaceAll(name, "/", ""); name[:1] == kind && (kind != "k" || name == filepath.Base(path)) {
			content, err := os.ReadFile(other)
			i.check(err)
			i.check(os.WriteFile(path, content, 0o600))
			return
		}
	}
	i.t.Errorf("%s: the other repository has nothing like %s", i.row.name, path)
}

func damages() []row {
	var rows []row
	corrupt := []string{"Corrupt", completed} // a pack ends with a copy of its index, which nobody reads
	// Without the index that names it, a snapshot was never made.
	unknown := []string{"RepositoryNotFound", "Corrupt", completed}
	for _, kind := range []struct {
		name, prefix string
		want         []string
	}{
		{"pack", "p", corrupt},
		{"pack of folders", "q", corrupt},
		{"index", "xn", unknown},
		{"repository's format", "kopia.repository", []string{"Corrupt", "WrongPassword", "WrongRepository", "RepositoryNotFound", completed}},
		{"format of blobs", "kopia.blobcfg", []string{"Corrupt", "WrongPassword", completed}},
	} {
		written := !strings.HasPrefix(kind.prefix, "kopia")
		for verb, do := range map[string]func(*injection, string){"flipped": flip, "cut": truncate, "deleted": remove, "of another repository": exchange} {
			rows = append(rows, row{name: kind.name + " " + verb, places: "fs", times: 2, lasting: true, want: kind.want, inject: damage(kind.prefix, written, do)})
		}
	}
	for verb, do := range map[string]func(*injection, string){"flipped": flip, "cut": truncate, "deleted": remove} {
		rows = append(rows, row{
			name: "old pack " + verb, places: "f", lasting: true, want: []string{"Corrupt", completed},
			inject: func(i *injection) { i.before = func() { do(i, i.pick("p", false)) } },
		})
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return rows
}

func tmpfs(i *injection, folder, options string, flags uintptr) {
	i.check(os.MkdirAll(folder, 0o777))
	i.check(unix.Mount("tmpfs", folder, "tmpfs", flags, options))
	lift := i.lift
	i.lift = func() {
		if lift != nil {
			lift()
		}
	}
	i.t.Cleanup(func() { i.check(unix.Unmount(folder, unix.MNT_DETACH)) })
}

// onSmallDisk moves the repository to a file system with so much space left.
func onSmallDisk(i *injection) {
	folder := i.path("disk")
	tmpfs(i, folder, "size=6m", 0)
	i.arena.copy(i.stored(), filepath.Join(folder, "repository"))
	i.config.Repository.Filesystem.Path = filepath.Join(folder, "repository")
	large := make([]byte, 12<<20)
	for at := 0; at < len(large); at += 8 {
		large[at], large[at+1], large[at+2] = byte(i.random.Uint32()), byte(i.random.Uint32()), byte(i.random.Uint32())
	}
	i.check(os.WriteFile(i.path("source/too-large"), large, 0o600))
	i.lift = func() { i.check(unix.Mount("tmpfs", folder, "tmpfs", unix.MS_REMOUNT, "size=200m")) }
}

// asNobody runs the steps without rights.
func asNobody(i *injection) {
	i.user = 65534
	for _, folder := range []string{i.path("source"), i.path("work"), i.path("secret"), i.stored()} {
		i.check(filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, 65534, 65534)
		}))
	}
}

func lost(change func(i *injection, raw []byte) []byte) func(*injection) {
	return func(i *injection) {
		which := []mover.Step{mover.StepSnapshot, mover.StepVerify}[i.random.IntN(2)]
		i.message = func(step mover.Step, raw []byte) []byte {
			if step != which {
				return raw
			}
			return change(i, raw)
		}
	}
}

func off(by time.Duration) func(*injection) {
	return func(i *injection) {
		// Either process may be on a machine whose clock is wrong, or both.
		which := i.random.IntN(3)
		i.ahead[mover.StepSnapshot], i.ahead[mover.StepVerify] = 0, 0
		if which != 1 {
			i.ahead[mover.StepSnapshot] = by
		}
		if which != 0 {
			i.ahead[mover.StepVerify] = by
		}
	}
}

// until is how far a moment is from now.
func until(year int, month time.Month, day, hour, minute int) time.Duration {
	return time.Until(time.Date(year, month, day, hour, minute, 59, 0, time.UTC))
}

func processRows() []row {
	done := []string{completed}
	killed := []string{"PodLost", completed}
	return []row{
		{name: "snapshot killed (SIGKILL)", places: "fs", times: 4, inject: signaled(mover.StepSnapshot, syscall.SIGKILL), want: killed},
		{name: "verify killed (SIGKILL)", places: "fs", times: 4, inject: signaled(mover.StepVerify, syscall.SIGKILL), want: killed},
		{name: "snapshot ended (SIGTERM)", places: "fs", inject: signaled(mover.StepSnapshot, syscall.SIGTERM), want: killed},
		{name: "verify ended (SIGTERM)", places: "fs", inject: signaled(mover.StepVerify, syscall.SIGTERM), want: killed},
		{name: "snapshot stopped (SIGSTOP), then the deadline", places: "f", want: killed, inject: func(i *injection) {
			i.limit = 6 * time.Second
			signaled(mover.StepSnapshot, syscall.SIGSTOP)(i)
		}},
		{name: "out of memory", places: "fs", want: []string{"PodLost"}, inject: func(i *injection) {
			i.prefix = []string{"prlimit", fmt.Sprint("--data=", (20+i.random.IntN(40))<<20)}
		}},
		{
			name: "out of file descriptors", places: "fs", patience: short, inject: func(i *injection) { i.prefix = []string{"prlimit", fmt.Sprint("--nofile=", 5+i.random.IntN(4))} },
			want: []string{"PodLost", "Unreachable", "MoverFailed", "SourceUnreadable", "NoSpace", "Corrupt", "Invalid", completed},
		},
		{name: "files may not grow (RLIMIT_FSIZE)", places: "f", patience: short, inject: func(i *injection) { i.prefix = []string{"prlimit", "--fsize=100000"} }, want: []string{"Unreachable", "NoSpace"}},
		{name: "clock an hour ahead", places: "fs", inject: off(time.Hour), want: done},
		{name: "clock an hour behind", places: "fs", inject: off(-time.Hour), want: done},
		{name: "clock two days ahead", places: "f", inject: off(48 * time.Hour), want: done},
		{name: "clock two days behind", places: "f", inject: off(-48 * time.Hour), want: done},
		{name: "the hour that DST leaves out", places: "f", inject: func(i *injection) {
			i.environment = []string{"TZ=Europe/Berlin"}
			off(until(2027, time.March, 28, 0, 59))(i)
		}, want: done},
		{name: "the hour that DST repeats", places: "f", inject: func(i *injection) {
			i.environment = []string{"TZ=Europe/Berlin"}
			off(until(2027, time.October, 31, 0, 59))(i)
		}, want: done},
		{name: "two writers at once", places: "fs", want: done, inject: twoWriters},
		{name: "termination message lost", places: "f", inject: lost(func(*injection, []byte) []byte { return nil }), want: []string{"PodLost"}},
		{name: "termination message cut", places: "f", times: 4, want: []string{"PodLost"}, inject: lost(func(i *injection, raw []byte) []byte {
			return raw[:i.random.IntN(len(raw))]
		})},
		{name: "termination message garbled", places: "f", want: []string{"PodLost"}, inject: lost(func(i *injection, raw []byte) []byte {
			raw = bytes.Clone(raw)
			raw[bytes.IndexByte(raw, ':')] = 0xff
			return raw
		})},
		{name: "termination message of another step", places: "f", want: []string{"PodLost"}, inject: lost(func(_ *injection, raw []byte) []byte {
			return bytes.Replace(raw, []byte(`"command":"`), []byte(`"command":"x`), 1)
		})},
		{name: "result of another run", places: "fs", want: []string{"MoverFailed"}, inject: func(i *injection) {
			i.message = func(step mover.Step, raw []byte) []byte {
				if step == mover.StepSnapshot {
					return bytes.Replace(raw, []byte("run/shop"), []byte("run/other"), 1)
				}
				return raw
			}
		}},
		{name: "the snapshot of another run verified", places: "fs", want: []string{"MoverFailed"}, inject: func(i *injection) { i.config.Verify.Run = "before" }},
	}
}

// twoWriters lets another run write at the same time.
func twoWriters(i *injection) {
	other := *i.bench
	other.folder = i.path("second")
	other.config.Repository.WorkFolder = i.path("second")
	other.config.Snapshot.Run = "another/shop"
	i.check(os.MkdirAll(other.folder, 0o755))
	second := &injection{bench: &other, t: i.t, arena: i.arena, row: i.row, s3: i.s3, results: map[mover.Step][]byte{}}
	i.check(os.MkdirAll(second.path("work"), 0o755))
	ended := make(chan int32, 1)
	i.during[mover.StepSnapshot] = func(*os.Process) { go func() { ended <- second.run(mover.StepSnapshot, false).ExitCode }() }
	i.lift = func() {
		if code := <-ended; code != 0 {
			i.problem("the other writer ended with %d: %s", code, second.results)
			return
		}
		second.expected = i.expected
		if err := second.restored("another/shop"); err != nil {
			i.problem("the other writer's snapshot: %v", err)
		}
	}
}

func placeRows() []row {
	return []row{
		{name: "wrong password", places: "fs", want: []string{"WrongPassword"}, inject: func(i *injection) {
			i.write(i.t, "secret/password", "another one")
			i.lift = func() { i.write(i.t, "secret/password", password) }
		}},
		{name: "password exchanged between the steps", places: "fs", want: []string{"WrongPassword"}, inject: func(i *injection) {
			i.between = func() { i.write(i.t, "secret/password", "another one") }
			i.lift = func() { i.write(i.t, "secret/password", password) }
		}},
		{name: "another repository at the place", places: "fs", lasting: true, want: []string{"WrongRepository"}, inject: func(i *injection) { i.before = i.other }},
		{name: "another repository between the steps", places: "fs", lasting: true, want: []string{"WrongRepository"}, inject: func(i *injection) { i.between = i.other }},
		{name: "repository gone", places: "fs", lasting: true, want: []string{"RepositoryNotFound"}, inject: func(i *injection) { i.before = i.gone }},
		{name: "repository gone between the steps", places: "fs", lasting: true, want: []string{"RepositoryNotFound"}, inject: func(i *injection) { i.between = i.gone }},
		{name: "an empty folder in its place", places: "f", lasting: true, want: []string{"RepositoryNotFound"}, inject: func(i *injection) {
			i.before = func() { i.gone(); i.check(os.MkdirAll(i.stored(), 0o755)) }
		}},
		{name: "an older copy of the repository between the steps", places: "fs", lasting: true, want: []string{"RepositoryNotFound"}, inject: func(i *injection) {
			old := i.path("old")
			i.before = func() { i.arena.copy(i.stored(), old) }
			i.between = func() { i.gone(); i.arena.copy(old, i.stored()) }
		}},
		{name: "repository's disk full", places: "f", want: []string{"NoSpace"}, inject: onSmallDisk},
		{name: "cache's disk full", places: "fs", want: []string{"NoSpace", completed}, inject: func(i *injection) {
			tmpfs(i, i.path("small"), fmt.Sprint("size=", 8<<10+i.random.IntN(100)<<10), 0)
			i.config.Repository.WorkFolder = i.path("small")
			i.lift = func() { i.config.Repository.WorkFolder = i.path("work") }
		}},
		{name: "repository read-only", places: "f", want: []string{"AccessDenied"}, inject: func(i *injection) {
			folder := i.stored()
			i.check(unix.Mount(folder, folder, "", unix.MS_BIND, ""))
			i.check(unix.Mount(folder, folder, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			i.lift = func() { i.check(unix.Unmount(folder, unix.MNT_DETACH)) }
		}},
		{name: "no right to write to the repository", places: "f", want: []string{"AccessDenied"}, inject: func(i *injection) {
			asNobody(i)
			i.check(filepath.WalkDir(i.stored(), func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.IsDir() {
					err = os.Chmod(path, 0o555)
				}
				return err
			}))
			i.lift = func() { i.user = 0 }
		}},
	}
}

func (i *injection) other() {
	i.gone()
	from := filepath.Join(i.arena.folder, "repositories", "other")
	if i.s3 {
		from = filepath.Join(i.arena.bucket, "other")
	}
	i.arena.copy(from, i.stored())
}

// gone removes the repository. Nobody may make it anew, because one was known.
func (i *injection) gone() {
	i.check(os.RemoveAll(i.stored()))
	i.t.Cleanup(func() {
		raw := i.blobs("kopia.repository")
		if len(raw) > 0 && i.row.want[0] == "RepositoryNotFound" && !strings.HasPrefix(i.row.name, "an older copy") {
			i.t.Errorf("%s: a repository was made where one was known", i.row.name)
		}
	})
}

func sourceRows() []row {
	return []row{
		{name: "a file cannot be read", places: "fs", want: []string{"SourceUnreadable"}, inject: func(i *injection) { unreadable(i, fmt.Sprint("source/sub/file-", i.random.IntN(20))) }},
		{name: "a folder cannot be read", places: "f", want: []string{"SourceUnreadable"}, inject: func(i *injection) {
			unreadable(i, []string{"source", "source/sub", "source/empty", "source/sub/deep"}[i.random.IntN(4)])
		}},
		{name: "files vanish", places: "fs", want: []string{completed}, inject: func(i *injection) {
			i.during[mover.StepSnapshot] = func(*os.Process) {
				go func() {
					for n := range 20 {
						_ = os.Remove(i.path(fmt.Sprint("source/sub/file-", n)))
						<-time.After(15 * time.Millisecond)
					}
				}()
			}
			i.same = i.subset
		}},
		{name: "a file grows", places: "fs", want: []string{completed}, inject: grows},
		{name: "a file is cut while it is read", places: "f", want: []string{completed, "MoverFailed", "SourceUnreadable"}, inject: func(i *injection) {
			i.later(mover.StepSnapshot, 900*time.Millisecond, func(*os.Process) { _ = os.Truncate(i.path("source/fresh"), 1000) })
			i.same = i.beginnings
		}},
		{name: "files become links that lead out", places: "f", want: []string{completed, "SourceUnreadable", "MoverFailed"}, inject: func(i *injection) {
			i.write(i.t, "outside/secret", "outside of the source")
			i.later(mover.StepSnapshot, 700*time.Millisecond, func(*os.Process) {
				for n := range 20 {
					name := i.path(fmt.Sprint("source/sub/file-", n))
					_ = os.Remove(name)
					_ = os.Symlink(i.path("outside/secret"), name)
				}
			})
			i.same = i.inside
		}},
		{name: "the source is empty", places: "fs", want: []string{"SourceEmpty"}, inject: func(i *injection) {
			i.before = func() {
				i.check(os.Rename(i.path("source"), i.path("full")))
				i.check(os.Mkdir(i.path("source"), 0o755))
			}
			i.lift = func() {
				i.check(os.RemoveAll(i.path("source")))
				i.check(os.Rename(i.path("full"), i.path("source")))
			}
		}},
		{name: "the source is gone", places: "f", want: []string{"RepositoryNotFound"}, inject: func(i *injection) {
			i.before = func() {
				i.check(os.Rename(i.path("source"), i.path("full")))
				i.check(os.Symlink("/nowhere", i.path("source")))
			}
			i.lift = func() {
				i.check(os.Remove(i.path("source")))
				i.check(os.Rename(i.path("full"), i.path("source")))
			}
		}},
		{name: "all times have changed", places: "fs", want: []string{completed}, inject: func(i *injection) {
			now := time.Unix(1_900_000_000-i.random.Int64N(1_800_000_000), i.random.Int64N(1e9))
			for _, line := range []string{"sub/file-1", "sub/file-2", "sub/deep/large", "sub/deep", "sub", "set", "."} {
				i.check(os.Chtimes(i.path("source/"+line), now, now))
			}
		}},
		{name: "content changes, size and time do not", places: "fs", want: []string{completed}, inject: func(i *injection) {
			path := i.path(fmt.Sprint("source/sub/file-", 4+i.random.IntN(15)))
			info, err := os.Stat(path)
			i.check(err)
			content, err := os.ReadFile(path)
			i.check(err)
			content[0] ^= 1
			i.check(os.WriteFile(path, content, info.Mode()))
			i.check(os.Chtimes(path, info.ModTime(), info.ModTime()))
		}},
	}
}

func unreadable(i *injection, name string) {
	asNobody(i)
	info, err := os.Stat(i.path(name))
	i.check(err)
	i.check(os.Lchown(i.path(name), 0, 0))
	i.check(os.Chmod(i.path(name), 0o700))
	i.lift = func() {
		i.user = 0
		i.check(os.Chmod(i.path(name), info.Mode()))
	}
}

func grows(i *injection) {
	var stop atomic.Bool
	done := make(chan struct{})
	i.during[mover.StepSnapshot] = func(*os.Process) {
		go func() {
			defer close(done)
			f, err := os.OpenFile(i.path("source/fresh"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return
			}
			defer f.Close()
			for range 3000 {
				if stop.Load() {
					return
				}
				_, _ = f.WriteString(strings.Repeat("more ", 200))
				<-time.After(time.Millisecond)
			}
		}()
	}
	i.lift = func() { stop.Store(true); <-done }
	i.same = i.beginnings
}

// subset tells whether everything that is restored is as it was.
func (i *injection) subset(restored string) error {
	was := map[string]bool{}
	for _, line := range i.expected {
		was[line] = true
	}
	found := 0
	for _, line := range portrait(i.t, restored) {
		switch {
		case was[line], strings.HasPrefix(line, `"sub" `): // the folder itself has another time
			found++
		default:
			return fmt.Errorf("restored %s", line)
		}
	}
	if found < 10 {
		return fmt.Errorf("only %d paths are restored", found)
	}
	return nil
}

// beginnings tells whether all is as it was, but for the file that changed: that one begins as it did.
func (i *injection) beginnings(restored string) error {
	notFresh := func(line string) bool { return strings.HasPrefix(line, `"fresh" `) || strings.HasPrefix(line, `"." `) }
	got, want := slices.DeleteFunc(portrait(i.t, restored), notFresh), slices.DeleteFunc(slices.Clone(i.expected), notFresh)
	if !slices.Equal(got, want) {
		return fmt.Errorf("restored %q, want %q", got, want)
	}
	kept, err := os.ReadFile(filepath.Join(restored, "fresh"))
	now, err2 := os.ReadFile(i.path("source/fresh"))
	if err != nil || err2 != nil || !bytes.Equal(kept[:min(1000, len(kept))], now[:min(1000, len(kept))]) || len(kept) < 1000 {
		return fmt.Errorf("%d bytes are restored of a file of %d: %w, %w", len(kept), len(now), err, err2)
	}
	return nil
}

// inside tells whether nothing from outside of the source is in the backup.
func (i *injection) inside(restored string) error {
	return filepath.WalkDir(restored, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("outside of the source")) {
			return fmt.Errorf("%s holds what is outside of the source", path)
		}
		return err
	})
}

func storm(f func(i *injection) fault) func(*injection) {
	return func(i *injection) {
		i.proxy.set(from(i.random.IntN(14), f(i)))
	}
}

func always(f fault) func(*injection) { return storm(func(*injection) fault { return f }) }

func serverRows() []row {
	away := []string{"Unreachable"}
	harmless := []string{completed}
	denied := []string{"AccessDenied", completed} // the last requests may be over
	bad := []string{"Unreachable", "Corrupt", "RepositoryNotFound", completed}
	rows := []row{
		{name: "S3: 503", inject: always(refused(503, "ServiceUnavailable")), want: away, patience: short},
		{name: "S3: 503 to every third request", inject: always(every(3, refused(503, "SlowDown"))), want: harmless},
		{name: "S3: 500", inject: always(refused(500, "InternalError")), want: away, patience: short},
		{name: "S3: 500 to every third request", inject: always(every(3, refused(500, "InternalError"))), want: harmless},
		{name: "S3: 429", inject: always(refused(429, "SlowDown")), want: away, patience: short},
		{name: "S3: never answers", inject: always(silent), want: away, patience: short},
		{name: "S3: hangs up", inject: always(reset), want: away, patience: short},
		{name: "S3: hangs up every third time", inject: always(every(3, reset)), want: harmless},
		{name: "S3: hangs up within an upload", inject: always(only(http.MethodPut, resetMidway)), want: append(away, completed), patience: short},
		{name: "S3: slow", inject: always(slow), want: harmless},
		{name: "S3: answers are cut", inject: always(only(http.MethodGet, objects(raw(func(a *answer) string { return headed(a, len(a.body), a.body[:len(a.body)/2]) })))), want: bad, patience: short},
		{name: "S3: lengths are too large", inject: always(only(http.MethodGet, objects(raw(func(a *answer) string { return headed(a, len(a.body)+1000, a.body) })))), want: bad, patience: short},
		{name: "S3: lengths are too small", inject: always(only(http.MethodGet, objects(raw(func(a *answer) string { return headed(a, len(a.body)/2, a.body) })))), want: append(bad, "WrongPassword"), patience: short},
		{name: "S3: other ETags", want: harmless, inject: always(altered(func(_ *http.Request, a *answer) { a.header.Set("ETag", `"ffffffffffffffffffffffffffffffff"`) }))},
		{name: "S3: 200 with an error to an upload", inject: always(only(http.MethodPut, acknowledged("<Error><Code>InternalError</Code></Error>"))), want: []string{"MoverFailed", "RepositoryNotFound", "Corrupt", "Unreachable", completed}},
		{name: "S3: uploads are acknowledged and lost", inject: always(only(http.MethodPut, acknowledged(""))), want: []string{"MoverFailed", "RepositoryNotFound", "Corrupt", completed}},
		{name: "S3: 200 with an error to a reading", inject: always(only(http.MethodGet, objects(acknowledged("<Error><Code>InternalError</Code></Error>")))), want: append(bad, "WrongPassword"), patience: short},
		{name: "S3: empty answers", inject: always(only(http.MethodGet, objects(acknowledged("")))), want: append(bad, "WrongPassword"), patience: short},
		{name: "S3: a bit flips on the way", inject: always(altered(flipped)), want: append(bad, "WrongPassword", "WrongRepository"), patience: short},
		{name: "S3: the bucket is gone", inject: always(refused(404, "NoSuchBucket")), want: []string{"RepositoryNotFound", "Corrupt", completed}},
		{name: "S3: nothing is found", inject: always(refused(404, "NoSuchKey")), want: bad, patience: short},
		{name: "S3: keys are revoked half-way", inject: always(refused(403, "InvalidAccessKeyId")), want: denied},
		{name: "S3: the session has expired", inject: always(refused(400, "ExpiredToken")), want: denied},
		{name: "S3: the clock's skew is refused", inject: always(refused(403, "RequestTimeTooSkewed")), want: denied},
		{name: "S3: writing is refused", inject: always(only(http.MethodPut, refused(403, "AccessDenied"))), want: denied},
		{name: "S3: the quota is used up", inject: always(only(http.MethodPut, refused(403, "QuotaExceeded"))), want: []string{"NoSpace", completed}},
		{name: "S3: a listing omits keys", want: bad, inject: storm(func(i *injection) fault {
			return listings(func(l *listing) {
				if len(l.Contents) > 0 {
					at := i.random.IntN(len(l.Contents))
					l.Contents = slices.Delete(l.Contents, at, at+1)
				}
			})
		})},
		{name: "S3: a listing repeats keys", inject: always(listings(repeated)), want: harmless},
		{name: "S3: a listing has another order", inject: always(listings(reversed)), want: harmless},
		{name: "S3: a listing is stale", inject: func(i *injection) { i.proxy.set(stale()) }, want: append(bad, "MoverFailed")},
		{name: "S3: a listing has keys of others", inject: func(i *injection) { i.proxy.set(listings(withKeys("elsewhere/secret", "another/kopia.repository"))) }, want: away, patience: short},
		{name: "S3: a listing has keys that are too short", inject: func(i *injection) { i.proxy.set(listings(withKeys("x", ""))) }, want: away, patience: short},
		{name: "S3: a listing has no end", inject: func(i *injection) { i.proxy.set(listings(endlessList)) }, want: away, patience: short},
		{name: "S3: XML that is none", inject: always(func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
			return isList(r) && acknowledged(`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><ListBucketResult><Contents><Key>&b;`)(p, w, r)
		}), want: append(away, completed), patience: short},
		{name: "S3: bodies have no end", inject: always(only(http.MethodGet, endless)), want: append(bad, "PodLost"), patience: short},
		{name: "S3: bodies unpack to a GiB", inject: always(only(http.MethodGet, bomb)), want: append(bad, "PodLost", "WrongPassword"), patience: short},
		{name: "S3: redirects to another host", inject: redirect, want: append(away, completed), patience: short},
		{name: "S3: another certificate", tls: true, inject: func(i *injection) {
			impostor := newProxy(i.t, i.arena.server, false)
			impostor.server.Close()
			impostor.server = httptest.NewUnstartedServer(impostor)
			impostor.server.TLS = forged(i.t)
			impostor.server.StartTLS()
			exchange := func() { i.write(i.t, "secret/endpoint", impostor.server.URL) }
			if i.random.IntN(2) == 0 {
				i.before = exchange
			} else {
				i.between = exchange
			}
			i.lift = func() { i.write(i.t, "secret/endpoint", i.proxy.server.URL) }
		}, want: away, patience: short},
		{name: "S3: nobody listens", want: away, patience: short, inject: func(i *injection) {
			i.write(i.t, "secret/endpoint", "http://127.0.0.1:1")
			i.lift = func() { i.write(i.t, "secret/endpoint", i.proxy.server.URL) }
		}},
	}
	for n := range rows {
		rows[n].places = "s"
	}
	return rows
}

// redirect sends each request to another host, which nobody may ask.
func redirect(i *injection) {
	var asked atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	i.t.Cleanup(trap.Close)
	status := []int{301, 302, 307, 308}[i.random.IntN(4)]
	always(func(_ *proxy, w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, strings.Replace(trap.URL, "127.0.0.1", "localhost", 1)+r.URL.Path, status)
		return true
	})(i)
	i.lift = func() {
		if asked.Load() > 0 {
			i.problem("the other host was asked %d times", asked.Load())
		}
	}
}
