package repository

import (
	"bytes"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// bucket is a server that answers like S3, as far as the library asks, until a fault is set.
type bucket struct {
	server *httptest.Server

	mu      sync.Mutex
	objects map[string][]byte
	gone    bool
	fault   func(w http.ResponseWriter, r *http.Request) bool // true when it has answered
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	b := &bucket{objects: map[string][]byte{}}
	b.server = httptest.NewTLSServer(b)
	t.Cleanup(func() {
		b.server.CloseClientConnections()
		b.server.Close()
	})
	return b
}

func (b *bucket) options(t *testing.T) Options {
	t.Helper()
	return Options{
		Location: Location{S3: &S3{
			Endpoint: strings.TrimPrefix(b.server.URL, "https://"), Region: "us-east-1", Bucket: "backups", Prefix: "team/shop",
			AccessKeyID: "access", SecretAccessKey: "secret",
			CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.server.Certificate().Raw}),
		}},
		Password: "correct horse", WorkFolder: t.TempDir(), OperationTimeout: 3 * time.Second,
	}
}

func (b *bucket) set(fault func(http.ResponseWriter, *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.mu.Lock()
	fault := b.fault
	b.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key, found := strings.CutPrefix(r.URL.Path, "/backups/")
	switch {
	case !found || b.gone:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case key == "":
		b.list(w, r.URL.Query().Get("prefix"))
	case r.Method == http.MethodPut:
		b.objects[key] = body
		w.Header().Set("ETag", `"0"`)
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case b.objects[key] == nil:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"0"`)
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(b.objects[key]))
	}
}

func (b *bucket) list(w io.Writer, prefix string) {
	type content struct {
		Key          string
		Size         int
		LastModified string
		ETag         string
	}
	var listed struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []content
	}
	for key, value := range b.objects {
		if strings.HasPrefix(key, prefix) {
			listed.Contents = append(listed.Contents, content{key, len(value), time.Now().UTC().Format(time.RFC3339), `"0"`})
		}
	}
	slices.SortFunc(listed.Contents, func(a, b content) int { return strings.Compare(a.Key, b.Key) })
	_ = xml.NewEncoder(w).Encode(listed)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

func TestS3(t *testing.T) {
	b := newBucket(t)
	b.objects["team/shopping/other"] = []byte("of somebody else")
	options := b.options(t)
	r := created(t, options)
	source := everything(t)
	made := kept(t, r, "one", source)
	other := opened(t, options)
	if _, err := other.Verify(t.Context(), VerifyOptions{Run: "one", ReadPercent: 100}); err != nil {
		t.Fatal(err)
	}
	target, _ := restored(t, other, "one")
	if diff := cmp.Diff(look(t, source), look(t, target)); diff != "" {
		t.Errorf("the restored folder differs (-source +target):\n%s", diff)
	}
	if _, err := r.Maintain(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.Expire(t.Context(), ExpireOptions{Snapshots: []string{made.ID}}); err != nil {
		t.Error(err)
	}
	options.ExpectedID = r.ID()
	if _, err := Delete(t.Context(), options); err != nil {
		t.Error(err)
	}
	if len(b.objects) != 1 {
		t.Errorf("left are %d objects", len(b.objects))
	}
}

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
	timeout time.Duration
	opening Kind // when Open meets it; empty: it opens
	keeping Kind // when Snapshot meets it after Open; empty: it is kept
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
		"the bucket is gone":          {gone: true, opening: KindNotFound, keeping: KindNotFound},
		"credentials are revoked":     {fault: status(403, "InvalidAccessKeyId"), timeout: time.Minute, opening: KindAccessDenied, keeping: KindAccessDenied},
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
		if c.timeout > 0 {
			options.OperationTimeout = c.timeout
		}
		later := opened(t, options)
		write(t, source, "new", noise(1, 1<<20))

		b.set(c.fault)
		b.gone = c.gone
		other, err := Open(t.Context(), options)
		check(t, "open", err, c.opening)
		if err == nil {
			defer other.Close(t.Context())
		}
		_, err = later.Snapshot(t.Context(), SnapshotOptions{Run: "meanwhile", Source: source})
		check(t, "snapshot", err, c.keeping)
		b.set(nil)
		b.gone = false

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
		"the bucket is gone":   {gone: true, opening: KindNotFound},
		"credentials are gone": {fault: status(403, "AccessDenied"), timeout: time.Minute, opening: KindAccessDenied},
	}, func(t *testing.T, _ string, c s3Fault) {
		b := newBucket(t)
		options := b.options(t)
		kept(t, created(t, options), "one", tree(t))
		if c.timeout > 0 {
			options.OperationTimeout = c.timeout
		}
		r := opened(t, options)
		if _, err := r.List(t.Context(), ListOptions{}); err != nil {
			t.Fatal(err)
		}
		b.set(c.fault)
		b.gone = c.gone
		_, err := r.Verify(t.Context(), VerifyOptions{ReadPercent: 100})
		wantKind(t, err, c.opening)
		_, err = r.Restore(t.Context(), RestoreOptions{Run: "one", Target: t.TempDir()})
		wantKind(t, err, c.opening)
		b.set(nil)
		b.gone = false
	})
}
