package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

var (
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	namespaces  = schema.GroupResource{Resource: "namespaces"}
)

func invalid() error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "shop", field.ErrorList{
		field.Invalid(field.NewPath("spec", "replicas"), -1, "must be at least 0"),
	})
}

func replaced() error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "shop", field.ErrorList{
		field.Invalid(field.NewPath("metadata", "uid"), "a", "field is immutable"),
	})
}

func terminating() error {
	err := apierrors.NewForbidden(deployments, "shop", errors.New("namespace team is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return err
}

func TestAnswersOfTheAPIServerGetAPolicy(t *testing.T) {
	tests := map[string]struct {
		err     error
		kind    outcome.Kind
		reason  string
		message string
	}{
		"conflict":              {apierrors.NewConflict(deployments, "shop", errors.New("changed")), outcome.Quiet, "", `D "shop": conflict`},
		"already exists":        {apierrors.NewAlreadyExists(deployments, "shop"), outcome.Quiet, "", `D "shop": conflict`},
		"another object":        {replaced(), outcome.Quiet, "", `D "shop": conflict`},
		"cancelled":             {fmt.Errorf("send: %w", context.Canceled), outcome.Quiet, "", `D "shop": conflict`},
		"namespace terminating": {terminating(), outcome.Waiting, "NamespaceTerminating", `D "shop" cannot be made: its namespace is being deleted`},
		"namespace gone":        {apierrors.NewNotFound(namespaces, "team"), outcome.Waiting, "NamespaceTerminating", `D "shop" cannot be made: its namespace is being deleted`},
		"invalid":               {invalid(), outcome.Blocked, "Invalid", `D "shop" is refused: spec.replicas: Invalid value: -1: must be at least 0`},
		"a policy that speaks of quotas": {
			apierrors.NewForbidden(deployments, "shop", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")), outcome.Transient, "Forbidden",
			`D "shop" is forbidden: deployments.apps "shop" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`,
		},
		"quota, with numbers": {
			apierrors.NewForbidden(deployments, "shop", errors.New("exceeded quota: team, requested: requests.storage=2Gi, used: requests.storage=1Gi, limited: requests.storage=2Gi")), outcome.Transient, "QuotaExceeded",
			`D "shop" exceeds a quota of the namespace: ResourceQuota "team" does not allow it: requests.storage=2Gi is asked for (spec.storage.size) and 1Gi of 2Gi is used`,
		},
		"no rights":      {apierrors.NewForbidden(deployments, "shop", errors.New("cannot create")), outcome.Transient, "Forbidden", `D "shop" is forbidden: deployments.apps "shop" is forbidden: cannot create`},
		"overloaded":     {apierrors.NewTooManyRequests("slow down", 3), outcome.Transient, "APIError", `D "shop": the API server answered TooManyRequests`},
		"internal":       {apierrors.NewInternalError(errors.New("etcd leader changed at 12:01:07")), outcome.Transient, "APIError", `D "shop": the API server answered InternalError`},
		"no answer":      {errors.New("read tcp 10.0.0.1:43210: connection reset"), outcome.Transient, "APIError", `D "shop": the API server answered not at all`},
		"policy already": {fmt.Errorf("wrapped: %w", outcome.Invalidf("Mine", "my %s", "words")), outcome.Invalid, "Mine", "my words"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := outcome.Classify(`D "shop"`, tc.err)
			if got.Kind != tc.kind || got.Reason != tc.reason || got.Message != tc.message {
				t.Errorf("got %v %q %q, want %v %q %q", got.Kind, got.Reason, got.Message, tc.kind, tc.reason, tc.message)
			}
			if !errors.Is(got, tc.err) && !errors.Is(tc.err, got) {
				t.Error("the cause is lost")
			}
		})
	}
}

func TestErrorsOfAReconcileBecomeOneResult(t *testing.T) {
	bad := outcome.Invalidf("Bad", "bad")
	blocked := outcome.Blockedf(0, "Blocked", "blocked")
	looked := outcome.Blockedf(10*time.Second, "Blocked", "blocked")
	// What the doc of the kind rules out has no effect either.
	again := outcome.Invalidf("Bad", "bad")
	again.After = time.Second
	wait := outcome.Waitingf(5*time.Second, "Soon", "soon")
	broken := apierrors.NewInternalError(errors.New("boom"))
	slow := apierrors.NewTooManyRequests("slow down", 3)
	conflict := apierrors.NewConflict(deployments, "shop", errors.New("changed"))
	tests := map[string]struct {
		err      error
		recheck  time.Duration
		after    time.Duration
		retry    bool
		terminal bool
	}{
		"nothing":                    {nil, 0, 0, false, false},
		"a recheck":                  {nil, time.Minute, time.Minute, false, false},
		"invalid":                    {bad, 0, 0, false, true},
		"invalid, whatever else":     {again, 0, 0, false, true},
		"blocked":                    {blocked, 0, 0, true, false},
		"blocked, looked at again":   {looked, 0, 10 * time.Second, false, false},
		"invalid beside a blocked":   {errors.Join(bad, looked), 0, 10 * time.Second, false, false},
		"refused by the server":      {invalid(), 0, 0, true, false},
		"waiting":                    {wait, 0, 5 * time.Second, false, false},
		"the sooner of two":          {wait, time.Second, time.Second, false, false},
		"transient":                  {broken, 0, 0, true, false},
		"transient wins over others": {errors.Join(bad, wait, fmt.Errorf("wrapped: %w", broken)), time.Minute, 0, true, false},
		"told when to retry":         {slow, 0, 3 * time.Second, false, false},
		"conflict is no error":       {conflict, 0, 50 * time.Millisecond, false, false},
		"a namespace on its way":     {terminating(), 0, 5 * time.Second, false, false},
		"joined inside another":      {fmt.Errorf("phase: %w", errors.Join(wait, broken)), 0, 0, true, false},
		"joined behind a policy":     {&outcome.Error{Kind: outcome.Waiting, After: time.Second, Err: errors.Join(broken, bad)}, 0, time.Second, false, false},
		"nested":                     {errors.Join(errors.Join(wait, nil), conflict), 0, 50 * time.Millisecond, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := outcome.Result(tc.err, tc.recheck)
			if result.RequeueAfter != tc.after {
				t.Errorf("looks again after %v, want %v", result.RequeueAfter, tc.after)
			}
			terminal := errors.Is(err, reconcile.TerminalError(nil))
			if terminal != tc.terminal || (err != nil && !terminal) != tc.retry {
				t.Errorf("error %v, want retry %v, terminal %v", err, tc.retry, tc.terminal)
			}
		})
	}
}

func TestStatusSpeaksOfTheWorstError(t *testing.T) {
	bad := outcome.Invalidf("Bad", "bad")
	wait := outcome.Waitingf(time.Second, "Soon", "soon")
	conflict := apierrors.NewConflict(deployments, "shop", errors.New("changed"))
	blocked := outcome.Blockedf(time.Second, "Blocked", "blocked")
	if got := outcome.Worst(errors.Join(wait, conflict, blocked, bad)); got != bad {
		t.Errorf("got %v, want the invalid one", got)
	}
	if got := outcome.Worst(errors.Join(wait, errors.New("timeout"), blocked)); got != blocked {
		t.Errorf("got %v, want the blocked one", got)
	}
	for _, e := range []*outcome.Error{bad, blocked, wait, nil} {
		if want := e == bad || e == blocked; e.Stalls() != want {
			t.Errorf("%+v stalls: %v, want %v", e, e.Stalls(), want)
		}
	}
	if got := outcome.Worst(errors.Join(conflict, conflict)); got != nil {
		t.Errorf("a conflict is reported: %v", got)
	}
}

func TestAStaleCacheIsLookedAtAgainWithoutAWord(t *testing.T) {
	err := outcome.StaleCache(`WebApp "shop"`)
	if outcome.Worst(err) != nil {
		t.Errorf("status would speak of %v", outcome.Worst(err))
	}
	result, failed := outcome.Result(err, 0)
	if failed != nil || result.RequeueAfter <= 0 {
		t.Errorf("result %+v, error %v; want another look and no error", result, failed)
	}
}

// A cache that is stale for seconds must not cost a refused write every 50 ms.
func TestThePauseAfterLostRacesGrows(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	conflicts := outcome.NewConflictBackoff(clock)
	shop, other := types.NamespacedName{Name: "shop"}, types.NamespacedName{Name: "other"}
	lost := outcome.StaleCache(`WebApp "shop"`)
	pause := func(object types.NamespacedName) time.Duration {
		t.Helper()
		result, err := conflicts.Result(object, lost, 0)
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	first := pause(shop)
	var all time.Duration
	tries := 0
	for next := first; all < 10*time.Second; tries++ {
		clock.SetTime(clock.Now().Add(next))
		next = pause(shop)
		all += next
	}
	if tries > 10 {
		t.Errorf("%d tries within %v", tries, all)
	}
	if got := pause(other); got != first {
		t.Errorf("another object waits %v, want %v", got, first)
	}
	if result, err := conflicts.Result(shop, nil, 0); err != nil || result.RequeueAfter != 0 {
		t.Errorf("after a pass without an error: %+v, %v", result, err)
	}
	if got := pause(shop); got != first {
		t.Errorf("after a pass without an error it waits %v, want %v", got, first)
	}
}

func TestTheSoonestLookThatWasAskedForCounts(t *testing.T) {
	var recheck outcome.Recheck
	for _, step := range []struct{ asked, want time.Duration }{
		{0, 0}, {-time.Second, 0}, {time.Minute, time.Minute}, {time.Hour, time.Minute}, {time.Second, time.Second}, {0, time.Second},
	} {
		recheck.After(step.asked)
		if recheck.In() != step.want {
			t.Errorf("asked for %v: in %v, want %v", step.asked, recheck.In(), step.want)
		}
	}
}

// A webhook may quote what it refuses. What is a secret is seen from the lines around it, so it is hidden before they are joined.
func TestASecretThatAnAnswerQuotesIsHidden(t *testing.T) {
	const quoted = "admission webhook \"x\" denied the request:\npassword: |\n  correct-horse-battery\nother: x"
	for name, err := range map[string]error{
		"forbidden": apierrors.NewForbidden(deployments, "shop", errors.New(quoted)),
		"invalid": apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "shop", field.ErrorList{
			field.Invalid(field.NewPath("spec"), "x", quoted),
		}),
	} {
		got := outcome.Classify("Deployment \"shop\"", err)
		if message := got.Trouble().Message; strings.Contains(message, "horse") || strings.Contains(message, "\n") || !strings.Contains(message, "denied the request") {
			t.Errorf("%s: %q", name, message)
		}
	}
}
