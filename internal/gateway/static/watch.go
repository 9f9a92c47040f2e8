package static

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// every is how often the file is checked. It is compared by content, because it may be
// replaced, be a symbolic link that changes, or be on a volume without change
// notifications.
const every = time.Second

var errIncomplete = errors.New(`the last line is not "...", which says that the file is whole`)

// Follow applies the file, and applies it again after each change, until the context ends.
// It returns an error only if the file cannot be applied at the start. Later errors go to
// failed, and the last good configuration stays. A panic of reading the file is such an error, and panics is told of it.
func Follow(ctx context.Context, ticking clock.WithTicker, path string, apply func(*Config) error, failed func(error), panics panics.Reporter) error {
	f := &follower{path: path, parse: Parse, apply: apply, panics: panics}
	if err := f.look(); err != nil {
		return err
	}
	ticker := ticking.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := f.look(); err != nil {
			failed(err)
		}
	}
}

// follower applies a file.
type follower struct {
	path   string
	parse  func(text []byte) (*Config, error)
	apply  func(*Config) error
	panics panics.Reporter

	taken []byte      // the content that was last applied or refused
	seen  []byte      // the content at the last check
	file  os.FileInfo // at the last check, nil before the first one
}

// look applies the file if it has changed. A file that is written in place is applied when
// two checks in a row found the same content, because it may still be in writing. A file
// that replaced another one is complete.
func (f *follower) look() error {
	text, file, err := read(f.path)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	writing := f.file != nil && os.SameFile(f.file, file) && !bytes.Equal(f.seen, text)
	first := f.file == nil
	f.seen, f.file = text, file
	if writing || (!first && bytes.Equal(f.taken, text)) {
		return nil
	}
	f.taken = text
	if err := f.take(text); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

func (f *follower) take(text []byte) error {
	if !isWhole(text) {
		return errIncomplete
	}
	config, err := f.read(text)
	if err != nil {
		return err
	}
	return f.apply(config) // a panic may leave half of it applied, so it ends the process
}

func (f *follower) read(text []byte) (config *Config, err error) {
	defer f.panics.CatchError("read the configuration", &err)
	return f.parse(text)
}

// isWhole reports whether a file ends completely. Half a file may be valid YAML, and have
// routes without their auth. In braces (JSON) it would not be valid.
func isWhole(text []byte) bool {
	text = bytes.TrimSpace(text)
	return bytes.HasPrefix(text, []byte("{")) || bytes.HasSuffix(text, []byte("\n..."))
}

func read(path string) ([]byte, os.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(file)
	return text, info, err
}
