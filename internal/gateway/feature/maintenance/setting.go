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

func compile(asked *Rule, _ feature.Rule) (*Policy, *model.Fault) {
	switch {
	case len(asked.Windows) > maxWindows:
		return nil, model.Invalid("maintenance.windows: %d are more than %d", len(asked.Windows), maxWindows)
	case len(asked.Body) > maxBody:
		return nil, model.Invalid("maintenance.body: %d bytes are more than %d", len(asked.Body), maxBody)
	case !fieldname.IsValue(asked.ContentType):
		return nil, model.Invalid("maintenance.contentType holds a control character")
	}
	policy := &Policy{Body: []byte(asked.Body), ContentType: asked.ContentType}
	for i, from := range asked.Windows {
		field := fmt.Sprintf("maintenance.windows[%d]", i)
		when, err := schedule.Parse(from.Schedule, asked.TimeZone)
		if wrong := (*schedule.Error)(nil); errors.As(err, &wrong) {
			if wrong.Field == schedule.FieldTimeZone {
				field = "maintenance"
			}
			return nil, model.Invalid("%s.%s: %s", field, wrong.Field, wrong.Reason)
		}
		if from.Duration < minDuration {
			return nil, model.Invalid("%s.duration: %v is not from 1m to 24h", field, from.Duration)
		}
		policy.windows = append(policy.windows, window{when, from.Duration})
	}
	return policy, nil
}
