package fault

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// server counts what reaches it.
type server struct {
	*httptest.Server
	got []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.got = append(s.got, r.Method+" "+r.URL.Path)
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(s.Close)
	return s
}

// operator is a client whose requests go through the gate.
func operator(t *testing.T, gate *Gate) *http.Client {
	t.Helper()
	config := &rest.Config{}
	gate.Wrap(config)
	return &http.Client{Transport: config.WrapTransport(http.DefaultTransport)}
}

func send(t *testing.T, client *http.Client, method, url string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

const (
	deployments = "/apis/apps/v1/namespaces/team/deployments"
	shop        = deployments + "/shop"
)

func TestTheGateInjectsAFaultAtTheWriteItIsToldTo(t *testing.T) {
	quota := &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "quota"}
	tests := map[string]struct {
		plan Plan
		// want is what three writes get: a code, or 0 for a broken connection.
		want []int
		// reached is how many of them the API server sees.
		reached int
	}{
		"nothing":          {nil, []int{200, 200, 200}, 3},
		"lost answer":      {Plan{2: {LoseAnswer: true}}, []int{200, 0, 200}, 3},
		"rejected":         {Plan{2: {Reject: quota}}, []int{200, 403, 200}, 2},
		"rejected twice":   {Plan{1: {Reject: quota, Times: 2}}, []int{403, 403, 200}, 1},
		"crash":            {Plan{2: {Crash: true}}, []int{200, 0, 0}, 2},
		"two of different": {Plan{1: {LoseAnswer: true}, 3: {Reject: quota}}, []int{0, 200, 403}, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := newServer(t)
			gate := NewGate(tc.plan)
			client := operator(t, gate)
			var got []int
			for range 3 {
				code, err := send(t, client, http.MethodPost, api.URL+deployments)
				if code == 0 && err == nil {
					t.Fatal("neither an answer nor an error")
				}
				got = append(got, code)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if len(api.got) != tc.reached {
				t.Errorf("the API server saw %v, want %d", api.got, tc.reached)
			}
		})
	}
}

func TestWritesAreCountedAnew(t *testing.T) {
	api := newServer(t)
	gate := NewGate(Plan{2: {LoseAnswer: true}})
	client := operator(t, gate)
	quota := &metav1.Status{Code: http.StatusForbidden}
	var got []int
	for i := range 4 {
		if i == 1 {
			gate.Begin(Plan{2: {Reject: quota}})
		}
		code, _ := send(t, client, http.MethodPost, api.URL+deployments)
		got = append(got, code)
	}
	if diff := cmp.Diff([]int{200, 200, 403, 200}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if gate.Written() != 4 || gate.Injected() != 1 {
		t.Errorf("%d writes, %d with a fault, want 4 and 1", gate.Written(), gate.Injected())
	}
}

func TestADeadOperatorReachesNothing(t *testing.T) {
	api := newServer(t)
	gate := NewGate(Plan{1: {Crash: true}})
	old := operator(t, gate)
	_, _ = send(t, old, http.MethodPost, api.URL+deployments) // it is committed, and the operator dies of it
	if gate.Crashes() != 1 {
		t.Fatalf("%d crashes, want 1", gate.Crashes())
	}
	next := operator(t, gate)
	for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodDelete} {
		if _, err := send(t, old, method, api.URL+shop); !errors.Is(err, errCrashed) {
			t.Errorf("%s of the dead operator: %v, want %v", method, err, errCrashed)
		}
		if code, err := send(t, next, method, api.URL+shop); err != nil || code != http.StatusOK {
			t.Errorf("%s of its successor: %d, %v", method, code, err)
		}
	}
}

func TestReadsAndEventsAreNotCounted(t *testing.T) {
	api := newServer(t)
	gate := NewGate(Plan{1: {LoseAnswer: true}})
	client := operator(t, gate)
	for _, request := range [][2]string{
		{http.MethodGet, shop},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/team/events"},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/team/leases/x"},
	} {
		if code, err := send(t, client, request[0], api.URL+request[1]); err != nil || code != http.StatusOK {
			t.Errorf("%v: %d, %v", request, code, err)
		}
	}
	if n := len(gate.Writes()); n != 0 {
		t.Errorf("%d writes counted, want 0", n)
	}
}

func TestTwoOperatorsActAtTheSameTimeAndCrashTogether(t *testing.T) {
	api := newServer(t)
	gate := NewGate(nil)
	first, second := operator(t, gate), operator(t, gate)
	for name, client := range map[string]*http.Client{"first": first, "second": second} {
		if code, err := send(t, client, http.MethodPatch, api.URL+shop); err != nil || code != http.StatusOK {
			t.Errorf("a write of the %s: %d, %v", name, code, err)
		}
	}
	if n := len(gate.Writes()); n != 2 {
		t.Errorf("%d writes counted, want 2", n)
	}
	gate.Crash()
	for name, client := range map[string]*http.Client{"first": first, "second": second} {
		if _, err := send(t, client, http.MethodPatch, api.URL+shop); !errors.Is(err, errCrashed) {
			t.Errorf("a write of the %s after the crash: %v, want %v", name, err, errCrashed)
		}
	}
	if gate.Crashes() != 1 {
		t.Errorf("%d crashes, want 1", gate.Crashes())
	}
}

func TestTheGateKnowsForHowLongItAskedToWait(t *testing.T) {
	api := newServer(t)
	slow := &metav1.Status{Code: http.StatusTooManyRequests, Details: &metav1.StatusDetails{RetryAfterSeconds: 3600}}
	gate := NewGate(Plan{1: {LoseAnswer: true}, 2: {Reject: slow}})
	client := operator(t, gate)
	_, _ = send(t, client, http.MethodPost, api.URL+deployments)
	if gate.AskedToWait() {
		t.Error("it asks to wait without an answer that says so")
	}
	if code, err := send(t, client, http.MethodPost, api.URL+deployments); code != http.StatusTooManyRequests {
		t.Fatalf("got %d, %v", code, err)
	}
	if !gate.AskedToWait() {
		t.Error("it does not know that it asked to wait")
	}
}

// What is done before a write takes time that is not the operator's.
func TestTheGateTellsThatAFaultKeepsAWriteBack(t *testing.T) {
	s := newServer(t)
	var during []bool
	gate := &Gate{}
	gate.Begin(Plan{1: {Before: func(Write) { during = append(during, gate.Holds()) }}})
	client := operator(t, gate)
	for range 2 {
		if code, err := send(t, client, http.MethodPatch, s.URL+shop); err != nil || code != http.StatusOK {
			t.Fatalf("got %d, %v", code, err)
		}
		if gate.Holds() {
			t.Error("it holds a write that was answered")
		}
	}
	if !slices.Equal(during, []bool{true}) {
		t.Errorf("meanwhile it says that it holds a write: %v, want once", during)
	}
}
