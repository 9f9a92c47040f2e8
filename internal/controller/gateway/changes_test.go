package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// apiServer is written to. Each write takes 10 ms.
type apiServer struct {
	clock *clocktesting.FakePassiveClock
	// answer is what it says of a route.
	answer func(name string) error

	mu      sync.Mutex
	asked   int
	written map[string]bool
}

func (a *apiServer) write(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	a.clock.SetTime(a.clock.Now().Add(10 * time.Millisecond))
	err := a.answer(name)
	if err == nil {
		a.written[name] = true
	}
	return err
}

// pass is what one reconcile writes of these routes.
func (a *apiServer) pass(routes []string) error {
	var writes []func() error
	for _, name := range routes {
		writes = append(writes, func() error { return a.write(name) })
	}
	return (&writing{clock: a.clock, writes: writes}).run()
}

func namesOf(what string, count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%04d", what, i))
	}
	return names
}

func refused(name string) error {
	return outcome.Classify(name, apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, name, errors.New("no")))
}

func TestAReconcileWritesStatusesForSomeTimeAndAsksForAnotherOne(t *testing.T) {
	for _, test := range []struct {
		routes int
		time   time.Duration // that the first reconcile writes
		passes int
	}{
		{1000, 1250 * time.Millisecond, 10},
		{4000, 2 * time.Second, 30},
		{40_000, 10 * time.Second, 100}, // in a second each they would be 400
	} {
		t.Run(fmt.Sprint(test.routes), func(t *testing.T) { writeAll(t, test.routes, test.time, test.passes) })
	}
}

// writeAll plays reconciles until everything is written.
func writeAll(t *testing.T, count int, limit time.Duration, most int) {
	t.Helper()
	a := &apiServer{clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), answer: func(string) error { return nil }, written: map[string]bool{}}
	routes := namesOf("route", count)
	passes := 0
	for rest := routes; len(rest) > 0; passes++ {
		begin := a.clock.Now()
		err := a.pass(rest)
		if took := a.clock.Since(begin); took > limit+writers*10*time.Millisecond {
			t.Fatalf("it wrote for %v", took)
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(name string) bool { return a.written[name] })
		result, err := outcome.Result(err, 0)
		if err != nil || (len(rest) > 0) != (result.RequeueAfter > 0) {
			t.Fatalf("%d are left: it looks again after %v, error %v", len(rest), result.RequeueAfter, err)
		}
	}
	if a.asked != len(routes) || passes > most {
		t.Errorf("%d writes in %d passes for %d routes, want %d passes at most", a.asked, passes, len(routes), most)
	}
}

func TestAFewStatusesAreWrittenInTheirOrder(t *testing.T) {
	var order []string
	a := &apiServer{clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), written: map[string]bool{}}
	a.answer = func(name string) error { order = append(order, name); return nil }
	if err := a.pass(namesOf("route", fewWrites)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(namesOf("route", fewWrites), order); diff != "" {
		t.Error(diff)
	}
}

// A tenant can make a route whose status cannot be written. However many there are, the others are written.
func TestRoutesThatAreRefusedDoNotKeepOthersFromBeingWritten(t *testing.T) {
	a := &apiServer{clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), written: map[string]bool{}}
	good, bad := namesOf("good", 50), namesOf("bad", 500)
	hostile := map[string]bool{}
	for _, name := range bad {
		hostile[name] = true
	}
	a.answer = func(name string) error {
		if hostile[name] {
			return refused(name)
		}
		return nil
	}
	for range 200 {
		err := a.pass(append(slices.Clone(bad), slices.DeleteFunc(slices.Clone(good), func(name string) bool { return a.written[name] })...))
		if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) > maxFailures+1 {
			t.Fatalf("an error of %T tells too much or too little", err)
		}
	}
	if diff := cmp.Diff(good, slices.Sorted(maps.Keys(a.written))); diff != "" {
		t.Error(diff)
	}
}

func TestAnAPIServerThatDoesNotAnswerIsNotAskedAThousandTimes(t *testing.T) {
	a := &apiServer{clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), written: map[string]bool{}}
	a.answer = func(name string) error { return outcome.Classify(name, context.DeadlineExceeded) }
	err := a.pass(namesOf("route", 1000))
	if a.asked > writers {
		t.Errorf("it was asked %d times", a.asked)
	}
	if _, retry := outcome.Result(err, 0); retry == nil {
		t.Errorf("%v is not tried again", err)
	}
}

// Many are written on goroutines of their own, where nobody would catch a panic.
func TestAPanicOfAWriteIsOneOfTheReconcile(t *testing.T) {
	writes := make([]func() error, 3*fewWrites)
	for i := range writes {
		writes[i] = func() error { panic("a defect") }
	}
	defer func() {
		if cause := fmt.Sprint(recover()); !strings.HasPrefix(cause, "a defect") || !strings.Contains(cause, "changes_test.go") {
			t.Errorf("it panics with %s", cause)
		}
	}()
	_ = (&writing{clock: clocktesting.NewFakePassiveClock(time.Now()), writes: writes}).run()
	t.Error("it does not panic")
}
