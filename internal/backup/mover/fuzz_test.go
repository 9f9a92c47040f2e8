package mover

import (
	"encoding/json"
	"path"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
)

// A destination leads to one bucket or claim, and to a place below its path, whoever names the namespace and the Backup.
func FuzzParseDestination(f *testing.F) {
	for _, text := range []string{
		"s3://bucket/prefix", "s3://bucket", "pvc://claim/a/b/", "pvc://../x", "s3://bucket/../other", "s3://bucket//", "pvc://claim/./a", "s3://a/b/...",
		"s3://user@host/x", "s3://bucket/%2e%2e/x", "s3://bucket/a\\..\\b", "pvc://claim/\x00", "S3://bucket/x", "pvc://claim/ä", "s3://:///x", "s3://bucket/a?b#c",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		place, err := ParseDestination(text)
		if err != nil {
			if place != (Place{}) {
				t.Errorf("%q is refused, and is %+v", text, place)
			}
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the error %q has characters that are not printed", err)
			}
			return
		}
		scheme, name := "s3://", place.Bucket
		if place.Claim != "" {
			scheme, name = "pvc://", place.Claim
		}
		if (place.Bucket == "") == (place.Claim == "") || strings.ContainsAny(name, "/:@?#%\\ ") || strings.Contains(name, "..") {
			t.Fatalf("%q is %+v", text, place)
		}
		if back := path.Join(name, place.Path); strings.TrimSuffix(strings.TrimPrefix(text, scheme), "/") != back {
			t.Errorf("%q is %+v, which reads %q", text, place, back)
		}
		of := place.Repository("team", "shop")
		want := "team/shop"
		if place.Path != "" {
			want = place.Path + "/" + want
		}
		if of.Path != want || of.Bucket != place.Bucket || of.Claim != place.Claim {
			t.Errorf("the repository below %q is at %+v", text, of)
		}
		// As the engine gets it: exactly below the folder.
		if joined := path.Join(repositoryFolder, of.Path); joined != repositoryFolder+"/"+of.Path {
			t.Errorf("%q leads to %q", text, joined)
		}
	})
}

// A source names one object of one kind, and reads as it was written.
func FuzzParseSource(f *testing.F) {
	for _, text := range []string{"data", "pvc/data", "webapp/shop", "statefulset/db", "deployment/shop", "job/x", "pvc/", "pvc/a/b", "a..b", "-", "pvc/../x", "PVC/x"} {
		f.Add(text)
	}
	kinds := map[SourceKind]string{SourceClaim: "pvc/", SourceWebApp: "webapp/", SourceStatefulSet: "statefulset/", SourceDeployment: "deployment/"}
	f.Fuzz(func(t *testing.T, text string) {
		source, err := ParseSource(text)
		if err != nil {
			return
		}
		written := kinds[source.Kind] + source.Name
		if written != text && written != "pvc/"+text {
			t.Errorf("%q is %+v", text, source)
		}
		again, err := ParseSource(written)
		if err != nil || again != source {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, source, written, again, err)
		}
		if strings.ContainsAny(source.Name, "/ \n") || strings.Contains(source.Name, "..") {
			t.Errorf("%q names %q", text, source.Name)
		}
	})
}

// Whatever a container leaves as its message: it is a success only where the message says so of this step, and the exit code
// too. What goes into status is short, and printed.
func FuzzTerminationMessage(f *testing.F) {
	for _, message := range []string{
		`{"command":"snapshot","ok":true}`, `{"command":"verify","ok":true}`, `{"command":"snapshot","ok":false,"kind":"NoSpace","message":"full"}`,
		`{"command":"snapshot","ok":false}`, `{"command":"snapshot","OK":true,"ok":false,"kind":"x"}`, `{"ok":true}`, `null`, `[]`, ``, `{"command":"snapshot","ok":true`,
		`{"command":"snapshot","ok":true,"kind":"Corrupt"}`, `{"command":"snapshot","kind":"\u001b[2J","message":"a\u0000\u202eb\n"}`,
		`{"command":"snapshot","kind":"x","message":"` + strings.Repeat("\\u0007", 600) + `"}`, `{"command":"snapshot","ok":true} {}`,
		`{"command":"snapshot","ok":true,"repositoryID":"a\u0000b"}`, `{"command":"snapshot","ok":true,"snapshot":{"id":"\u202e","stats":{"files":-1}}}`,
	} {
		f.Add(message, int32(0))
		f.Add(message, int32(17))
	}
	f.Fuzz(func(t *testing.T, message string, code int32) {
		if len(message) > 4096 {
			message = message[:4096]
		}
		pod := aPod(corev1.PodRunning, ended(code, "Error", message), running)
		seen := Observe(aJob(), []corev1.Pod{pod}, []Step{StepSnapshot, StepVerify})
		var said struct {
			Command string `json:"command"`
			OK      bool   `json:"ok"`
		}
		well := json.Unmarshal([]byte(message), &said) == nil && said.Command == "snapshot" && said.OK && code == 0
		if went := seen.State == Working && seen.Step == StepVerify; went && !well {
			t.Errorf("%q with exit code %d is a success", message, code)
		}
		if seen.State == Succeeded {
			t.Errorf("%q ends a Job of which a step still runs", message)
		}
		var reported []string
		if seen.Trouble != nil {
			reported = append(reported, seen.Trouble.Reason, seen.Trouble.Message)
		}
		for _, result := range seen.Results {
			reported = append(reported, result.Message, result.Kind, result.RepositoryID)
			if result.Snapshot != nil {
				reported = append(reported, result.Snapshot.ID, result.Snapshot.Run)
				if stats := result.Snapshot.Stats; stats.Files < 0 || stats.Bytes < 0 || stats.Unreadable < 0 || stats.Skipped < 0 {
					t.Errorf("%q has counts below 0: %+v", message, stats)
				}
			}
		}
		for _, text := range reported {
			if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q brings the text %q", message, text)
			}
		}
	})
}

// Progress is a share of what is known, whatever a log says.
func FuzzParseProgress(f *testing.F) {
	for _, line := range []string{
		`{"msg":"progress","progress":{"bytes":50,"totalBytes":200,"totalKnown":true}}`, `{"msg":"progress"}`, `{"msg":"other","progress":{}}`, `{`, ``,
		`{"msg":"progress","progress":{"bytes":-1,"totalBytes":200}}`, `{"msg":"progress","progress":{"bytes":1,"totalBytes":9223372036854775807,"totalKnown":true}}`,
		`{"msg":"progress","progress":{"bytes":300,"totalBytes":200,"totalKnown":true}}`, `{"msg":"progress","progress":{"bytes":5,"totalBytes":-200}}`,
	} {
		f.Add([]byte(line), int64(60))
	}
	f.Fuzz(func(t *testing.T, line []byte, seconds int64) {
		p, ok := ParseProgress(line)
		if !ok {
			if p != (Progress{}) {
				t.Errorf("%q is no progress, and is %+v", line, p)
			}
			return
		}
		now := noon.Add(time.Duration(seconds%(1<<30)) * time.Second)
		of := p.Transfer(noon, now)
		if of.Percent < 0 || of.Percent > 100 || of.Bytes < 0 || of.TotalBytes < 0 {
			t.Errorf("%q is %+v", line, of)
		}
		if at := of.EstimatedCompletionTime; at != nil && (at.Time.Before(now.Truncate(time.Second)) || at.After(now.Add(maxEstimate))) {
			t.Errorf("%q at %s will be done at %s", line, now, at)
		}
		if _, err := json.Marshal(of); err != nil {
			t.Errorf("%q cannot be told: %v", line, err)
		}
	})
}
