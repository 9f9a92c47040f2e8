package outcome

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/testing/property"
)

func request(namespace string, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}}
}

func newTestQueue(workers int) *Queue {
	return NewFairQueue("", workers, newBackoff[reconcile.Request](clock.RealClock{}, time.Second, time.Minute))
}

func low() priorityqueue.AddOpts {
	priority := handler.LowPriority
	return priorityqueue.AddOpts{Priority: &priority}
}

// 1,000 requests of one namespace wait. One of another namespace is handed out to the next worker that asks: while all workers
// that may work for the first one are at it, and after that.
func TestRequestsOfOneNamespaceDelayNoOther(t *testing.T) {
	q := newTestQueue(10)
	defer q.ShutDown()
	for n := range 1000 {
		q.Add(request("greedy", n))
	}
	next := func(want reconcile.Request) {
		t.Helper()
		if q.turns.Len() == 0 {
			t.Fatalf("nothing is handed out, want %s", want)
		}
		if got, _ := q.Get(); got != want {
			t.Fatalf("the next is %s, want %s", got, want)
		}
	}
	for n := range 5 {
		next(request("greedy", n))
	}
	if q.turns.Len() != 0 || q.Len() != 995 {
		t.Errorf("a namespace gets more than its share of the workers: %d wait", q.Len())
	}
	q.Add(request("other", 0))
	next(request("other", 0))
	q.Done(request("greedy", 0))
	q.Add(request("other", 1))
	next(request("other", 1))
	q.Done(request("other", 0))
	next(request("greedy", 5))
}

