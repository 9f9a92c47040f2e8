package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/kopia/kopia/repo"
	"github.com/kopia/kopia/repo/blob"
	"github.com/kopia/kopia/repo/content"
	"github.com/kopia/kopia/repo/format"
	"github.com/kopia/kopia/repo/maintenance"
	"k8s.io/utils/clock"
)

// Options say which repository to use, and how.
type Options struct {
	// Location is where the repository is.
	Location Location
	// Password encrypts the key of the repository. Who loses it has lost all snapshots. Not empty.
	Password Secret
	// ExpectedID is the ID that Create returned. Any other repository is refused with KindWrongRepository, so that an
	// exchanged bucket is never taken for the old one. Default: any repository will do, which is right only for one
	// that was never used before. Create refuses to run when it is set.
	ExpectedID string
	// WorkFolder is where the cache is kept, in a folder of its own that Close removes. Default: the system's folder for
	// temporary files.
	WorkFolder string
	// CacheBytes bounds the cache of file contents, and that of folders, each. In bytes. Default: 256 MiB. A repository in a
	// folder has no cache.
	CacheBytes int64
	// OperationTimeout ends one call of the storage with all its retries. Default: 10 minutes, which is enough for a pack
	// of 20 MiB at 35 KiB/s.
	OperationTimeout time.Duration
	// Clock is for tests. What a repository in a folder knows of time comes from it. Default: the machine's.
	Clock clock.PassiveClock
}

// The identity under which we write. The repository is one Backup's alone, so nobody needs to be told apart.
const (
	userName = "slipway"
	hostName = "slipway"
)

// How a new repository is made. One that is there keeps what it was made with.
const (
	// splitting cuts files into pieces of 1 MiB on average. A change within a large file stores the pieces that it touches:
	// with the library's default of 4 MiB a repository of changed files grows more than twice as fast.
	splitting = "DYNAMIC-1M-BUZHASH"
	// hashing names contents. It is as strong as the library's default, BLAKE2B-256-128, and takes a fifth of its time.
	hashing = "BLAKE3-256-128"
)

func (o Options) withDefaults() (Options, error) {
	o.CacheBytes = cmp.Or(o.CacheBytes, 256<<20)
	o.OperationTimeout = cmp.Or(o.OperationTimeout, 10*time.Minute)
	if o.Password == "" {
		return o, fail(KindInvalid, "check the options", "the password is empty")
	}
	return o, nil
}

// Repository is an open repository. Its methods are not meant to run at the same time.
type Repository struct {
	id      string
	work    string
	storage *storage
	clock   clock.PassiveClock
	rep     repo.DirectRepository
}

// Create makes a repository where nothing is, and returns its ID. What an interrupted Create left behind counts as nothing.
func Create(ctx context.Context, options Options) (string, error) {
	r, err := CreateAndOpen(ctx, options)
	if err != nil {
		return "", err
	}
	return r.ID(), r.Close(ctx)
}

// CreateAndOpen is Create, and leaves the repository open: each opening derives a key from the password, which is slow and
// takes 64 MiB on purpose. Close it after use.
func CreateAndOpen(ctx context.Context, options Options) (*Repository, error) {
	const doing = "create the repository"
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if options.ExpectedID != "" {
		return nil, fail(KindInvalid, doing, "there has been a repository with the ID %s: another one would hide that it is gone", options.ExpectedID)
	}
	st, err := openStorage(ctx, options, true)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, st); err != nil {
		return nil, errors.Join(err, st.Close(ctx))
	}
	err = repo.Initialize(ctx, st, &repo.NewRepositoryOptions{
		BlockFormat: format.ContentFormat{Hash: hashing}, ObjectFormat: format.ObjectFormat{Splitter: splitting},
	}, string(options.Password))
	if err == nil {
		err = st.sync()
	}
	if err = errors.Join(err, st.Close(ctx)); err != nil {
		return nil, classify(ctx, doing, KindInternal, err)
	}

	r, err := Open(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := r.ownMaintenance(ctx); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// prepare refuses a place that holds anything but the rest of a Create that was interrupted, and removes that.
func prepare(ctx context.Context, st *storage) error {
	const doing = "create the repository"
	var rest []blob.ID
	err := st.ListBlobs(ctx, "", func(metadata blob.Metadata) error {
		if metadata.BlobID == format.KopiaBlobCfgBlobID {
			rest = append(rest, metadata.BlobID)
			return nil
		}
		return fail(KindAlreadyExists, doing, "there is data already, such as %s", metadata.BlobID)
	})
	for _, id := range rest {
		if err == nil {
			err = st.DeleteBlob(ctx, id)
		}
	}
	return classify(ctx, doing, KindUnreachable, err)
}

// Open opens a repository. Close it after use.
func Open(ctx context.Context, options Options) (*Repository, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	st, err := openStorage(ctx, options, false)
	if err != nil {
		return nil, err
	}
	r := &Repository{storage: st, clock: options.Clock}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	r.id, err = readID(ctx, st)
	if err == nil {
		err = expect(r.id, options.ExpectedID)
	}
	if err == nil {
		err = r.open(ctx, options)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.work), st.Close(ctx))
	}
	return r, nil
}

func expect(id, expected string) error {
	if expected == "" || id == expected {
		return nil
	}
	return fail(KindWrongRepository, "open the repository", "its ID is %s, expected was %s", id, expected)
}

