package webhook

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// slow is a handler that looks at objects until it is let go on.
type slow struct {
	begun, goOn chan struct{}

	mutex        sync.Mutex
	inside, most int
}

func (s *slow) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.Namespace != "greedy" {
		return admission.Denied("wrong")
	}
	s.mutex.Lock()
	s.inside++
	s.most = max(s.most, s.inside)
	s.mutex.Unlock()
	s.begun <- struct{}{}
	<-s.goOn
	s.mutex.Lock()
	s.inside--
	s.mutex.Unlock()
	return admission.Denied("wrong")
}

func asked(namespace string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: namespace}}
}

// Of 44 objects at once none is let in: each is refused, or told to try again. One is looked at at a time, and who asks for
// another namespace has an answer meanwhile.
func TestNothingIsLetInBecauseManyAsk(t *testing.T) {
	handler := &slow{begun: make(chan struct{}, 44), goOn: make(chan struct{})}
	s := Shared(handler, clocktesting.NewFakeClock(time.Unix(0, 0)))
	answers := make(chan admission.Response)
	for range 44 {
		go func() { answers <- s.Handle(t.Context(), asked("greedy")) }()
	}
	<-handler.begun
	for range 44 - maxWaiting - 1 {
		answer := <-answers
		if answer.Allowed || answer.Result.Code != http.StatusTooManyRequests || answer.Result.Details.RetryAfterSeconds != 1 ||
			!strings.Contains(answer.Result.Message, `"greedy"`) {
			t.Errorf("while others wait, one is answered %+v", answer)
		}
	}
	if other := s.Handle(t.Context(), asked("team")); other.Allowed || other.Result.Code != http.StatusForbidden {
		t.Errorf("another namespace is answered %+v", other)
	}
	close(handler.goOn)
	for range maxWaiting + 1 {
		if answer := <-answers; answer.Allowed || answer.Result.Code != http.StatusForbidden {
			t.Errorf("who waited is answered %+v", answer)
		}
	}
	if handler.most != 1 {
		t.Errorf("%d were looked at at a time", handler.most)
	}
}

// Who has no answer in time is told to try again, whether it waits or is looked at: the API server lets in what has no answer
// after ten seconds. The turn ends with the work.
func TestEveryAnswerComesInTime(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	handler := &slow{begun: make(chan struct{}, 3), goOn: make(chan struct{})}
	s := Shared(handler, now)
	answers := make(chan admission.Response)
	for range 2 {
		go func() { answers <- s.Handle(t.Context(), asked("greedy")) }()
	}
	<-handler.begun
	for answered := 0; answered < 2; {
		now.Step(maxTime)
		select {
		case answer := <-answers:
			if answered++; answer.Allowed || answer.Result.Code != http.StatusTooManyRequests {
				t.Errorf("the answer is %+v", answer)
			}
		default:
		}
	}
	close(handler.goOn)
	if answer := s.Handle(t.Context(), asked("greedy")); answer.Allowed || answer.Result.Code != http.StatusForbidden {
		t.Errorf("the next one is answered %+v", answer)
	}
	if handler.most != 1 {
		t.Errorf("%d were looked at at a time", handler.most)
	}
}

// broken is a handler that panics.
type broken struct{}

func (broken) Handle(context.Context, admission.Request) admission.Response { panic("broken") }

func TestAPanicRefusesOneObject(t *testing.T) {
	s := Shared(broken{}, clocktesting.NewFakeClock(time.Unix(0, 0)))
	for range 2 {
		if answer := s.Handle(t.Context(), asked("team")); answer.Allowed || answer.Result.Code != http.StatusInternalServerError {
			t.Errorf("the answer is %+v", answer)
		}
	}
}
