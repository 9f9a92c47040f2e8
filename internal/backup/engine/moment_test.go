package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestASnapshotIsOfTheMomentOfItsSource(t *testing.T) {
	options := inFolder(t)
	r := created(t, options)
	source := tree(t)
	now := time.Now().UTC()
	ago := now.Add(-time.Hour)
	for _, c := range []struct {
		run      string
		reported time.Time
	}{{"volume", time.Time{}}, {"an hour ago", ago}, {"two hours ago", now.Add(-2 * time.Hour)}, {"ahead", now.Add(time.Hour)}} {
		made, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: c.run, SourceTime: c.reported})
		if err != nil {
			t.Fatal(err)
		}
		want := made.Start
		if c.reported.Before(now) && !c.reported.IsZero() {
			want = c.reported
		}
		if !made.SourceTime.Equal(want) || made.Start.Before(now.Truncate(time.Second)) {
			t.Errorf("%s: made of %s, read at %s, want %s", c.run, made.SourceTime, made.Start, want)
		}
		again, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: c.run, SourceTime: now.Add(-9 * time.Hour)})
		if err != nil || !again.Adopted || !again.SourceTime.Equal(want) {
			t.Errorf("%s: once more it is %+v, %v", c.run, again, err)
		}
		listed, err := opened(t, options).List(t.Context(), ListOptions{Run: c.run})
		if err != nil || len(listed) != 1 || !listed[0].SourceTime.Equal(want) {
			t.Errorf("%s: listed %+v (%v), want %s", c.run, listed, err, want)
		}
	}

	// The order is that of the content, whenever it was read.
	listed, err := r.List(t.Context(), ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var runs, manifests []string
	for _, s := range listed {
		runs = append(runs, s.Run)
	}
	if diff := cmp.Diff([]string{"two hours ago", "an hour ago", "volume", "ahead"}, runs); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}

	// It changes nothing of what is verified and compared.
	verified, err := r.Verify(t.Context(), VerifyOptions{ReadPercent: 100})
	if err != nil || len(verified.Snapshots) != 4 {
		t.Fatalf("%+v, %v", verified, err)
	}
	for _, s := range verified.Snapshots {
		manifests = append(manifests, s.Manifest)
	}
	target, restored := restored(t, r, "an hour ago")
	if !restored.Snapshot.SourceTime.Equal(ago) {
		t.Errorf("restored is %+v", restored.Snapshot)
	}
	if _, err := r.Compare(t.Context(), CompareOptions{Snapshot: restored.Snapshot.ID, Manifest: manifests[1], Folder: target}); err != nil {
		t.Error(err)
	}
	if _, err := r.Expire(t.Context(), ExpireOptions{Snapshots: []string{restored.Snapshot.ID}}); err != nil {
		t.Error(err)
	}
}

// A stream may be of an earlier moment too.
func TestAStreamIsOfTheMomentOfItsSource(t *testing.T) {
	r := created(t, inFolder(t))
	ago := time.Now().Add(-time.Hour).UTC()
	made, err := r.Snapshot(t.Context(), SnapshotOptions{Run: "one", SourceTime: ago, Stream: ofStream(&fakeStream{Reader: strings.NewReader("dumped")})})
	if err != nil || !made.SourceTime.Equal(ago) {
		t.Errorf("%+v, %v", made, err)
	}
}

// What was written after a moment is not in a snapshot of that moment, however late that was read. So such a file is not taken
// from it, even when size and modification time are the same.
func TestWhatWasWrittenAfterTheMomentIsRead(t *testing.T) {
	options := inFolder(t)
	clock := &fakeClock{}
	options.Clock = clock
	r := created(t, options)
	source := t.TempDir()
	modified := time.Now().Add(-48 * time.Hour)
	put := func(content string) {
		t.Helper()
		write(t, source, "page", content)
		if err := os.Chtimes(filepath.Join(source, "page"), modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	put("before")
	moment := time.Now().Add(-30 * time.Minute)
	clock.step(2 * time.Hour) // it is read so much later
	if _, err := r.Snapshot(t.Context(), SnapshotOptions{Source: source, Run: "one", SourceTime: moment}); err != nil {
		t.Fatal(err)
	}
	put("behind") // between the moment and the reading
	clock.step(time.Hour)
	kept(t, r, "two", source)
	target, _ := restored(t, r, "two")
	if content, err := os.ReadFile(filepath.Join(target, "page")); err != nil || string(content) != "behind" {
		t.Errorf("restored %q, %v", content, err)
	}
}

// What an interrupted run leaves for the next is of the same moment.
func TestACheckpointIsOfTheMomentOfItsSource(t *testing.T) {
	r := created(t, inFolder(t))
	source := t.TempDir()
	for i := range 20 {
		write(t, source, fmt.Sprintf("%02d", i), noise(uint64(i), 1<<20))
	}
	ctx, cancel := context.WithCancel(t.Context())
	meter := &Meter{}
	go func() {
		for meter.Progress().Bytes < 15<<20 && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		cancel()
	}()
	ago := time.Now().Add(-time.Hour).UTC()
	_, err := r.Snapshot(ctx, SnapshotOptions{
		Source: source, Run: "one", Meter: meter, Parallel: 1, SourceTime: ago, checkpointEvery: 10 * time.Millisecond,
	})
	wantKind(t, err, KindCanceled)
	left, err := r.manifests(t.Context())
	if err != nil || len(left) == 0 {
		t.Fatalf("%d are left, %v", len(left), err)
	}
	for _, m := range left {
		if m.IncompleteReason == "" || !sourceTime(m).Equal(ago) {
			t.Errorf("left is one of %s, %q", sourceTime(m), m.IncompleteReason)
		}
	}
}
