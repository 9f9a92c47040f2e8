package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

// someSecret is a text that may be anywhere in a result by chance: hexadecimal digits, a number, a word of its fields.
func someSecret(random *rand.Rand, r *result) string {
	id := r.Snapshot.ID
	switch random.IntN(7) {
	case 0:
		return id[:4+random.IntN(8)]
	case 1:
		return fmt.Sprint(1000 + random.IntN(9000))
	case 2:
		return []string{"snapshot", "true", "files", "Corrupt", "2026", "run-uid", "null", "message"}[random.IntN(8)]
	case 3:
		return "a"
	case 4:
		return "with \"quotes\" and \\ \n <&>"
	case 5:
		return ""
	default:
		return r.Snapshot.Manifest[random.IntN(30) : 34+random.IntN(30)]
	}
}

func someResult(random *rand.Rand) *result {
	hex := func(n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = "0123456789abcdef"[random.IntN(16)]
		}
		return string(text)
	}
	at := time.Date(2026, 5, 1, 2, 0, 0, random.IntN(1e9), time.UTC)
	of := engine.Snapshot{
		ID: hex(32), Run: "run-uid-" + hex(8) + "/shop-data", Volume: "shop-data", SourceTime: at, Start: at, End: at, Manifest: hex(64),
		Stats: engine.Stats{Files: int64(random.IntN(20000)), Bytes: random.Int64N(1 << 40), Skipped: 1, Unreadable: 1},
	}
	r := &result{Command: "snapshot", Kind: engine.KindCorrupt, RepositoryID: hex(64), PeakMemoryBytes: 12345678}
	r.Snapshot = &engine.SnapshotResult{Snapshot: of, AddedBytes: random.Int64N(1 << 30)}
	r.Restore = &engine.RestoreResult{Snapshot: of, Files: 7, Bytes: 1000}
	r.setSnapshots([]engine.Snapshot{of, of})
	return r
}

// withTexts is a result whose texts for people quote something.
func withTexts(r *result, quote string) *result {
	reported := *r
	reported.Message = "a server said " + quote
	snapshot, restore := *r.Snapshot, *r.Restore
	snapshot.Stats.UnreadableExamples, snapshot.Stats.SkippedExamples = []string{quote + ": denied"}, []string{"socket " + quote}
	restore.Examples, restore.Snapshot.Stats.UnreadableExamples = []string{quote}, []string{quote}
	reported.Snapshot, reported.Restore = &snapshot, &restore
	return &reported
}

// Whatever the secrets are, nothing that the operator compares or counts is changed by them, and no text for people has one.
func TestSecretsChangeNoIDAndNoNumber(t *testing.T) {
	count, source := property.Inputs(t, 20000, 2000)
	random := source(13)
	for range count {
		plain := someResult(random)
		secret := someSecret(random, plain)
		quoting := withTexts(plain, fmt.Sprintf("%q and %s", secret, secret))
		raw, err := quoting.marshal(newScrubber([]string{"canary-key", secret}))
		if err != nil {
			t.Fatal(err)
		}
		var got result
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("the secret %q makes %s of the result: %v", secret, raw, err)
		}
		texts := append([]string{got.Message}, got.Restore.Examples...)
		texts = append(append(texts, got.Snapshot.Stats.UnreadableExamples...), got.Snapshot.Stats.SkippedExamples...)
		texts = append(texts, got.Restore.Snapshot.Stats.UnreadableExamples...)
		if all := strings.ReplaceAll(strings.Join(texts, "\n"), redact.Marker, ""); len(secret) >= 4 && strings.Contains(all, secret) {
			t.Fatalf("the secret %q is in %q", secret, all)
		}
		got.Message, got.Restore.Examples = "", nil
		got.Snapshot.Stats.UnreadableExamples, got.Snapshot.Stats.SkippedExamples, got.Restore.Snapshot.Stats.UnreadableExamples = nil, nil, nil
		if diff := cmp.Diff(plain, &got); diff != "" {
			t.Fatalf("the secret %q changes the result, -want +got:\n%s", secret, diff)
		}
		if _, err := mover.ParseResult(string(raw)); err != nil {
			t.Fatalf("the operator does not understand %s: %v", raw, err)
		}
	}
}

// The operator reads the progress from the log.
func TestSecretsChangeNoNumberOfTheLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: newScrubber([]string{"1024", "progress-canary"}).attribute}))
	log.Info("progress", "progress", engine.Progress{Bytes: 1024, TotalBytes: 10240, TotalKnown: true})
	if p, ok := mover.ParseProgress(out.Bytes()); !ok || p.Bytes != 1024 || p.TotalBytes != 10240 || !p.TotalKnown {
		t.Errorf("got %+v of %s", p, out.String())
	}
	out.Reset()
	log.Info("words of progress-canary", "text", "progress-canary", "error", errors.New("progress-canary"), "result", &result{Message: "progress-canary"},
		slog.Group("group", "text", "progress-canary"))
	if strings.Contains(out.String(), "canary") {
		t.Errorf("a secret is in %s", out.String())
	}
}
