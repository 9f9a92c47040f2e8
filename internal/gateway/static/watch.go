package static

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/utils/clock"
)

// every is how often the file is looked at. It is compared by content: a file may be
// replaced, be a link that is turned, or lie on a volume that tells no changes.
const every = time.Second

// Follow applies the file, and again whenever it has changed, until the context ends. It
// returns an error only if the file cannot be applied at the start; later failed is told
// and what was applied stays.
func Follow(ctx context.Context, ticking clock.WithTicker, path string, apply func(*Config) error, failed func(error)) error {
	current, err := load(path, nil, apply)
	if err != nil {
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
		text, err := load(path, current, apply)
		if err != nil {
			failed(err)
		}
		if text != nil {
			current = text
		}
	}
}

// load applies the file unless it is as before. It returns what it read.
func load(path string, before []byte, apply func(*Config) error) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if before != nil && bytes.Equal(before, text) {
		return text, nil
	}
	config, err := Parse(text)
	if err == nil {
		err = apply(config)
	}
	if err != nil {
		return text, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
