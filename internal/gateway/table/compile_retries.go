package table

import (
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

const maxAttempts = 10 // of Retries

func compileTimeouts(e *compiled, rule *Rule) *model.Fault {
	e.Timeouts = rule.Timeouts
	for _, timeout := range []struct {
		field string
		value time.Duration
	}{{"request", e.Timeouts.Request}, {"backend", e.Timeouts.Backend}, {"attempt", e.Timeouts.Attempt}, {"idle", e.Timeouts.Idle}} {
		if timeout.value < 0 {
			return model.Invalid("timeouts.%s: %v is negative", timeout.field, timeout.value)
		}
	}
	return nil
}

func compileRetries(e *compiled, rule *Rule) *model.Fault {
	e.Retries = rule.Retries
	if e.Retries.Attempts < 0 || e.Retries.Attempts > maxAttempts {
		return model.Invalid("retries.attempts: %d is not from 0 to %d", e.Retries.Attempts, maxAttempts)
	}
	if e.Retries.Wait < 0 {
		return model.Invalid("retries.wait: %v is negative", e.Retries.Wait)
	}
	return nil
}