// readID returns the ID of the repository in a storage, which is not encrypted.
func readID(ctx context.Context, st *storage) (string, error) {
	const doing = "open the repository"
	var raw buffer
	err := st.GetBlob(ctx, format.KopiaRepositoryBlobID, 0, -1, &raw)
	if errors.Is(err, blob.ErrBlobNotFound) {
		return "", missing(ctx, st)
	}
	if err != nil {
		return "", classify(ctx, doing, KindUnreachable, err)
	}
	parsed, err := format.ParseKopiaRepositoryJSON(raw.Bytes())
	if err != nil || len(parsed.UniqueID) == 0 {
		return "", fail(KindCorrupt, doing, "%s is damaged", format.KopiaRepositoryBlobID)
	}
	return hex.EncodeToString(parsed.UniqueID), nil
}

// missing says why there is no repository: the bucket is gone, or nothing is there, or it lost what it begins with.
func missing(ctx context.Context, st *storage) error {
	const doing = "open the repository"
	var data blob.ID
	err := st.ListBlobs(ctx, "", func(metadata blob.Metadata) error {
		if metadata.BlobID != format.KopiaBlobCfgBlobID {
			data = metadata.BlobID
		}
		return nil
	})
	switch {
	case err != nil:
		return classify(ctx, doing, KindUnreachable, err)
	case data != "":
		return fail(KindCorrupt, doing, "%s is missing, and there is data such as %s", format.KopiaRepositoryBlobID, data)
	default:
		return fail(KindNotFound, doing, "there is no repository")
	}
}

// open lets the library open the repository.
func (r *Repository) open(ctx context.Context, options Options) (err error) {
	ctx, done := r.storage.guard(ctx)
	defer done()
	const doing = "open the repository"
	registerStorage()
	r.work, err = os.MkdirTemp(options.WorkFolder, "slipway-repository-")
	if err != nil {
		return classify(ctx, doing, KindInternal, err)
	}
	configuration := repo.LocalConfig{
		Storage:       &blob.ConnectionInfo{Type: storageType, Config: noConfiguration{}},
		Caching:       r.caching(options),
		ClientOptions: repo.ClientOptions{Hostname: hostName, Username: userName},
	}
	raw, err := json.Marshal(configuration)
	if err != nil {
		return classify(ctx, doing, KindInternal, err)
	}
	file := filepath.Join(r.work, "repository.config")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return classify(ctx, doing, KindInternal, err)
	}
	opened, err := repo.Open(context.WithValue(ctx, storageKey{}, r.storage), file, string(options.Password), &repo.Options{
		TimeNowFunc:          r.clock.Now,
		DisableRepositoryLog: true, // it would write to the repository even when we only read
		DoNotWaitForUpgrade:  true, // of the format, by somebody with the program of kopia
		OnFatalError:         func(error) {},
	})
	if err != nil {
		return r.damaged(ctx, doing, err)
	}
	direct, ok := opened.(repo.DirectRepository)
	if !ok {
		return errors.Join(fail(KindInternal, doing, "the library opened a %T", opened), opened.Close(ctx))
	}
	r.rep = direct
	return nil
}

// caching says what is kept beside the repository. Of a repository in a folder nothing is: it is as near as the cache would
// be, and most of what verification and restore do would be to write to the cache what they read once.
func (r *Repository) caching(options Options) *content.CachingOptions {
	if options.Location.Filesystem != nil {
		return &content.CachingOptions{}
	}
	return &content.CachingOptions{
		CacheDirectory:         filepath.Join(r.work, "cache"),
		ContentCacheSizeBytes:  options.CacheBytes,
		MetadataCacheSizeBytes: options.CacheBytes,
		// Without these limits the library removes nothing that is younger than minutes, or a day, however much there is.
		ContentCacheSizeLimitBytes:  options.CacheBytes,
		MetadataCacheSizeLimitBytes: options.CacheBytes,
	}
}

// ID identifies the repository: no other has the same.
func (r *Repository) ID() string { return r.id }

// Close ends the use of a repository and removes its cache. It works with an ended context.
func (r *Repository) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := errors.Join(r.rep.Close(ctx), r.storage.sync(), os.RemoveAll(r.work))
	return classify(ctx, "close the repository", KindInternal, err)
}

// write runs a session that writes to the repository. What it wrote is there, and durable, when it ends without an error.
func (r *Repository) write(ctx context.Context, purpose string, session func(context.Context, repo.DirectRepositoryWriter) error) error {
	err := repo.DirectWriteSession(ctx, r.rep, repo.WriteSessionOptions{Purpose: purpose}, session)
	if err == nil {
		err = r.storage.sync()
	}
	return err
}

// ownMaintenance makes maintenance ours, so that no other program that opens the repository begins one by itself.
func (r *Repository) ownMaintenance(ctx context.Context) error {
	const doing = "take over maintenance"
	parameters, err := maintenance.GetParams(ctx, r.rep)
	if err != nil {
		return r.damaged(ctx, doing, err)
	}
	owner := r.rep.ClientOptions().UsernameAtHost()
	if parameters.Owner == owner {
		return nil
	}
	parameters.Owner = owner
	err = r.write(ctx, doing, func(ctx context.Context, w repo.DirectRepositoryWriter) error {
		return maintenance.SetParams(ctx, w, parameters)
	})
	return classify(ctx, doing, KindInternal, err)
}

// buffer is a bytes.Buffer with the method that the library asks for.
type buffer struct{ bytes.Buffer }

// Length returns how many bytes there are.
func (b *buffer) Length() int { return b.Len() }
