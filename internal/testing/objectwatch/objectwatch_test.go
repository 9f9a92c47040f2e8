package objectwatch_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/objectwatch"
)

// ending ends each watch after one event, as an API server may.
type ending struct {
	client.WithWatch

	asked chan string // the resource versions from which it is asked
}

func (e *ending) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.SetResourceVersion("5")
	return nil
}

func (e *ending) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	all := (&client.ListOptions{}).ApplyOptions(options)
	version, err := strconv.Atoi(all.Raw.ResourceVersion)
	if err != nil {
		return nil, err
	}
	e.asked <- all.Namespace + " " + all.Raw.ResourceVersion
	w := watch.NewFakeWithChanSize(1, false)
	w.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version + 1)}})
	w.Stop()
	return w, nil
}

func TestAWatchThatEndsGoesOnWhereItWas(t *testing.T) {
	from, passed := &ending{asked: make(chan string, 100)}, make(chan string, 100)
	stop, ended, err := objectwatch.Follow(t.Context(), from, &corev1.PodList{}, func(e watch.Event) {
		passed <- e.Object.(client.Object).GetResourceVersion()
	}, client.InNamespace("shop"))
	if err != nil {
		t.Fatal(err)
	}
	var asked, got []string
	for range 2 {
		asked, got = append(asked, <-from.asked), append(got, <-passed)
	}
	stop()
	<-ended
	if diff := cmp.Diff([]string{"shop 5", "shop 6"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"6", "7"}, got); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
}
