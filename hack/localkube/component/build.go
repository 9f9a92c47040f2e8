package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Builder builds components into Cache, from the modules below Sources.
type Builder struct {
	Sources  string
	Cache    string
	Progress io.Writer
}

// FindSources returns the components folder. It looks beside the sources that this
// program was compiled from, and then below the working directory.
func FindSources() (string, error) {
	candidates := []string{"components", filepath.Join("hack", "localkube", "components")}
	if _, file, _, ok := runtime.Caller(0); ok {
		candidates = append([]string{filepath.Join(filepath.Dir(file), "..", "components")}, candidates...)
	}
	for _, candidate := range candidates {
		if _, err := os.Stat(filepath.Join(candidate, "kubernetes", "go.mod")); err == nil {
			return filepath.Abs(candidate)
		}
	}
	return "", errors.New("the folder hack/localkube/components was not found; start localkube from hack/localkube")
}

// DefaultCache is the cache folder when no flag names one.
func DefaultCache() (string, error) {
	if folder := os.Getenv("SLIPWAY_CACHE"); folder != "" {
		return folder, nil
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; name a cache folder with --cache-dir or SLIPWAY_CACHE", err)
	}
	return filepath.Join(folder, "slipway"), nil
}

// Build makes sure that every given component is built, and returns the folder
// of each by name.
func (b Builder) Build(ctx context.Context, components []Component) (map[string]string, error) {
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return nil, err
	}
	folders := make(map[string]string, len(components))
	var missing []Component
	for _, c := range components {
		hash, err := c.Hash(b.Sources)
		if err != nil {
			return nil, err
		}
		folders[c.Name] = filepath.Join(b.Cache, c.Name+"-"+hash)
		if !complete(c, folders[c.Name]) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return folders, nil
	}
	return folders, b.buildMissing(ctx, missing, folders)
}

func (b Builder) buildMissing(ctx context.Context, missing []Component, folders map[string]string) error {
	unlock, err := b.lock()
	if err != nil {
		return err
	}
	defer unlock()
	b.removeLeftovers()
	for index, c := range missing {
		// Another localkube may have built it while this one waited for the lock.
		if complete(c, folders[c.Name]) {
			continue
		}
		fmt.Fprintf(b.Progress, "[%d/%d] building %s %s\n", index+1, len(missing), c.Name, c.Version)
		started := time.Now()
		if err := b.withTicker(c, started, func() error { return b.build(ctx, c, folders[c.Name]) }); err != nil {
			return fmt.Errorf("build %s: %w", c.Name, err)
		}
		fmt.Fprintf(b.Progress, "[%d/%d] built %s in %s\n", index+1, len(missing), c.Name, time.Since(started).Round(time.Second))
	}
	return nil
}

// removeLeftovers removes what an interrupted build left behind. It runs under
// the lock, so nobody builds there now.
func (b Builder) removeLeftovers() {
	leftovers, err := filepath.Glob(filepath.Join(b.Cache, "*.building.*"))
	if err != nil {
		return
	}
	for _, folder := range leftovers {
		_ = os.RemoveAll(folder)
	}
}

// lock keeps two builds from doing the same work at once on few cores. The
// kernel releases it when the process ends, however it ends.
func (b Builder) lock() (func(), error) {
	file, err := os.OpenFile(filepath.Join(b.Cache, "build.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Fprintln(b.Progress, "another localkube is building into the same cache folder; waiting for it")
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return func() { _ = file.Close() }, nil
}

// withTicker says every half minute that work is still going on.
func (b Builder) withTicker(c Component, started time.Time, work func() error) error {
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	done := make(chan error, 1)
	go func() { done <- work() }()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			fmt.Fprintf(b.Progress, "      still building %s, %s\n", c.Name, time.Since(started).Round(time.Second))
		}
	}
}

// build compiles into a temporary folder that is renamed at the end, so that a
// folder of the final name is always whole.
func (b Builder) build(ctx context.Context, c Component, folder string) error {
	temporary, err := os.MkdirTemp(b.Cache, c.Name+".building.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	for _, p := range c.Packages {
		if err := b.compile(ctx, c, p, filepath.Join(temporary, p.Program)); err != nil {
			return err
		}
	}
	for _, link := range c.Links {
		if err := os.Symlink(c.Packages[0].Program, filepath.Join(temporary, link)); err != nil {
			return err
		}
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.Rename(temporary, folder)
}

func (b Builder) compile(ctx context.Context, c Component, p Package, output string) error {
	arguments := []string{
		"build", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-p", strconv.Itoa(min(2, runtime.NumCPU())),
		"-ldflags", "-s -w " + c.LinkerFlags,
		"-tags", c.Tags,
		"-o", output, p.Path,
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = filepath.Join(b.Sources, c.Name)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var text bytes.Buffer
	command.Stdout = &text
	command.Stderr = &text
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, lastLines(text.Bytes(), 30))
	}
	return nil
}

func lastLines(text []byte, count int) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-count):], []byte("\n"))
}

// complete reports whether the folder holds every program and link.
func complete(c Component, folder string) bool {
	for _, p := range c.Packages {
		if _, err := os.Stat(filepath.Join(folder, p.Program)); err != nil {
			return false
		}
	}
	for _, link := range c.Links {
		if _, err := os.Stat(filepath.Join(folder, link)); err != nil {
			return false
		}
	}
	return true
}
