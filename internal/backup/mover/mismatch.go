package mover

// Mismatch returns in what the two processes contradict each other, or what they did not do. It is empty when the copy counts.
func Mismatch(made, verified *Result, tag string) string {
	switch {
	case made == nil || made.Snapshot == nil || verified == nil || verified.Verify == nil:
		return "a step did not say what it did"
	case made.Snapshot.Run != tag:
		return "the copy is of another run"
	case made.RepositoryID == "" || made.RepositoryID != verified.RepositoryID:
		return "the copy was made in one repository and verified in another"
	case len(verified.Snapshots) != 1 || verified.Snapshots[0].ID != made.Snapshot.ID:
		return "another copy was verified than was made"
	case verified.Snapshots[0].Manifest != made.Snapshot.Manifest:
		return "another manifest was read back than was written"
	case verified.Verify.Files != made.Snapshot.Stats.Files || verified.Verify.Bytes != made.Snapshot.Stats.Bytes:
		return "the copy holds something else than was read"
	default:
		return ""
	}
}
