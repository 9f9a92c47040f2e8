//go:build backupfaults

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

const (
	accessKey = "canary-access-key-17"
	secretKey = "canary-secret-key-23"
)

// arena is what all injections share: the program, the S3 server, and repositories with a snapshot that each gets a copy of.
type arena struct {
	t        testing.TB
	binary   string
	folder   string
	server   string // address of the S3 server
	bucket   string // its folder
	expected []string
	ids      map[string]string // of the repositories "template" and "other", on each place
}

func newArena(t *testing.T) *arena {
	t.Helper()
	a := &arena{t: t, folder: t.TempDir(), ids: map[string]string{}}
	a.binary = filepath.Join(a.folder, "slipway-backup")
	if err := os.Chmod(filepath.Dir(a.folder), 0o755); err != nil { // some steps run without rights
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", a.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	a.serve(t)
	a.fill(filepath.Join(a.folder, "source"))
	if err := os.Mkdir(filepath.Join(a.folder, "repositories"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.expected = portrait(t, filepath.Join(a.folder, "source"))
	for _, name := range []string{"template", "other"} {
		for _, s3 := range []bool{false, true} {
			b := a.newBench(t, name, s3)
			b.config.Repository.Create, b.config.Snapshot.Run = true, "before"
			b.config.Snapshot.Source = filepath.Join(a.folder, "source")
			i := &injection{bench: b, t: t, arena: a, row: row{patience: time.Minute}, results: map[mover.Step][]byte{}}
			if state := i.run(mover.StepSnapshot, false); state.ExitCode != 0 {
				t.Fatalf("%s\n%s", state.Message, i.said.String())
			}
			made, err := mover.ParseResult(string(i.results[mover.StepSnapshot]))
			if err != nil {
				t.Fatal(err)
			}
			a.ids[fmt.Sprint(name, s3)] = made.RepositoryID
		}
	}
	return a
}

// fill makes a source: small and large files, odd names, links, a hole.
func (a *arena) fill(folder string) {
	a.t.Helper()
	random := rand.NewChaCha8([32]byte{7})
	noise := func(size int) []byte {
		content := make([]byte, size)
		_, _ = random.Read(content)
		return content
	}
	err := errors.Join(os.MkdirAll(filepath.Join(folder, "sub/deep"), 0o755), os.Mkdir(filepath.Join(folder, "empty"), 0o700))
	for n := range 20 {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, "sub", fmt.Sprint("file-", n)), noise(n*977), 0o640))
	}
	large := filepath.Join(folder, "sub/deep/large")
	err = errors.Join(err,
		os.WriteFile(large, noise(3<<20), 0o600), os.WriteFile(filepath.Join(folder, "odd\n \"name\xff"), noise(100), 0o644),
		os.WriteFile(filepath.Join(folder, "nothing"), nil, 0o444), os.WriteFile(filepath.Join(folder, "set"), noise(10), 0o755),
		os.Chmod(filepath.Join(folder, "set"), 0o755|fs.ModeSetuid), os.Link(large, filepath.Join(folder, "linked")),
		os.Symlink("/nowhere/../else", filepath.Join(folder, "symlink")), os.WriteFile(filepath.Join(folder, "hole"), []byte("x"), 0o644),
		os.Truncate(filepath.Join(folder, "hole"), 5<<20))
	if err != nil {
		a.t.Fatal(err)
	}
}

