package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/schedule"
)

// Setting is that of maintenance.
var Setting = feature.Setting[*Rule, *Policy]{
	Name:    "maintenance",
	Asked:   func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.Maintenance != nil },
	Read:    read,
	Compile: compile,
	Text:    text,
	Covers:  feature.Restricts,
}

const (
	defaultContentType = "text/plain; charset=utf-8"

	maxWindows  = 8
	maxBody     = 16 << 10 // bytes: a character has up to four
	minDuration = time.Minute
)

func read(settings *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (*Rule, *model.Fault) {
	in := settings.Maintenance
	rule := &Rule{TimeZone: in.TimeZone, Body: in.Body, ContentType: cmp.Or(string(in.ContentType), defaultContentType)}
	for i, from := range in.Windows {
		duration, f := feature.Duration(fmt.Sprintf("maintenance.windows[%d].duration", i), from.Duration, 0)
		if f != nil {
			return nil, f
		}
		rule.Windows = append(rule.Windows, Window{Schedule: from.Schedule, Duration: duration})
	}
	return rule, nil
}

func compile(asked *Rule, of feature.Rule) (*Policy, *model.Fault) {
	switch {
	case len(asked.Windows) > maxWindows:
		return nil, model.Invalid("maintenance.windows: %d are more than %d", len(asked.Windows), maxWindows)
	case len(asked.Body) > maxBody:
		return nil, model.Invalid("maintenance.body: %d bytes are more than %d", len(asked.Body), maxBody)
	case !fieldname.IsValue(asked.ContentType):
		return nil, model.Invalid("maintenance.contentType holds a control character")
	}
	closing, f := closingOf(asked, of)
	if f != nil {
		return nil, f
	}
	return &Policy{Closing: closing, Body: asked.Body, ContentType: asked.ContentType}, nil
}

// closingOf compiles the windows, once for all rules with the same ones: a policy may be that of many.
func closingOf(asked *Rule, of feature.Rule) (*Closing, *model.Fault) {
	type result struct {
		closing *Closing
		fault   *model.Fault
	}
	made := of.Checks.Once("maintenance "+text(asked, of), func() any {
		closing, f := newClosing(asked)
		return result{closing, f}
	}).(result)
	return made.closing, made.fault
}

func newClosing(asked *Rule) (*Closing, *model.Fault) {
	if _, err := schedule.Parse("@daily", asked.TimeZone); err != nil {
		return nil, model.Invalid("maintenance.timeZone: %s", reason(err))
	}
	closing := &Closing{}
	for i, from := range asked.Windows {
		when, err := schedule.Parse(from.Schedule, asked.TimeZone)
		if err != nil {
			return nil, model.Invalid("maintenance.windows[%d].schedule: %s", i, reason(err))
		}
		if from.Duration < minDuration {
			return nil, model.Invalid("maintenance.windows[%d].duration: %v is not from 1m to 24h", i, from.Duration)
		}
		closing.windows = append(closing.windows, window{when, from.Duration})
	}
	return closing, nil
}

// reason is what is wrong, without the field of a Backup.
func reason(err error) string {
	if wrong := (*schedule.Error)(nil); errors.As(err, &wrong) {
		return wrong.Reason
	}
	return err.Error()
}

// text tells when a rule is closed. What is answered then lets nobody in.
func text(asked *Rule, _ feature.Rule) string {
	return feature.Describe([]any{asked.TimeZone, asked.Windows})
}
