package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kopia/kopia/fs/localfs"
	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob/filesystem"
	"github.com/kopia/kopia/repo/compression"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/format"
	"github.com/kopia/kopia/snapshot"
	"github.com/kopia/kopia/snapshot/policy"
	"github.com/kopia/kopia/snapshot/upload"
)

// engineOptions are what the bare engine is told.
type engineOptions struct {
	source, repository, work, compression, splitter, hash, password string
	create                                                          bool
	parallel                                                        int
}

// engineMain is the bare engine: the shortest way to a snapshot with the library, in a process of its own.
func engineMain(ctx context.Context, args []string) error {
	var o engineOptions
	flags := flag.NewFlagSet("backupbench engine", flag.ContinueOnError)
	flags.StringVar(&o.source, "source", "", "folder to keep")
	flags.StringVar(&o.repository, "repository", "", "folder of the repository")
	flags.StringVar(&o.work, "work", "", "folder for the cache")
	flags.StringVar(&o.compression, "compression", "none", "compression")
	flags.StringVar(&o.splitter, "splitter", "DYNAMIC-1M-BUZHASH", "how files are cut, in a repository that is made")
	flags.StringVar(&o.hash, "hash", "BLAKE3-256-128", "how contents are named, in a repository that is made")
	flags.BoolVar(&o.create, "create", false, "make the repository")
	flags.IntVar(&o.parallel, "parallel", 1, "how many files are read at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.password = os.Getenv("BENCH_PASSWORD")
	return o.snapshot(ctx)
}

func (o engineOptions) snapshot(ctx context.Context) error {
	st, err := filesystem.New(ctx, &filesystem.Options{Path: o.repository, DirectoryMode: 0o700, FileMode: 0o600}, o.create)
	if err != nil {
		return err
	}
	if o.create {
		settings := &repo.NewRepositoryOptions{
			BlockFormat: format.ContentFormat{Hash: o.hash}, ObjectFormat: format.ObjectFormat{Splitter: o.splitter},
		}
		if err := repo.Initialize(ctx, st, settings, o.password); err != nil {
			return err
		}
	}
	connection := st.ConnectionInfo()
	raw, err := json.Marshal(repo.LocalConfig{
		Storage: &connection,
		Caching: &content.CachingOptions{
			CacheDirectory: filepath.Join(o.work, "cache"), ContentCacheSizeBytes: 256 << 20, MetadataCacheSizeBytes: 256 << 20,
		},
		ClientOptions: repo.ClientOptions{Hostname: "bench", Username: "bench"},
	})
	if err != nil {
		return err
	}
	config := filepath.Join(o.work, "repository.config")
	if err := os.WriteFile(config, raw, 0o600); err != nil {
		return err
	}
	r, err := repo.Open(ctx, config, o.password, &repo.Options{DisableRepositoryLog: true})
	if err != nil {
		return err
	}
	defer r.Close(ctx)
	return repo.WriteSession(ctx, r, repo.WriteSessionOptions{Purpose: "bench"}, o.upload)
}

func (o engineOptions) upload(ctx context.Context, w repo.RepositoryWriter) error {
	source, err := localfs.Directory(o.source)
	if err != nil {
		return err
	}
	of := snapshot.SourceInfo{Host: "bench", UserName: "bench", Path: o.source}
	earlier, err := snapshot.ListSnapshots(ctx, w, of)
	if err != nil {
		return err
	}
	uploader := upload.NewUploader(w)
	uploader.ParallelUploads = o.parallel
	uploader.DisableIgnoreRules = true
	tree := policy.BuildTree(nil, &policy.Policy{
		CompressionPolicy:         policy.CompressionPolicy{CompressorName: compression.Name(o.compression)},
		MetadataCompressionPolicy: policy.MetadataCompressionPolicy{CompressorName: "zstd-fastest"},
	})
	made, err := uploader.Upload(ctx, source, tree, of, earlier...)
	if err != nil {
		return err
	}
	if made.IncompleteReason != "" || made.Stats.ErrorCount > 0 {
		return fmt.Errorf("the snapshot is not complete: %s, %d errors", made.IncompleteReason, made.Stats.ErrorCount)
	}
	_, err = snapshot.SaveSnapshot(ctx, w, made)
	return err
}
