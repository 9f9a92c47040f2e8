package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

const (
	keyFile  = "key"
	keyBytes = 32
)

// policy says what is secret. The key of its hashes lies beside the store, so it is backed up with it.
func (a *app) policy(ctx context.Context, s *store.Store) (*change.Policy, []byte, error) {
	key, err := readKey(filepath.Join(a.options.Config.Store.Folder, keyFile))
	if err != nil {
		return nil, nil, err
	}
	if err := a.compareKey(ctx, s, key); err != nil {
		return nil, nil, err
	}
	c := &a.options.Config
	policy, err := change.NewPolicy(change.Options{Key: key, Names: c.Redact.Names, Paths: c.Redact.Paths, Noise: c.Noise.Paths})
	return policy, key, err
}

// readKey reads the key, and makes it when there is none. It gets its name when it is whole.
func readKey(path string) ([]byte, error) {
	key, err := os.ReadFile(filepath.Clean(path))
	if err == nil && len(key) == keyBytes {
		return key, nil
	}
	if err == nil {
		return nil, fmt.Errorf(
			"%s has %d bytes, and should have %d: put back the one from a backup, or delete it", path, len(key), keyBytes,
		)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key = make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	file, err := os.OpenFile(filepath.Clean(path+".new"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(key)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	return key, os.Rename(path+".new", path)
}

// compareKey says when the key is another one than before: every secret looks changed then, once.
func (a *app) compareKey(ctx context.Context, s *store.Store, key []byte) error {
	sum := sha256.Sum256(key)
	now := hex.EncodeToString(sum[:8])
	known, err := s.Values(ctx, store.KeyFingerprint)
	if err != nil {
		return err
	}
	if len(known) > 0 && string(known[0].Data) == now {
		return nil
	}
	if len(known) > 0 {
		a.log.Warn("the key of the hashes is another one than before: every secret looks changed, once")
	}
	return s.Commit(ctx, store.Batch{Values: []store.Value{{Key: store.KeyFingerprint, Data: []byte(now)}}})
}
