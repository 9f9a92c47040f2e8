// Command restore brings back a snapshot with nothing but the library of kopia, in case that Slipway is not at hand:
//
//	KOPIA_PASSWORD=... go run ./hack/restore REPOSITORY_FOLDER SNAPSHOT_ID TARGET
//
// docs/disaster-recovery.md says what it leaves out, and how to do the same with the program of kopia.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob/filesystem" // or s3
	"github.com/kopia/kopia/repo/manifest"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/restore"
	"github.com/kopia/kopia/snapshot/snapshotfs"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "Usage: restore REPOSITORY_FOLDER SNAPSHOT_ID TARGET, with the password in KOPIA_PASSWORD")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Getenv("KOPIA_PASSWORD"), os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "restore:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder, password, id, target string) error {
	work, err := os.MkdirTemp("", "restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	st, err := filesystem.New(ctx, &filesystem.Options{Path: folder}, false)
	if err != nil {
		return err
	}
	config := filepath.Join(work, "repository.config")
	if err := repo.Connect(ctx, config, st, password, nil); err != nil {
		return err
	}
	r, err := repo.Open(ctx, config, password, nil)
	if err != nil {
		return err
	}
	defer r.Close(ctx)
	found, err := snapshot.LoadSnapshot(ctx, r, manifest.ID(id))
	if err != nil {
		return err
	}
	// A snapshot of Slipway holds two things: the files in "data", and "attributes.jsonl".
	data, err := snapshotfs.GetNestedEntry(ctx, snapshotfs.EntryFromDirEntry(r, found.RootEntry), []string{"data"})
	if err != nil {
		return err
	}
	output := &restore.FilesystemOutput{TargetPath: target, OverwriteDirectories: true}
	if err := output.Init(ctx); err != nil {
		return err
	}
	stats, err := restore.Entry(ctx, r, output, data, restore.Options{RestoreDirEntryAtDepth: math.MaxInt32})
	if err != nil {
		return err
	}
	fmt.Printf("restored %d files, %d bytes\n", stats.RestoredFileCount, stats.RestoredTotalFileSize)
	return nil
}
