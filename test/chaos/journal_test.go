//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// journalInterval is the pause between two entries.
	journalInterval = 20 * time.Millisecond
	journalLabel    = "chaos.slipway.dev/page"
)

// journal writes one small object after the other, all the time, to find out whether
// anything is lost that the API server has acknowledged. etcd runs without fsync here, so
// this is not a matter of course.
type journal struct {
	namespace string

	mutex sync.Mutex
	page  int
	// written are the entries of this page that were acknowledged.
	written []entry
	// version is that of the last entry; versions grow for ever.
	version int64
	// backwards are versions that did not.
	backwards []string
}

// entry is one that was acknowledged.
type entry struct {
	name string
	// sent and at are when it was asked for and when the answer came.
	sent, at time.Time
}

// write writes until the context ends.
func (j *journal) write(ctx context.Context) {
	ticker := time.NewTicker(journalInterval)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			j.add(ctx, fmt.Sprintf("entry-%d", n))
		}
	}
}

func (j *journal) add(ctx context.Context, name string) {
	j.mutex.Lock()
	page := j.page
	j.mutex.Unlock()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: name, Labels: map[string]string{journalLabel: strconv.Itoa(page)}},
		Data:       map[string]string{"name": name},
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	sent := time.Now()
	if err := cluster.Create(ctx, object); err != nil {
		// Nobody said that it was written.
		return
	}
	version, err := strconv.ParseInt(object.ResourceVersion, 10, 64)
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if err != nil || version <= j.version {
		j.backwards = append(j.backwards, fmt.Sprintf("%s after %d", object.ResourceVersion, j.version))
	}
	j.version = version
	if page == j.page {
		j.written = append(j.written, entry{name: name, sent: sent, at: time.Now()})
	}
}

// turn begins a new page and returns the number and the entries of the old one.
func (j *journal) turn() (page int, written []entry, backwards []string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	page, written = j.page, j.written
	j.page, j.written = j.page+1, nil
	return page, written, j.backwards
}

// check compares what was acknowledged with what is there, and tears the page out. It
// returns what was acknowledged, and which of it is lost.
func (j *journal) check(ctx context.Context) (written []entry, lost []string, err error) {
	page, written, backwards := j.turn()
	if len(backwards) > 0 {
		return written, nil, fmt.Errorf("resource versions went backwards: %v", backwards)
	}
	selector := client.MatchingLabels{journalLabel: strconv.Itoa(page)}
	list := &corev1.ConfigMapList{}
	err = insist(ctx, "read the journal", func(ctx context.Context) error {
		return cluster.List(ctx, list, client.InNamespace(j.namespace), selector)
	})
	if err != nil {
		return written, nil, err
	}
	there := map[string]bool{}
	for _, object := range list.Items {
		there[object.Name] = object.Data["name"] == object.Name
	}
	for _, e := range written {
		if !there[e.name] {
			lost = append(lost, fmt.Sprintf("%s of %s", e.name, e.at.Format(timeFormat)))
		}
	}
	return written, lost, insist(ctx, "clear the journal", func(ctx context.Context) error {
		return cluster.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(j.namespace), selector)
	})
}
