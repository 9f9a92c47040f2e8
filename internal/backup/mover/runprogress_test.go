package mover

import (
	"testing"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

func trouble(reason string) *health.Trouble {
	return &health.Trouble{Reason: reason, Message: "words"}
}

func TestWhatFollows(t *testing.T) {
	const pending, runs, ends = slipwayv1alpha1.BackupPending, slipwayv1alpha1.BackupRunning, slipwayv1alpha1.BackupFailed
	began := RunProgress{Phase: runs, Reason: "Transferring", Attempt: 1, Began: noon, AttemptBegan: noon, Created: noon.Add(-time.Minute), Allowed: time.Hour}
	third := began
	third.Attempt = 3
	fresh := RunProgress{Attempt: 1, Created: noon, Allowed: time.Hour}
	// It had queued for 31 minutes when it was seen that the Secret is missing.
	queued, noticed := fresh, fresh
	queued.Reason = "Queued"
	noticed.Reason, noticed.ReasonSince = "SecretNotFound", noon.Add(31*time.Minute)
	older := fresh
	older.Reason = "SecretNotFound"
	starting := Observation{State: Starting, Step: StepSnapshot, Since: noon}
	follow := func(c RunProgress, seen Observation, at time.Duration) Next {
		next, ok := c.Follow(seen, nil, noon.Add(at))
		if !ok {
			t.Fatal("nobody decided")
		}
		return next
	}
	failed := func(reason string) Observation {
		return Observation{State: Failed, Step: StepSnapshot, Trouble: trouble(reason)}
	}
	stuck := starting
	stuck.Trouble = trouble("ImageNotFound")
	tests := map[string]struct {
		got     Next
		phase   slipwayv1alpha1.BackupPhase
		reason  string
		attempt int32
		recheck time.Duration
	}{
		"the destination does not answer":        {follow(began, failed("Unreachable"), time.Minute), pending, "Retrying", 2, 30 * time.Second},
		"nor for the third time":                 {follow(third, failed("Unreachable"), time.Minute), ends, "Unreachable", 3, 0},
		"nor shortly before the deadline":        {follow(began, failed("Unreachable"), time.Hour-10*time.Second), ends, "Unreachable", 1, 0},
		"the password is wrong":                  {follow(began, failed("WrongPassword"), time.Minute), ends, "WrongPassword", 1, 0},
		"data is damaged":                        {follow(began, failed("Corrupt"), time.Minute), ends, "Corrupt", 1, 0},
		"the pod starts":                         {follow(began, starting, time.Minute), runs, "Transferring", 1, 9 * time.Minute},
		"the pod cannot start":                   {follow(began, stuck, time.Minute), runs, "ImageNotFound", 1, 9 * time.Minute},
		"the pod could not start for 10 minutes": {follow(began, stuck, 10*time.Minute), ends, "PodPending", 1, 0},
		"the data is read back":                  {follow(began, Observation{State: Working, Step: StepVerify}, time.Minute), runs, "Verifying", 1, 59 * time.Minute},
		"it takes too long":                      {follow(began, Observation{State: Working, Step: StepVerify}, time.Hour), ends, "DeadlineExceeded", 1, 0},
		"a Secret is missing":                    {fresh.Wait(trouble("SecretNotFound"), noon.Add(time.Minute)), pending, "SecretNotFound", 1, 10 * time.Minute},
		"a Secret is missing after a queue":      {queued.Wait(trouble("SecretNotFound"), noon.Add(31*time.Minute)), pending, "SecretNotFound", 1, 10 * time.Minute},
		"a Secret is missing for 9 minutes":      {noticed.Wait(trouble("SecretNotFound"), noon.Add(40*time.Minute)), pending, "SecretNotFound", 1, time.Minute},
		"a Secret is missing for 10 minutes":     {noticed.Wait(trouble("SecretNotFound"), noon.Add(41*time.Minute)), ends, "SecretNotFound", 1, 0},
		"a Secret is missing at the deadline":    {queued.Wait(trouble("SecretNotFound"), noon.Add(time.Hour)), ends, "SecretNotFound", 1, 0},
		"an older operator did not note it":      {older.Wait(trouble("SecretNotFound"), noon.Add(10*time.Minute)), ends, "SecretNotFound", 1, 0},
		"its turn has not come for half an hour": {fresh.Wait(trouble("Queued"), noon.Add(30*time.Minute)), pending, "Queued", 1, 30 * time.Minute},
		"another pod writes for half an hour":    {fresh.Wait(trouble("TargetBusy"), noon.Add(30*time.Minute)), pending, "TargetBusy", 1, 30 * time.Minute},
		"another pod writes until the deadline":  {fresh.Wait(trouble("TargetBusy"), noon.Add(time.Hour)), ends, "TargetBusy", 1, 0},
		"an error late in a long run":            {began.Retry(trouble("APIError"), noon.Add(30*time.Minute)), runs, "APIError", 1, 30 * time.Minute},
		"an error after a long time in a queue":  {fresh.Retry(trouble("APIError"), noon.Add(31*time.Minute)), pending, "APIError", 1, 29 * time.Minute},
		"errors until the deadline":              {began.Retry(trouble("APIError"), noon.Add(time.Hour)), ends, "APIError", 1, 0},
		"a conflict":                             {began.Wait(nil, noon.Add(time.Minute)), runs, "Transferring", 1, 59 * time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.got.Phase != tc.phase || tc.got.Reason != tc.reason || tc.got.Attempt != tc.attempt || tc.got.Recheck != tc.recheck {
				t.Errorf("got %+v, want %s, %s, attempt %d, another look after %v", tc.got, tc.phase, tc.reason, tc.attempt, tc.recheck)
			}
		})
	}
	if _, ok := began.Follow(Observation{State: Succeeded}, nil, noon); ok {
		t.Error("a success is for the caller to judge")
	}
}