func TestWhatHasChangedComesBeforeTheFirstLook(t *testing.T) {
	q := newTestQueue(1)
	defer q.ShutDown()
	q.AddWithOpts(low(), request("a", 1), request("a", 2), request("b", 1), request("b", 2))
	q.Add(request("a", 3))
	q.Add(request("b", 2)) // it has changed now
	var got []string
	for range 5 {
		next, priority, _ := q.GetWithPriority()
		got = append(got, fmt.Sprint(next.Namespace, next.Name, priority))
		q.Done(next)
	}
	if diff := cmp.Diff([]string{"a30", "b20", "a1-100", "b1-100", "a2-100"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// One namespace changes something all the time. What another one had before a start is looked at all the same.
func TestTheFirstLookComesThoughThereIsAlwaysAChange(t *testing.T) {
	q := newTestQueue(1)
	defer q.ShutDown()
	q.AddWithOpts(low(), request("quiet", 1), request("quiet", 2))
	var looks []int
	for n := range 4 * lowEvery {
		q.Add(request("busy", n))
		next, _ := q.Get()
		if next.Namespace == "quiet" {
			looks = append(looks, n)
		}
		q.Done(next)
	}
	if diff := cmp.Diff([]int{lowEvery, 2*lowEvery + 1}, looks); diff != "" {
		t.Errorf("the quiet one has its turns: -want +got:\n%s", diff)
	}
}

func TestWhatIsAddedForLater(t *testing.T) {
	shop := request("a", 1)
	tests := map[string]struct {
		do   func(q *Queue)
		want []time.Duration
	}{
		"comes then":                {func(q *Queue) { q.AddAfter(shop, time.Minute) }, []time.Duration{time.Minute}},
		"comes at the sooner time":  {func(q *Queue) { q.AddAfter(shop, time.Minute); q.AddAfter(shop, time.Second) }, []time.Duration{time.Second}},
		"does not come twice":       {func(q *Queue) { q.AddAfter(shop, time.Minute); q.Add(shop) }, []time.Duration{0}},
		"after a failure, waits":    {func(q *Queue) { q.AddRateLimited(shop) }, []time.Duration{time.Second}},
		"limited, and sooner":       {func(q *Queue) { q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, After: time.Millisecond}, shop) }, []time.Duration{time.Millisecond}},
		"comes, handed out between": {func(q *Queue) { q.Add(shop); q.AddAfter(shop, time.Minute) }, []time.Duration{0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, began := newTestQueue(1), time.Now()
				tc.do(q)
				var got []time.Duration
				go func() {
					for {
						next, shutdown := q.Get()
						if shutdown {
							return
						}
						got = append(got, time.Since(began))
						q.Done(next)
					}
				}()
				<-time.After(time.Hour) // of the test's own clock
				q.ShutDown()
				synctest.Wait()
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestAQueueThatIsShutDownHandsOutNothing(t *testing.T) {
	q := newTestQueue(2)
	q.Add(request("a", 1))
	q.ShutDown()
	if got, shutdown := q.Get(); !shutdown {
		t.Errorf("it hands out %s", got)
	}
}

// The figures by which one sees that the operator keeps up are those of before.
func TestTheQueueIsMeasured(t *testing.T) {
	q := NewFairQueue("measured", 1, newBackoff[reconcile.Request](clock.RealClock{}, time.Second, time.Minute))
	defer q.ShutDown()
	q.Add(request("a", 1))
	q.Add(request("b", 1))
	q.Get()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == "measured" {
					got[family.GetName()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	maps.DeleteFunc(got, func(name string, _ float64) bool {
		return name != "workqueue_depth" && name != "workqueue_adds_total" && name != "workqueue_queue_duration_seconds"
	})
	if diff := cmp.Diff(map[string]float64{"workqueue_depth": 1, "workqueue_adds_total": 2, "workqueue_queue_duration_seconds": 1}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whatever is added, by whom, in which order, with which priority, and however long the work takes: nothing is lost, nothing is
// worked on twice at a time, no namespace has more than its share of the workers, and no request is passed by another namespace
// more often than there are requests before it in its own, for each worker and each turn of what has changed.
func TestEveryRequestHasItsTurn(t *testing.T) {
	count, source := property.Inputs(t, 1000, 100)
	random := source(31)
	for range count {
		workers := 1 + random.IntN(10)
		order := newTurns(workers)
		q := &Queue{ready: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Queue: order}), turns: order}
		q.TypedDelayingInterface = ignoring{q.ready}
		var working []reconcile.Request
		// came is after how many that were handed out one was added, and before how many of its namespace waited.
		came, before, handed := map[reconcile.Request]int{}, map[reconcile.Request]int{}, 0
		for range 400 {
			switch random.IntN(4) {
			case 0, 1:
				namespace := "greedy"
				if random.IntN(4) == 0 {
					namespace = string(rune('a' + random.IntN(4)))
				}
				next, options := request(namespace, random.IntN(100)), priorityqueue.AddOpts{}
				if random.IntN(3) == 0 {
					options = low()
				}
				q.AddWithOpts(options, next)
				if _, known := came[next]; !known {
					came[next], before[next] = handed, len(slices.DeleteFunc(slices.Collect(maps.Keys(came)), func(r reconcile.Request) bool { return r.Namespace != namespace }))
				}
			case 2:
				if order.Len() == 0 {
					if len(working) == 0 && q.Len() > 0 {
						t.Fatalf("all workers are free, and nothing is handed out of %d", q.Len())
					}
					continue
				}
				next, _ := q.Get()
				if slices.Contains(working, next) {
					t.Fatalf("%s is worked on twice", next)
				}
				working = append(working, next)
				held := len(slices.DeleteFunc(slices.Clone(working), func(r reconcile.Request) bool { return r.Namespace != next.Namespace }))
				if held > (workers+1)/2 {
					t.Fatalf("%d of %d workers work for one namespace", held, workers)
				}
				if passed, bound := handed-came[next], 5*(workers+(before[next]+1)*(lowEvery+1)); passed > bound {
					t.Fatalf("%s was passed %d times, and may be %d times", next, passed, bound)
				}
				handed++
				delete(came, next)
				delete(before, next)
			default:
				if len(working) > 0 {
					i := random.IntN(len(working))
					q.Done(working[i])
					working = slices.Delete(working, i, i+1)
				}
			}
		}
		for len(working) > 0 || q.Len() > 0 {
			for _, each := range working {
				q.Done(each)
			}
			working = nil
			for order.Len() > 0 {
				next, _ := q.Get()
				working = append(working, next)
				delete(came, next)
			}
		}
		if len(came) > 0 || len(order.held)+len(order.working)+len(order.waits)+len(order.wanted) > 0 {
			t.Fatalf("lost %v: %+v", came, order)
		}
		q.ready.ShutDown()
	}
}

// ignoring is a queue to which nothing is added for later.
type ignoring struct {
	workqueue.TypedInterface[reconcile.Request]
}

func (ignoring) AddAfter(reconcile.Request, time.Duration) {}
