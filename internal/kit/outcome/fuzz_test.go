package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/generate"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// anError makes what a phase of a reconcile may return.
func anError(s *generate.Source) error {
	after := time.Duration(s.Below(4)) * time.Second
	switch s.Below(7) {
	case 0:
		return nil
	case 1:
		if s.Maybe() {
			return outcome.Blockedf(after, "Blocked", "blocked")
		}
		return outcome.Invalidf("Bad", "bad")
	case 2:
		return outcome.Waitingf(after, "Soon", "soon")
	case 3:
		return errors.New(s.Text())
	case 4:
		return context.Canceled
	default:
		return answer(s)
	}
}

// answer makes an answer of the API server.
func answer(s *generate.Source) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: generate.Pick(s, metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists, metav1.StatusReasonInvalid, metav1.StatusReasonForbidden,
			metav1.StatusReasonNotFound, metav1.StatusReasonTooManyRequests, metav1.StatusReasonServerTimeout, metav1.StatusReasonInternalError, metav1.StatusReasonUnknown),
		Code:    generate.Pick[int32](s, 0, 409, 422, 403, 404, 429, 504, 500),
		Message: generate.Pick(s, "exceeded quota: q", s.Text()),
		Details: generate.Optional(s, metav1.StatusDetails{}, metav1.StatusDetails{Kind: "namespaces"}, metav1.StatusDetails{RetryAfterSeconds: 3},
			metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec.port", Message: "no"}}}),
	}}
}

// The result does not depend on the order of the errors, or on how they are wrapped and joined.
// Every error that needs a requeue gets one.
func FuzzResult(f *testing.F) {
	generate.Seed(f, 40)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		var parts []error
		for range 1 + source.Below(5) {
			if err := anError(source); err != nil {
				parts = append(parts, err)
			}
		}
		recheck := time.Duration(source.Below(3)) * time.Second
		result, err := outcome.Result(errors.Join(parts...), recheck)

		backwards := slices.Clone(parts)
		slices.Reverse(backwards)
		half := source.Below(len(parts) + 1)
		nested := errors.Join(phase(parts[:half]), phase(parts[half:]))
		for how, same := range map[string]error{"backwards": errors.Join(backwards...), "nested": nested} {
			again, againErr := outcome.Result(same, recheck)
			if again != result || kindOf(againErr) != kindOf(err) {
				t.Errorf("%s: %+v and %v, not %+v and %v", how, again, againErr, result, err)
			}
			if worst, other := outcome.Worst(errors.Join(parts...)), outcome.Worst(same); (worst == nil) != (other == nil) || worst != nil && worst.Kind != other.Kind {
				t.Errorf("%s: the worst is %v, not %v", how, other, worst)
			}
		}
		checkLook(t, parts, recheck, result.RequeueAfter, err)
	})
}

// phase returns the errors of one phase as one.
func phase(parts []error) error {
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("phase: %w", errors.Join(parts...))
}

// checkLook checks that every error gets the look that it asks for.
func checkLook(t *testing.T, parts []error, recheck, after time.Duration, err error) {
	t.Helper()
	if after > 0 && err != nil {
		t.Errorf("looks again after %v and fails with %v", after, err)
	}
	if recheck > 0 && kindOf(err) != "retry" && (after == 0 || after > recheck) {
		t.Errorf("looks again after %v, %v was asked for", after, recheck)
	}
	for _, part := range parts {
		policy := outcome.Classify("request", part)
		backoff := (policy.Kind == outcome.Transient || policy.Kind == outcome.Blocked) && policy.After == 0
		if backoff && kindOf(err) != "retry" {
			t.Errorf("%+v is not retried: %v", policy, err)
		}
		if policy.After > 0 && kindOf(err) != "retry" && (after == 0 || after > policy.After) {
			t.Errorf("looks again after %v for %+v", after, policy)
		}
	}
}

func kindOf(err error) string {
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, reconcile.TerminalError(nil)):
		return "terminal"
	default:
		return "retry"
	}
}

// Whatever the API server answers gets a policy, and words of our own where its own
// differ at every retry.
func FuzzClassify(f *testing.F) {
	generate.Seed(f, 40)
	known, err := truth.Reasons()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		status := answer(generate.From(data))
		policy := outcome.Classify(`D "shop"`, fmt.Errorf("send: %w", status))
		if _, ok := known[policy.Reason]; ok != (policy.Kind != outcome.Quiet) || !errors.Is(policy, status) {
			t.Errorf("%+v", policy)
		}
		if again := outcome.Classify("another", fmt.Errorf("wrapped: %w", policy)); again != policy {
			t.Errorf("classified again it is %+v, not %+v", again, policy)
		}
		if policy.Kind != outcome.Transient || policy.Reason == "Forbidden" {
			return
		}
		status.ErrStatus.Message += " at 12:01:07"
		if other := outcome.Classify(`D "shop"`, status); other.Kind == policy.Kind && other.Message != policy.Message {
			t.Errorf("the same trouble later: %q and %q", policy.Message, other.Message)
		}
	})
}
