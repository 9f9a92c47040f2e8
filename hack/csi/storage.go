//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

// imageSize is that of the file system. The file is sparse.
const imageSize = 4 << 30

// mountImage mounts the file system in a file, which it makes if needed. One that is mounted stays so.
func mountImage(ctx context.Context, image, root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return err
	}
	if fs.Type == unix.BTRFS_SUPER_MAGIC {
		return nil
	}
	if _, err := os.Stat(image); errors.Is(err, os.ErrNotExist) {
		// Under another name first: a file system that is half made must not be mounted.
		half := image + ".making"
		if err := os.WriteFile(half, nil, 0o600); err != nil {
			return err
		}
		if err := os.Truncate(half, imageSize); err != nil {
			return err
		}
		if err := command(ctx, "mkfs.btrfs", "--quiet", "--force", half); err != nil {
			return err
		}
		if err := os.Rename(half, image); err != nil {
			return err
		}
	}
	return command(ctx, "mount", "-o", "loop", image, root)
}

func command(ctx context.Context, name string, arguments ...string) error {
	out, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// The kinds of what is stored. Each has a folder of subvolumes, and one of records.
const (
	kindVolume   = "volumes"
	kindSnapshot = "snapshots"
)

// record is what is known of a volume or a snapshot.
type record struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Size int64  `json:"size"`
	// Source is the ID of the volume that a snapshot is of, or of the snapshot that a volume was made from.
	Source string    `json:"source,omitempty"`
	Made   time.Time `json:"made"`
}

// validID is what idOf returns. Anything else that a request brings is the ID of nothing, and never part of a path.
var validID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// idOf is the ID of what has a name: who asks twice gets the same.
func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// prepare makes the folders.
func (d *driver) prepare() error {
	for _, kind := range []string{kindVolume, kindSnapshot} {
		for _, folder := range []string{d.path(kind, ""), d.recordPath(kind, "")} {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *driver) path(kind, id string) string { return filepath.Join(d.root, kind, id) }

func (d *driver) recordPath(kind, id string) string {
	return filepath.Join(d.root, kind+".records", id)
}

// find returns the record of a volume or a snapshot, nil when there is none.
func (d *driver) find(kind, id string) (*record, error) {
	if !validID.MatchString(id) {
		return nil, nil
	}
	raw, err := os.ReadFile(d.recordPath(kind, id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := &record{}
	return found, json.Unmarshal(raw, found)
}

// make makes a subvolume, from another one or empty, and then its record. One without a record is what a crash has left.
func (d *driver) make(ctx context.Context, kind string, r record, from string) error {
	path := d.path(kind, r.ID)
	if err := d.removeSubvolume(ctx, path); err != nil {
		return err
	}
	var err error
	switch {
	case from == "":
		if err = command(ctx, "btrfs", "subvolume", "create", path); err == nil {
			// Pods run as any user.
			err = os.Chmod(path, 0o777)
		}
	case kind == kindSnapshot:
		err = command(ctx, "btrfs", "subvolume", "snapshot", "-r", from, path)
	default:
		err = command(ctx, "btrfs", "subvolume", "snapshot", from, path)
	}
	if err != nil {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	half := d.recordPath(kind, r.ID) + ".making"
	if err := os.WriteFile(half, raw, 0o600); err != nil {
		return err
	}
	return os.Rename(half, d.recordPath(kind, r.ID))
}

// remove deletes a subvolume and its record. It does nothing when there is none.
func (d *driver) remove(ctx context.Context, kind, id string) error {
	if !validID.MatchString(id) {
		return nil
	}
	if err := d.removeSubvolume(ctx, d.path(kind, id)); err != nil {
		return err
	}
	if err := os.Remove(d.recordPath(kind, id)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *driver) removeSubvolume(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return command(ctx, "btrfs", "subvolume", "delete", path)
}
