package webhook

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// maxWaiting is how many objects of a namespace wait for their turn.
	maxWaiting = 8
	// maxTime is when there is an answer. The API server waits for ten seconds, and lets in what has none by then. The rest is for
	// what it and the network need themselves, on machines that have much to do.
	maxTime = 1500 * time.Millisecond
)

// Shared gives every namespace a turn of its own: a handler looks at one object of a namespace at a time, before anything of
// it is decoded. Who comes when too many wait, or has no answer in time, is told to try again: no answer would let it in. Who
// asks for another namespace waits for nothing of that.
func Shared(handler admission.Handler, now clock.WithTicker) admission.Handler {
	return &shared{handler: handler, clock: now, queues: map[string]*queue{}}
}

type shared struct {
	handler admission.Handler
	clock   clock.WithTicker

	mutex  sync.Mutex
	queues map[string]*queue // of namespaces that ask for something
}

// queue is that of a namespace.
type queue struct {
	turn chan struct{} // holds one while an object is looked at
	// inside is how many are looked at, or wait.
	inside int
}

// Handle answers one request.
func (s *shared) Handle(ctx context.Context, request admission.Request) admission.Response {
	mine := s.enter(request.Namespace)
	if mine == nil {
		return tryAgain(request.Namespace)
	}
	timer := s.clock.NewTimer(maxTime)
	defer timer.Stop()
	select {
	case mine.turn <- struct{}{}:
	case <-timer.C():
		s.leave(request.Namespace, mine)
		return tryAgain(request.Namespace)
	case <-ctx.Done():
		s.leave(request.Namespace, mine)
		return tryAgain(request.Namespace)
	}
	answer := make(chan admission.Response, 1)
	go func() {
		// The turn ends with the work, and not with the answer.
		defer s.leave(request.Namespace, mine)
		defer func() { <-mine.turn }()
		answer <- s.look(context.WithoutCancel(ctx), request)
	}()
	select {
	case response := <-answer:
		return response
	case <-timer.C():
		return tryAgain(request.Namespace)
	}
}

// look asks the handler. A panic of it ends the request alone.
func (s *shared) look(ctx context.Context, request admission.Request) (response admission.Response) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err := fmt.Errorf("panic: %v", panicked)
			logf.FromContext(ctx).Error(err, "An object could not be validated", "stack", string(debug.Stack()))
			response = admission.Errored(http.StatusInternalServerError, err)
		}
	}()
	return s.handler.Handle(ctx, request)
}

// enter returns the queue of a namespace, or nil if it is full.
func (s *shared) enter(namespace string) *queue {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	mine := s.queues[namespace]
	if mine == nil {
		mine = &queue{turn: make(chan struct{}, 1)}
		s.queues[namespace] = mine
	}
	if mine.inside > maxWaiting {
		return nil
	}
	mine.inside++
	return mine
}

func (s *shared) leave(namespace string, mine *queue) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if mine.inside--; mine.inside == 0 {
		delete(s.queues, namespace)
	}
}

// tryAgain is what clients understand: they come again after a second, of their own.
func tryAgain(namespace string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: fmt.Sprintf("too many objects of namespace %q are being validated: try again", namespace),
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}}}
}
