//go:build apitest

package backup_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// keepWatch does something when a Job of retention has got the Lease and is not made yet. It tells who gets the Lease
// then, and notes which Jobs are deleted.
type keepWatch struct {
	next    http.RoundTripper
	once    sync.Once
	between func()

	// taken gets for whom the Lease is written while between runs.
	taken chan string

	mu      sync.Mutex
	deleted []string
}

func (k *keepWatch) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := k.next.RoundTrip(request)
	switch kind := requests.KindOf(request); {
	case kind.Resource == "jobs" && kind.Verb == "delete":
		k.mu.Lock()
		defer k.mu.Unlock()
		k.deleted = append(k.deleted, request.URL.Path)
	case kind.Resource == "leases" && kind.Verb == "update":
		holder := holderIn(request)
		select {
		case k.taken <- holder:
		default:
		}
		if holder == "retention" {
			k.once.Do(k.between)
		}
	}
	return response, err
}

// holderIn tells for whom a Lease is written.
func holderIn(request *http.Request) string {
	body, err := request.GetBody()
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err.Error()
	}
	if bytes.Contains(text, []byte("shop-keep-")) {
		return "retention"
	}
	return "a run"
}

// A run begins while the Job of retention is being made. Both are of one operator, so the run waits for its turn: no Job is made
// that has to be deleted again.
func TestARunTakesNoTurnFromRetention(t *testing.T) {
	f := newFixture(t)
	watched := &keepWatch{taken: make(chan string)}
	watched.between = func() {
		f.create(&slipwayv1alpha1.BackupRun{
			ObjectMeta: metav1.ObjectMeta{Name: "shop-by-hand", Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "shop"},
		})
		select {
		case holder := <-watched.taken:
			t.Errorf("while the Job of retention is being made, the Lease goes to %s", holder)
		case <-time.After(2 * time.Second): // a run that does not wait has the Lease in a tenth of that
		}
	}
	env.StartOperatorWith(t, func(config *rest.Config, _ *environment.Options) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { watched.next = next; return watched })
	})
	f.backup(func(b *slipwayv1alpha1.Backup) { b.Spec.RetentionPolicy = "30d" })
	f.move(f.job(copying...), nil)
	keep := f.job(keeping...)
	environment.Eventually(t, func() error {
		run := &slipwayv1alpha1.BackupRun{}
		if err := f.get("shop-by-hand", run); err != nil {
			return err
		}
		if run.Status.Reason != slipwayv1alpha1.ReasonRepositoryBusy {
			return fmt.Errorf("the run is %s: %s", run.Status.Phase, run.Status.Reason)
		}
		return nil
	})
	now := &batchv1.Job{}
	if err := f.get(keep.Name, now); err != nil || now.UID != keep.UID {
		t.Errorf("the Job of retention is another one: %v, UID %s, was %s", err, now.UID, keep.UID)
	}
	watched.mu.Lock()
	defer watched.mu.Unlock()
	for _, path := range watched.deleted {
		if strings.Contains(path, "/shop-keep-") {
			t.Errorf("it deletes %s", path)
		}
	}
}
