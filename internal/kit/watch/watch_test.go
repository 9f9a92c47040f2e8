package watch_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

func TestALabelIsAnIndexOfThoseThatHaveIt(t *testing.T) {
	index := watch.LabelIndex("slipway.dev/webapp")
	for name, tc := range map[string]struct {
		labels map[string]string
		want   []string
	}{
		"it has":           {map[string]string{"slipway.dev/webapp": "shop", "other": "x"}, []string{"shop"}},
		"it has an empty":  {map[string]string{"slipway.dev/webapp": ""}, nil},
		"it has another":   {map[string]string{"slipway.dev/apigateway": "shop"}, nil},
		"it has no labels": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, index(&slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// index is a reader that has WebApps by namespace and value.
type index struct {
	client.Reader
	apps map[string][]string
	err  error
}

func (i index) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	value, _ := asked.FieldSelector.RequiresExactMatch("slipway.dev/config")
	list := into.(*slipwayv1alpha1.WebAppList)
	for _, name := range i.apps[asked.Namespace+"/"+value] {
		list.Items = append(list.Items, slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}})
	}
	return i.err
}

func TestThoseThatReferToAnObjectAreFound(t *testing.T) {
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: name}}
	}
	apps := map[string][]string{"team/a": {"shop", "mart"}, "team/b": {"mart"}, "/a": {"anywhere"}}
	for name, tc := range map[string]struct {
		sameNamespace bool
		values        []string
		err           error
		want          []reconcile.Request
	}{
		"in its namespace":     {true, []string{"a"}, nil, []reconcile.Request{request("shop"), request("mart")}},
		"anywhere":             {false, []string{"a"}, nil, []reconcile.Request{request("anywhere")}},
		"by several values":    {true, []string{"b", "a"}, nil, []reconcile.Request{request("mart"), request("shop"), request("mart")}},
		"none":                 {true, []string{"c"}, nil, nil},
		"by nothing":           {true, nil, nil, nil},
		"the cache has ended":  {true, []string{"a"}, errors.New("stopped"), nil},
		"another object's too": {true, []string{"b"}, nil, []reconcile.Request{request("mart")}},
	} {
		t.Run(name, func(t *testing.T) {
			referrers := watch.Referrers{
				Reader: index{apps: apps, err: tc.err}, List: &slipwayv1alpha1.WebAppList{}, Index: "slipway.dev/config", SameNamespace: tc.sameNamespace,
				Values: func(client.Object) []string { return tc.values },
			}
			object := &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "it"}}
			for range 2 { // a list is not kept from one event to the next
				if diff := cmp.Diff(tc.want, referrers.Map(t.Context(), object)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// An object that is not requeued is worth a log line. When the operator ends it is not, because
// the next operator reconciles everything.
func TestAnErrorOfTheCacheIsLoggedUnlessTheOperatorEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tc := range map[string]struct {
		ctx  context.Context
		want int
	}{
		"it runs":      {t.Context(), 1},
		"it has ended": {ended, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			referrers := watch.Referrers{
				Reader: index{err: errors.New("no such index")}, List: &slipwayv1alpha1.WebAppList{}, Index: "slipway.dev/config",
				Values: func(client.Object) []string { return []string{"a"} },
			}
			object := &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "it"}}
			if got := referrers.Map(logf.IntoContext(tc.ctx, logger), object); got != nil {
				t.Errorf("it returns %v", got)
			}
			if len(lines) != tc.want || tc.want > 0 && !strings.Contains(lines[0], "no such index") {
				t.Errorf("%d lines, want %d: %v", len(lines), tc.want, lines)
			}
		})
	}
}

// An event is about the owner that a label names: beside the object, or in no namespace where owners are in none.
func TestALabelNamesTheOwnerOfAnEvent(t *testing.T) {
	object := func(value string) client.Object {
		return &slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "it", Labels: map[string]string{"of": value}}}
	}
	for name, tc := range map[string]struct {
		handler handler.EventHandler
		object  client.Object
		want    []types.NamespacedName
	}{
		"beside it":             {watch.ByLabel("of"), object("shop"), []types.NamespacedName{{Namespace: "team", Name: "shop"}}},
		"in no namespace":       {watch.ByLabelInCluster("of"), object("shop"), []types.NamespacedName{{Name: "shop"}}},
		"none beside it":        {watch.ByLabel("of"), object(""), nil},
		"none in no namespace":  {watch.ByLabelInCluster("of"), object(""), nil},
		"another label's value": {watch.ByLabelInCluster("by"), object("shop"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			tc.handler.Create(t.Context(), event.CreateEvent{Object: tc.object}, queue)
			var got []types.NamespacedName
			for queue.Len() > 0 {
				request, _ := queue.Get()
				got = append(got, request.NamespacedName)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
