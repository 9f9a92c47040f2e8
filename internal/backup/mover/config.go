package mover

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Config is the configuration of slipway-backup. It holds no secret: those are in folders that it names.
type Config struct {
	Repository Repository `json:"repository"`
	Snapshot   Snapshot   `json:"snapshot,omitzero"`
	Verify     Verify     `json:"verify,omitzero"`
	Restore    Restore    `json:"restore,omitzero"`
	Expire     Expire     `json:"expire,omitzero"`
	List       List       `json:"list,omitzero"`
	Delete     Delete     `json:"delete,omitzero"`
	Drill      Drill      `json:"drill,omitzero"`
}

// Repository says which repository.
type Repository struct {
	// Filesystem or S3 says where the repository is.
	Filesystem *Filesystem `json:"filesystem,omitempty"`
	S3         *S3         `json:"s3,omitempty"`
	// EncryptionFolder holds the file password and, once the repository is made, one with its ID.
	EncryptionFolder string `json:"encryptionFolder"`
	// IDFile is that file. The password may be that of several repositories, each with a file of its own. Default: repositoryID.
	IDFile string `json:"idFile,omitempty"`
	// OldID reports whether the file repositoryID is of this repository too, where there is no IDFile yet: older releases had one for
	// all, and nobody else uses this password.
	OldID bool `json:"oldID,omitempty"`
	// ID is the ID of the repository, from the result of the first run. Any other is refused.
	ID string `json:"id,omitempty"`
	// Create lets snapshot make the repository when there is none and its ID was never known.
	Create bool `json:"create,omitempty"`
	// WorkFolder is for the cache. Default: the folder for temporary files.
	WorkFolder string `json:"workFolder,omitempty"`
	// CacheBytes bounds each of two caches. Default: 256 MiB.
	CacheBytes int64 `json:"cacheBytes,omitempty"`
}

// OldIDFile is the file with the ID of a repository where there is one for each password.
const OldIDFile = "repositoryID"

// IDFile is the file with the ID of the repository of a Backup, beside the password, and the key in the Secret.
func IDFile(backup string) string { return OldIDFile + "." + backup }

// Tag is what the copy of a volume is found by in the repository: it belongs to a BackupRun and to no other.
func Tag(run types.UID, claim string) string { return string(run) + "/" + claim }

// Filesystem is a folder.
type Filesystem struct {
	Path string `json:"path"`
	// Shared lets all users read and write what is made. The pods that use a repository on a volume run as several users: as
	// those of the volumes that they copy.
	Shared bool `json:"shared,omitempty"`
}

// S3 is a prefix in a bucket.
type S3 struct {
	Bucket string `json:"bucket"`
	Prefix string `json:"prefix,omitempty"`
	// CredentialsFolder holds the files accessKeyID and secretAccessKey and, where needed, sessionToken, endpoint (an
	// address such as https://s3.example.com; default: that of AWS), region, and ca.crt (certificates in PEM).
	CredentialsFolder string `json:"credentialsFolder"`
}

// Snapshot says what to keep.
type Snapshot struct {
	// Source is the folder.
	Source string `json:"source"`
	// Run names the run. A second snapshot of the same run is not made.
	Run string `json:"run"`
	// Volume tells the sources of a repository apart, when there are several.
	Volume string `json:"volume,omitempty"`
	// SourceTime is what moment the source is of, where it is a snapshot that was taken before. Default: when reading begins.
	SourceTime       time.Time `json:"sourceTime,omitzero"`
	Paths            []string  `json:"paths,omitempty"`
	Exclude          []string  `json:"exclude,omitempty"`
	AllowPartial     bool      `json:"allowPartial,omitempty"`
	AllowEmpty       bool      `json:"allowEmpty,omitempty"`
	IgnoreChangeTime bool      `json:"ignoreChangeTime,omitempty"`
	ReadAll          bool      `json:"readAll,omitempty"`
	Parallel         int       `json:"parallel,omitempty"`
	// Dump, instead of Source, is the output of a command.
	Dump *Dump `json:"dump,omitempty"`
}

// Dump says where the output of a command comes from. Another process runs the command: slipway-backup dump.
type Dump struct {
	// Socket is where to listen for it.
	Socket string `json:"socket"`
	// Name is that of the file.
	Name string `json:"name,omitempty"`
}

// Verify says what to read back: the snapshot of a run, or snapshots by their IDs, or all.
type Verify struct {
	Run         string   `json:"run,omitempty"`
	Snapshots   []string `json:"snapshots,omitempty"`
	ReadPercent float64  `json:"readPercent,omitempty"`
	Parallel    int      `json:"parallel,omitempty"`
}

// Restore says what to bring back.
type Restore struct {
	// Snapshot, Run or Latest says which snapshot. Latest takes the newest verified one.
	Snapshot string `json:"snapshot,omitempty"`
	Run      string `json:"run,omitempty"`
	Latest   bool   `json:"latest,omitempty"`
	// AsOf bounds Latest: the source had been read until then. Where that is a snapshot of a volume, reading it had begun: it
	// is asked for earlier and taken in between. There is no way around it to an earlier or later one.
	AsOf time.Time `json:"asOf,omitzero"`
	// Volume bounds Latest to snapshots of a volume. Required where the repository holds several.
	Volume    string   `json:"volume,omitempty"`
	Target    string   `json:"target"`
	Paths     []string `json:"paths,omitempty"`
	Overwrite bool     `json:"overwrite,omitempty"`
	// Attempt names what several attempts have in common: the next one goes on with what the last has written.
	Attempt  string `json:"attempt,omitempty"`
	Parallel int    `json:"parallel,omitempty"`
}

// Expire says what to remove: either the snapshots that are named, or those that no rule of Retention keeps.
type Expire struct {
	Snapshots []string   `json:"snapshots,omitempty"`
	Retention *Retention `json:"retention,omitempty"`
}

// Retention says which snapshots are kept.
type Retention struct {
	Last    int `json:"last,omitempty"`
	Hourly  int `json:"hourly,omitempty"`
	Daily   int `json:"daily,omitempty"`
	Weekly  int `json:"weekly,omitempty"`
	Monthly int `json:"monthly,omitempty"`
	Yearly  int `json:"yearly,omitempty"`
	// Within is a period such as 30d: h, d, w, mo and y, each at most once.
	Within string `json:"within,omitempty"`
	// TimeZone is that of days, weeks and so on. Default: UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Limit is how many snapshots may be removed at once, of each volume. Confirmed lets it be more.
	Limit     int  `json:"limit"`
	Confirmed bool `json:"confirmed,omitempty"`
}

// Delete restricts what is deleted.
type Delete struct {
	// MadeSince protects a repository that is older, or that holds an older copy: whoever asks cannot have made it. Zero: no
	// repository is protected.
	MadeSince time.Time `json:"madeSince,omitzero"`
}

// List restricts what is listed.
type List struct {
	Run string `json:"run,omitempty"`
}