// serve runs versitygw.
func (a *arena) serve(t *testing.T) {
	t.Helper()
	program := os.Getenv("VERSITYGW")
	if program == "" {
		t.Fatal("VERSITYGW is not set: make test-backup-faults sets it")
	}
	var listen net.ListenConfig
	free, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.server = free.Addr().String()
	free.Close()
	root := filepath.Join(a.folder, "s3")
	a.bucket = filepath.Join(root, "backups")
	if err := os.MkdirAll(a.bucket, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, program, "--port", a.server, "--health", "/healthz", "posix", root)
	server.Env = []string{"ROOT_ACCESS_KEY_ID=" + accessKey, "ROOT_SECRET_ACCESS_KEY=" + secretKey}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = server.Wait()
	})
	dialer := net.Dialer{Timeout: time.Second}
	deadline := time.Now().Add(time.Minute)
	for {
		connection, err := dialer.DialContext(t.Context(), "tcp", a.server)
		if err == nil {
			connection.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// newBench is a configuration for a repository of a name.
func (a *arena) newBench(t testing.TB, name string, s3 bool) *bench {
	t.Helper()
	b := &bench{folder: filepath.Join(a.folder, fmt.Sprint("work-", numbers.Add(1)))}
	b.write(t, "secret/password", password+"\n")
	b.write(t, "work/empty", "")
	b.write(t, "secret/accessKeyID", accessKey)
	b.write(t, "secret/secretAccessKey", secretKey)
	b.write(t, "secret/region", "us-east-1")
	b.write(t, "secret/endpoint", "http://"+a.server)
	b.config.Repository = mover.Repository{EncryptionFolder: b.path("secret"), WorkFolder: b.path("work"), CacheBytes: 16 << 20}
	if s3 {
		b.config.Repository.S3 = &mover.S3{Bucket: "backups", Prefix: name, CredentialsFolder: b.path("secret")}
	} else {
		b.config.Repository.Filesystem = &mover.Filesystem{Path: filepath.Join(a.folder, "repositories", name)}
	}
	return b
}

// stored is the folder in which the objects or files of a repository are.
func (a *arena) stored(c mover.Repository) string {
	if c.S3 != nil {
		return filepath.Join(a.bucket, c.S3.Prefix)
	}
	return c.Filesystem.Path
}

// copy copies a folder with all that belongs to its files.
func (a *arena) copy(from, to string) {
	a.t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		a.t.Error(err)
	}
	if output, err := exec.CommandContext(context.Background(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		a.t.Errorf("%v\n%s", err, output)
	}
}

// inject makes an injection with a repository and a source of its own.
func (a *arena) inject(t testing.TB, r row, s3 bool, seed uint64) *injection {
	t.Helper()
	name := fmt.Sprint("i-", numbers.Add(1))
	i := &injection{
		bench: a.newBench(t, name, s3), t: t, arena: a, row: r, s3: s3, random: rand.New(rand.NewPCG(seed, seed)),
		during: map[mover.Step]func(*os.Process){}, ahead: map[mover.Step]time.Duration{}, results: map[mover.Step][]byte{}, files: map[string]bool{},
	}
	template := i.config.Repository
	if s3 {
		i.proxy = newProxy(t, a.server, r.tls)
		i.write(t, "secret/endpoint", i.proxy.server.URL)
		if r.tls {
			i.write(t, "secret/ca.crt", i.proxy.trusted())
		}
		s := *template.S3
		s.Prefix = "template"
		template.S3 = &s
	} else {
		template.Filesystem = &mover.Filesystem{Path: filepath.Join(a.folder, "repositories", "template")}
	}
	a.copy(a.stored(template), i.stored())
	a.copy(filepath.Join(a.folder, "source"), i.path("source"))
	i.config.Repository.ID = a.ids[fmt.Sprint("template", s3)]
	i.config.Snapshot.Source, i.config.Verify.ReadPercent = i.path("source"), 100
	return i
}

// arrange changes the source, so that there is something to keep, and lets the row do its work.
func (i *injection) arrange() {
	fresh := make([]byte, 1<<20+i.random.IntN(1<<20))
	_, _ = rand.NewChaCha8([32]byte{byte(i.random.Uint32()), byte(i.random.Uint32())}).Read(fresh)
	i.check(os.WriteFile(i.path("source/fresh"), fresh, 0o644))
	i.check(os.WriteFile(i.path("source/sub/file-3"), fresh[:3000], 0o600))
	for _, path := range i.blobs("") {
		i.files[path] = true
	}
	i.row.inject(i)
	if i.before != nil {
		i.before()
	}
	i.expected = portrait(i.t, i.path("source"))
}

// stored is the folder in which the objects or files of the repository are.
func (i *injection) stored() string { return i.arena.stored(i.config.Repository) }

// blobs are the files of the repository whose names begin so, in the order of their names.
func (i *injection) blobs(prefix string) []string { return blobsOf(i.stored(), prefix) }

func blobsOf(root, prefix string) []string {
	var found []string
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // what is gone is not there
		}
		relative, _ := filepath.Rel(root, path)
		name := strings.TrimSuffix(strings.ReplaceAll(relative, "/", ""), ".f")
		if strings.HasPrefix(name, prefix) && e.Name() != ".shards" {
			found = append(found, path)
		}
		return nil
	})
	slices.Sort(found)
	return found
}

// pick chooses one of the files of a kind: one that was written since, or one that was there before.
func (i *injection) pick(prefix string, written bool) string {
	all := slices.DeleteFunc(i.blobs(prefix), func(path string) bool { return i.files[path] == written })
	if len(all) == 0 {
		i.t.Errorf("%s: there is no file %s", i.row.name, prefix)
		return filepath.Join(i.stored(), "none")
	}
	return all[i.random.IntN(len(all))]
}
