package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image has no time zone database

	"github.com/robfig/cron/v3"

	"github.com/slipway-dev/slipway/internal/text"
)

// The fields that an Error may name. A rule of a Retention is "retention." and its name.
const (
	FieldSchedule        = "schedule"
	FieldTimeZone        = "timeZone"
	FieldRetentionPolicy = "retentionPolicy"
	FieldRetention       = "retention"
)

const (
	// maxText bounds the texts that are parsed.
	maxText = 256

	// rightCron says what an expression should be.
	rightCron = "five: minute, hour, day of the month, month and day of the week, such as \"0 2 * * *\", or be @hourly, @daily, @weekly, " +
		"@monthly or @yearly"

	allHours = 1<<24 - 1
	// starBit is set by the cron library in a field that is "*" or "?".
	starBit = 1 << 63
)

// Error says which field is wrong, and why.
type Error struct {
	// Field is the name of the field.
	Field string
	// Reason is a sentence that says what is wrong.
	Reason string
}

// Error returns the field and the reason.
func (e *Error) Error() string { return e.Field + ": " + e.Reason }

func invalid(field, format string, args ...any) *Error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Schedule is a cron expression in a time zone. It is immutable. The zero value is not usable: Parse makes one.
type Schedule struct {
	minutes, hours, days, months, weekdays uint64
	zone                                   *time.Location
}

// Parse parses a cron expression with five fields, as CronJob does, or a name such as @daily. zone is the name of a time
// zone, such as Europe/Berlin. An empty zone means UTC. The error is an *Error.
func Parse(expression, zone string) (Schedule, error) {
	location, err := parseZone(zone)
	if err != nil {
		return Schedule{}, err
	}
	s, err := parseCron(expression)
	if err != nil {
		return Schedule{}, err
	}
	s.zone = location
	if !s.fires() {
		return Schedule{}, invalid(FieldSchedule,
			"%q never fires: no month that it names has such a day, hour and minute; name a day that one of them has", expression)
	}
	return s, nil
}

func parseCron(expression string) (Schedule, error) {
	switch {
	case len(expression) > maxText:
		return Schedule{}, invalid(FieldSchedule, "longer than %d characters", maxText)
	case strings.Contains(expression, "TZ"):
		return Schedule{}, invalid(FieldSchedule, "%q cannot use TZ or CRON_TZ, use the field timeZone instead", expression)
	case strings.HasPrefix(strings.TrimSpace(expression), "@every"):
		return Schedule{}, invalid(FieldSchedule, "%q has no fixed times, use five fields such as \"*/30 * * * *\" instead", expression)
	}
	if count := len(strings.Fields(expression)); count != 5 && !strings.HasPrefix(expression, "@") {
		return Schedule{}, invalid(
			FieldSchedule, "%q is not a cron expression: it has %d fields, and should have %s", expression, count, rightCron,
		)
	}
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		// The library repeats what it was given.
		return Schedule{}, invalid(FieldSchedule, "%q is not a cron expression: %s; it should have %s", expression,
			text.Printable(err.Error()), rightCron)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Schedule{}, invalid(FieldSchedule, "%q has no fixed times", expression)
	}
	return Schedule{minutes: spec.Minute, hours: spec.Hour, days: spec.Dom, months: spec.Month, weekdays: spec.Dow}, nil
}

func parseZone(zone string) (*time.Location, error) {
	switch {
	case zone == "":
		return time.UTC, nil
	case len(zone) > maxText:
		return nil, invalid(FieldTimeZone, "longer than %d characters", maxText)
	case strings.EqualFold(zone, "Local"):
		// It would be the zone of the operator's machine.
		return nil, invalid(FieldTimeZone, "%q is not the name of a time zone, such as Europe/Berlin or UTC", zone)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, invalid(FieldTimeZone, "%q is not the name of a time zone, such as Europe/Berlin or UTC", zone)
	}
	return location, nil
}

// Zone returns the time zone of the schedule.
func (s Schedule) Zone() *time.Location { return s.zone }

// everyHour reports whether the schedule fires in every hour of a day, so that it follows real time.
func (s Schedule) everyHour() bool { return s.hours&allHours == allHours }

// fires reports whether the schedule fires at all. Four years have every date, and a restricted day of the month is never
// combined with a restricted weekday.
func (s Schedule) fires() bool {
	if s.minutes&^starBit == 0 || s.hours&^starBit == 0 {
		return false
	}
	for d := (date{2000, time.January, 1}); d.year < 2004; d = d.add(1) {
		if s.matches(d) {
			return true
		}
	}
	return false
}

// matches reports whether the schedule fires on a day. As in cron, a restricted day of the month and a restricted weekday
// are alternatives.
func (s Schedule) matches(d date) bool {
	if s.months&(1<<d.month) == 0 {
		return false
	}
	day, weekday := s.days&(1<<d.day) != 0, s.weekdays&(1<<d.weekday()) != 0
	if s.days&starBit != 0 || s.weekdays&starBit != 0 {
		return day && weekday
	}
	return day || weekday
}
