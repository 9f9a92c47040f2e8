//go:build backuptest

package engine

import (
	"cmp"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

func status(code int, name string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, code, name)
		return true
	}
}

func hangUp(w http.ResponseWriter, _ *http.Request) bool {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		connection.Close()
	}
	return true
}

func never(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// halfway answers a reading with less than it announced.
func halfway(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	w.Header().Set("Content-Length", "1000000")
	w.Header().Set("ETag", `"0"`)
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	_, _ = io.WriteString(w, "the first bytes")
	return true
}

// onlyPuts lets a fault hit what is written.
func onlyPuts(fault func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool { return r.Method == http.MethodPut && fault(w, r) }
}

// sometimes lets a fault hit every third request.
func sometimes(fault func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		n++
		hit := n%3 == 0
		mu.Unlock()
		return hit && fault(w, r)
	}
}

// s3Fault is something that goes wrong, and what is said of it.
type s3Fault struct {
	fault   func(http.ResponseWriter, *http.Request) bool
	gone    bool
	timeout time.Duration // for an operation; default 3 s
	opening Kind          // when Open meets it; empty: it opens
	keeping Kind          // when Snapshot meets it after Open; empty: it is kept
}

func TestFaultsOfS3(t *testing.T) {
	t.Parallel()
	together(t, map[string]s3Fault{
		"answers 503":                 {fault: status(503, "SlowDown"), opening: KindUnreachable, keeping: KindUnreachable},
		"answers 503 sometimes":       {fault: sometimes(status(503, "SlowDown")), timeout: time.Minute},
		"answers 500 to writing":      {fault: onlyPuts(status(500, "InternalError")), keeping: KindUnreachable},
		"hangs up":                    {fault: hangUp, opening: KindUnreachable, keeping: KindUnreachable},
		"hangs up sometimes":          {fault: sometimes(hangUp), timeout: time.Minute},
		"never answers":               {fault: never, opening: KindUnreachable, keeping: KindUnreachable},
		"never answers to writing":    {fault: onlyPuts(never), keeping: KindUnreachable},
		"answers by half":             {fault: halfway, opening: KindUnreachable, keeping: KindUnreachable},
		"the bucket is gone":          {gone: true, opening: KindBucketNotFound, keeping: KindBucketNotFound},
		"credentials are revoked":     {fault: status(403, "InvalidAccessKeyId"), opening: KindAccessDenied, keeping: KindAccessDenied},
		"writing is refused":          {fault: onlyPuts(status(403, "AccessDenied")), timeout: time.Minute, keeping: KindAccessDenied},
		"full":                        {fault: onlyPuts(status(507, "InsufficientStorage")), timeout: time.Minute, keeping: KindNoSpace},
		"the quota is used up":        {fault: onlyPuts(status(403, "QuotaExceeded")), timeout: time.Minute, keeping: KindNoSpace},
		"an answer that is no answer": {fault: status(400, "Nonsense"), timeout: time.Minute, opening: KindUnreachable, keeping: KindUnreachable},
	}, func(t *testing.T, _ string, c s3Fault) {
		b := newBucket(t)
		options := b.options(t)
		r := created(t, options)
		source := tree(t)
		kept(t, r, "before", source)
		options.OperationTimeout = cmp.Or(c.timeout, 3*time.Second)
		later := opened(t, options)
		write(t, source, "new", noise(1, 1<<20))

		b.set(c.gone, c.fault)
		other, err := Open(t.Context(), options)
		check(t, "open", err, c.opening)
		if err == nil {
			defer other.Close(t.Context())
		}
		_, err = later.Snapshot(t.Context(), SnapshotOptions{Run: "meanwhile", Source: source})
		check(t, "snapshot", err, c.keeping)
		b.set(false, nil)

		after := opened(t, options)
		kept(t, after, "after", source)
		if _, err := opened(t, options).Verify(t.Context(), VerifyOptions{ReadPercent: 100}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func check(t *testing.T, doing string, err error, want Kind) {
	t.Helper()
	if want == "" && err != nil {
		t.Errorf("%s: %v", doing, err)
	}
	if want != "" && (err == nil || KindOf(err) != want) {
		t.Errorf("%s: got %s (%v), want %s", doing, KindOf(err), err, want)
	}
}

func TestAnOutageIsNotTakenForDamage(t *testing.T) {
	t.Parallel()
	together(t, map[string]s3Fault{
		"it never answers":     {fault: never, opening: KindUnreachable},
		"it hangs up":          {fault: hangUp, opening: KindUnreachable},
		"the bucket is gone":   {gone: true, opening: KindBucketNotFound},
		"credentials are gone": {fault: status(403, "AccessDenied"), timeout: time.Minute, opening: KindAccessDenied},
	}, func(t *testing.T, _ string, c s3Fault) {
		b := newBucket(t)
		options := b.options(t)
		kept(t, created(t, options), "one", tree(t))
		options.OperationTimeout = cmp.Or(c.timeout, 3*time.Second)
		r := opened(t, options)
		if _, err := r.List(t.Context(), ListOptions{}); err != nil {
			t.Fatal(err)
		}
		b.set(c.gone, c.fault)
		_, err := r.Verify(t.Context(), VerifyOptions{ReadPercent: 100})
		wantKind(t, err, c.opening)
		_, err = r.Restore(t.Context(), RestoreOptions{Run: "one", Target: t.TempDir()})
		wantKind(t, err, c.opening)
		b.set(false, nil)
	})
}
