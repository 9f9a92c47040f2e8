package engine

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
		Password: "correct horse", WorkFolder: t.TempDir(), OperationTimeout: time.Minute,
	}
}

// set makes the server fail from now on, as if its bucket were gone or otherwise.
func (b *bucket) set(gone bool, fault func(http.ResponseWriter, *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone, b.fault = gone, fault
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
	t.Parallel()
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
