package engine

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// sizeOfFolder is how many bytes its files hold.
func sizeOfFolder(t *testing.T, folder string) int64 {
	t.Helper()
	var sum int64
	err := filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		sum += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// noisyFolder makes files that cannot be compressed.
func noisyFolder(t *testing.T, files, size int) string {
	t.Helper()
	folder := t.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	for i := range files {
		content := make([]byte, size)
		_, _ = random.Read(content)
		write(t, folder, fmt.Sprintf("%d/file", i), string(content))
	}
	return folder
}

func TestARepositoryInAFolderHasNoCache(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	kept(t, r, "run", noisyFolder(t, 8, 1<<20))
	if _, err := r.Verify(t.Context(), VerifyOptions{Run: "run", ReadPercent: 100}); err != nil {
		t.Fatal(err)
	}
	restored(t, r, "run")
	if used := sizeOfFolder(t, options.WorkFolder); used > 64<<10 {
		t.Errorf("%d bytes are in the folder for the cache", used)
	}
}

// A full volume of a node ends other pods.
func TestTheCacheOfABucketStaysWithinItsBound(t *testing.T) {
	options := newBucket(t).options(t)
	options.CacheBytes = 4 << 20
	id, err := Create(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	options.ExpectedID = id
	kept(t, opened(t, options), "run", noisyFolder(t, 24, 1<<20))

	options.WorkFolder = t.TempDir()
	r := opened(t, options)
	// The other cache, of folders, holds little here. What is read at the same time may be above the bound.
	limit := options.CacheBytes + 4<<20
	if _, err := r.Verify(t.Context(), VerifyOptions{Run: "run", ReadPercent: 100, Parallel: 1}); err != nil {
		t.Fatal(err)
	}
	if used := sizeOfFolder(t, options.WorkFolder); used > limit || used < 1<<20 {
		t.Errorf("the cache takes %d bytes of at most %d", used, limit)
	}
}
